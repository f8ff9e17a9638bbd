// doppler-gym leaderboard rank and report.
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/leaderboard.h"
#include "cli/json_text.h"
#include "cli/leaderboard_files.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "leaderboard/report.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kRankHelp = {
    .summary = "Rank the verified rows, each suite and tier by itself",
    .details =
        R"(The ranking metric is the interquartile mean of makespan over critical-path's, less
is better, with its 95 % bootstrap interval. Rows whose intervals overlap with nobody better share a
rank. Tasks that are saturated in a tier do not count. Rows that do not hold are left out.)",
    .examples = R"(doppler-gym leaderboard rank
doppler-gym leaderboard rank --suite paper-4 --tier 100 --json)"};

constexpr HelpText kReportHelp = {
    .summary = "The ranking with tasks, curves and schedules: HTML, Markdown, JSON",
    .details = "The page is one file that needs no network.",
    .examples = R"(doppler-gym leaderboard report --html report.html --markdown report.md)"};

struct RankOptions {
  std::string suite;
  std::int64_t tier = 0;
  std::string rows = kLeaderboardRows;
  std::int64_t samples = 2000;
  bool json = false;
};

// --- rank ---

std::string interval_text(const Interval& interval) {
  return fixed(interval.value, 4) + "  " + fixed(interval.low, 4) + " .. " +
         fixed(interval.high, 4);
}

std::string tier_text(const SuiteRanking& ranking, const TierRanking& tier) {
  std::size_t n_counting = 0;
  for (const Headroom& headroom : tier.headroom) n_counting += headroom.counts ? 1 : 0;
  std::string text = ranking.suite.name + ", tier of " + std::to_string(tier.tier.evaluations) +
                     " evaluations: " + std::to_string(n_counting) + " of " +
                     std::to_string(tier.headroom.size()) + " tasks count\n\n";
  Table table({{"rank", Align::right},
               {"agent"},
               {"kind"},
               {"score, 95 %", Align::right},
               {"over bound", Align::right},
               {"evaluations", Align::right},
               {"decided in", Align::right},
               {""}});
  for (const RankEntry& entry : tier.entries) {
    const Submission& row = entry.row->row;
    std::string note = entry.unranked;
    if (row.tier != tier.tier.evaluations) {
      note += (note.empty() ? "" : "; ") + ("row of tier " + std::to_string(row.tier));
    }
    table.add({entry.rank ? std::to_string(*entry.rank) : "-", row.agent, row.kind,
               interval_text(entry.score.value_or(entry.score_of_all)),
               entry.gap ? fixed(100 * *entry.gap, 1) + " %" : "-", fixed(entry.evaluations, 0),
               seconds_text(entry.seconds), note});
  }
  return text + table.to_string();
}

void show_ranking(const RankOptions& options) {
  const std::vector<Suite> chosen = suites_of(options.suite);
  const LeaderboardRows rows = read_leaderboard(options.rows, chosen);
  const BootstrapOptions bootstrap{.n_samples = options.samples};
  std::vector<SuiteRanking> rankings = rank_all(chosen, rows, bootstrap);
  if (options.tier > 0) {
    for (SuiteRanking& ranking : rankings) {
      if (!options.suite.empty()) static_cast<void>(ranking.suite.tier(options.tier));
      std::erase_if(ranking.tiers,
                    [&](const TierRanking& tier) { return tier.tier.evaluations != options.tier; });
    }
  }
  if (options.json) {
    print(json_text(leaderboard_json(rankings, rows, bootstrap, DOPPLER_VERSION)));
    return;
  }
  std::string text;
  for (const SuiteRanking& ranking : rankings) {
    for (const TierRanking& tier : ranking.tiers) {
      if (!tier.entries.empty()) text += (text.empty() ? "" : "\n") + tier_text(ranking, tier);
    }
  }
  if (text.empty()) text = "no verified rows in " + options.rows + "\n";
  for (const RefusedSubmission& row : rows.refused) {
    text += "refused: " + row.file + ": " + row.faults.front() + "\n";
  }
  print(text);
}

// --- report ---

struct ReportOptions {
  RankOptions rank;
  std::string html;
  std::string markdown;
  std::string json;
};

void report(const ReportOptions& options) {
  if (options.html.empty() && options.markdown.empty() && options.json.empty()) {
    throw UsageError("say what to write: --html FILE, --markdown FILE, --json FILE");
  }
  for (const std::string& path : {options.html, options.markdown, options.json}) {
    check_can_save(path);
  }
  const std::vector<Suite> chosen = suites_of(options.rank.suite);
  const LeaderboardRows rows = read_leaderboard(options.rank.rows, chosen);
  const BootstrapOptions bootstrap{.n_samples = options.rank.samples};
  const std::vector<SuiteRanking> rankings = rank_all(chosen, rows, bootstrap);
  if (!options.markdown.empty()) save(options.markdown, report_markdown(rankings, rows));
  if (!options.html.empty() || !options.json.empty()) {
    const Json json = report_json(rankings, rows, bootstrap, DOPPLER_VERSION);
    if (!options.json.empty()) save(options.json, compact_json_text(json));
    if (!options.html.empty()) save(options.html, report_page(json));
  }
  print(std::to_string(rows.verified.size()) + " rows verified, " +
        std::to_string(rows.refused.size()) + " refused, " + std::to_string(rows.failed.size()) +
        " failed\n");
}

void add_rank_options(Command& command, RankOptions& options) {
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options.rows));
  command.option({"--suite", "NAME", "One suite, by name or file. Default: all that have rows"},
                 into(options.suite));
  command.option({"--bootstrap-samples", "N", "Of the intervals. Default 2000"},
                 into(options.samples, 100, 1000000));
}

}  // namespace

void add_rank(Command& leaderboard) {
  Command command = leaderboard.add("rank", kRankHelp);
  auto options = std::make_shared<RankOptions>();
  add_rank_options(command, *options);
  command.option({"--tier", "N", "One tier. Default: all"}, into(options->tier, 1));
  command.flag("--json", "Print an object", options->json);
  command.run([options] { show_ranking(*options); });
}

void add_report(Command& leaderboard) {
  Command command = leaderboard.add("report", kReportHelp);
  auto options = std::make_shared<ReportOptions>();
  command.option({"--html", "FILE", "A page for browsers"}, into(options->html));
  command.option({"--markdown", "FILE", "Tables"}, into(options->markdown));
  command.option({"--json", "FILE", "Everything that the page shows"}, into(options->json));
  add_rank_options(command, options->rank);
  command.run([options] { report(*options); });
}

}  // namespace doppler::cli
