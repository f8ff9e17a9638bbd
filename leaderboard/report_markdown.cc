// The report as Markdown tables.
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "leaderboard/report.h"

namespace doppler {
namespace {

std::string fixed(double value, int decimals) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return buffer.data();
}

std::string short_number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.3g", value);
  return buffer.data();
}

// A text of a row within a table: nothing in it is markup.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '\n':
      case '\r':
        result += ' ';
        break;
      case '|':
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '!':
      case '~':
        result += '\\';
        [[fallthrough]];
      default:
        result += c;
    }
  }
  return result;
}

std::string percent(const std::optional<double>& share) {
  return share ? fixed(100 * *share, 2) + " %" : "-";
}

std::string interval_text(const Interval& interval) {
  return fixed(interval.value, 4) + " (" + fixed(interval.low, 4) + " .. " +
         fixed(interval.high, 4) + ")";
}

std::string link_text(const Submission& row) {
  const std::string agent = escaped(row.agent);
  if (row.link.empty()) return agent;
  std::string address;
  for (const char c : row.link) {
    constexpr std::string_view kBad = " ()<>|\"\\";
    std::array<char, 4> code{};
    std::snprintf(code.data(), code.size(), "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    const bool is_bad =
        kBad.find(c) != std::string_view::npos || static_cast<unsigned char>(c) < 0x20;
    address += is_bad ? std::string(code.data()) : std::string(1, c);
  }
  return "[" + agent + "](" + address + ")";
}

std::string tier_text(const TierRanking& tier) {
  std::string text = "\n### " + std::to_string(tier.tier.evaluations) +
                     (tier.tier.evaluations == 1 ? " evaluation\n\n" : " evaluations\n\n");
  text +=
      "| rank | agent | kind | score (95 %) | with saturated tasks | over bound | evaluations | "
      "decided in |\n| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const RankEntry& entry : tier.entries) {
    const Submission& row = entry.row->row;
    std::string agent = link_text(row);
    if (row.tier != tier.tier.evaluations) agent += " (of tier " + std::to_string(row.tier) + ")";
    if (row.training.on_suite_tasks) agent += " (trained on tasks of the suite)";
    text += "| " + (entry.rank ? std::to_string(*entry.rank) : "-") + " | " + agent + " | " +
            row.kind + " | " + (entry.score ? interval_text(*entry.score) : "-") + " | " +
            interval_text(entry.score_of_all) + " | " + percent(entry.gap) + " | " +
            fixed(entry.evaluations, 0) + " | " + short_number(entry.seconds) + " s |\n";
  }
  return text;
}

std::string headroom_text(const SuiteRanking& ranking) {
  std::string text = "\n### Headroom\n\n| task | nodes | devices |";
  std::string rule = "| --- | ---: | ---: |";
  for (const TierRanking& tier : ranking.tiers) {
    text += " " + std::to_string(tier.tier.evaluations) + " |";
    rule += " ---: |";
  }
  text += "\n" + rule + "\n";
  for (std::size_t t = 0; t < ranking.suite.tasks.size(); ++t) {
    const SuiteTask& task = ranking.suite.tasks[t];
    text += "| " + escaped(task.name) + " | " + std::to_string(task.n_nodes) + " | " +
            std::to_string(task.n_devices) + " |";
    for (const TierRanking& tier : ranking.tiers) {
      const Headroom& headroom = tier.headroom[t];
      text += " " + percent(headroom.headroom) + (headroom.saturated ? " saturated" : "") + " |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string report_markdown(std::span<const SuiteRanking> rankings, const LeaderboardRows& rows) {
  std::string text =
      "# Leaderboard\n\n"
      "The score is the interquartile mean, over tasks and seeds, of the makespan over that of\n"
      "critical-path; less is better. Entries whose intervals overlap with nobody better share a\n"
      "rank. A task's headroom is how far the best agent that had learnt nothing beforehand is "
      "from\n"
      "the best known; below 1 % it is saturated and does not count.\n";
  for (const SuiteRanking& ranking : rankings) {
    text += "\n## " + escaped(ranking.suite.name) + "\n\n" + escaped(ranking.suite.summary) + "\n";
    for (const TierRanking& tier : ranking.tiers) {
      if (!tier.entries.empty()) text += tier_text(tier);
    }
    text += headroom_text(ranking);
  }
  if (!rows.failed.empty()) {
    text +=
        "\n## Failed\n\n| suite | agent | tier | task | reason |\n| --- | --- | ---: | --- | --- "
        "|\n";
    for (const FailedSubmission& row : rows.failed) {
      text += "| " + escaped(row.suite) + " | " + escaped(row.agent) + " | " +
              std::to_string(row.tier) + " | " + escaped(row.task) + " | " + escaped(row.reason) +
              " |\n";
    }
  }
  if (!rows.refused.empty()) {
    text += "\n## Refused\n\n| file | why |\n| --- | --- |\n";
    for (const RefusedSubmission& row : rows.refused) {
      text += "| " + escaped(row.file) + " | " + escaped(row.faults.front()) + " |\n";
    }
  }
  return text;
}

}  // namespace doppler
