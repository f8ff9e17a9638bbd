// doppler-gym leaderboard: suites, rows, verification, ranking, report.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "agents/plugin_agents.h"
#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/leaderboard_files.h"
#include "cli/leaderboard_run.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ray.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "leaderboard/isolation.h"
#include "leaderboard/protocol.h"
#include "leaderboard/report.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRows = "leaderboard/results";
constexpr double kGibibyte = 1U << 30U;

constexpr HelpText kHelp = {
    .summary = "Suites of tasks, rows that can be replayed, ranking, report",
    .details = R"(A row is what one agent found on every task of a suite within a budget of
evaluations, with the assignments; docs/leaderboard.md has the protocol and the formats.)",
    .examples = R"(doppler-gym leaderboard suites
doppler-gym leaderboard run --suite paper-4 --agents heft,rule-search --tiers 1,100 --rows rows
doppler-gym leaderboard verify --all --rows rows
doppler-gym leaderboard rank --suite paper-4 --rows rows)"};

constexpr HelpText kSuitesHelp = {
    .summary = "List the suites, or the tasks and rules of one",
    .details = R"(--fill writes hashes, sizes, bounds and critical-path's makespans into a suite's
file, for those who write suites: a file is used by its path wherever a name is.)",
    .examples = R"(doppler-gym leaderboard suites
doppler-gym leaderboard suites --suite paper-4
doppler-gym leaderboard suites --fill my-suite.json)"};

constexpr HelpText kRunHelp = {
    .summary = "Run agents by a suite's protocol: a row for each agent and tier",
    .details = R"(Each agent runs in a process of its own; one that crashes, hangs, takes more than
--memory or returns something illegal fails its own row with the reason, and the exit code is 1.
Decisions are kept as they come: --resume goes on where a run was broken off, and keeps rows that
are there. Heuristics have the smallest tier only. Agents of a Python file: let the file call
doppler_gym.main() and run it in place of doppler-gym. --ray spreads the decisions over a Ray cluster,
whose machines need the package doppler_gym; one that a worker's death interrupted is made again.)",
    .examples =
        R"(doppler-gym leaderboard run --suite paper-4 --agents critical-path,annealing --rows rows
doppler-gym leaderboard run --suite published --plugin ./libmine.so --tiers 1,100 --jobs 2 --resume
python mine.py leaderboard run --suite paper-8 --agents mine --tiers 1 --rows rows
doppler-gym leaderboard run --suite generalize --agents annealing --rows rows --ray 10.0.0.1:6379)"};

constexpr HelpText kSubmitHelp = {
    .summary = "Add assignments that were made anywhere, by any tool, as a row",
    .details = R"(FILE is a row, or a draft of one: the same without what follows from the
assignments (hashes, makespans, curve), which is filled in. The row is verified first; one that does
not hold is refused with every reason, and the exit code is 1.)",
    .examples = R"(doppler-gym leaderboard submit mine.json --rows rows)"};

constexpr HelpText kVerifyHelp = {
    .summary = "Check rows, and execute their assignments again",
    .details = R"(Simulated makespans must come out to 1e-9. Of a real engine the spread of row and
of this machine is shown; --no-real leaves that out. --all takes every JSON file of the folder, also
rows of single runs and their tables. Exit code 1 if a file does not hold.)",
    .examples = R"(doppler-gym leaderboard verify --all
doppler-gym leaderboard verify mine.json other.json --json)"};

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

constexpr HelpText kWorkHelp = {
    .summary = "What run starts for each agent: decisions from standard input",
    .details = "Not for people: keys of decisions come in, a line each, records go out.",
    .examples = "doppler-gym leaderboard work --result-fd 3 < keys.jsonl"};

struct RankOptions {
  std::string suite;
  std::int64_t tier = 0;
  std::string rows = kRows;
  std::int64_t samples = 2000;
  bool json = false;
};

std::vector<Suite> suites_of(const std::string& wanted) {
  if (wanted.empty()) return suites();
  return {find_suite(wanted)};
}

// --- suites ---

Json suite_json(const Suite& suite) { return Json::parse(to_json(suite)); }

std::string suite_text(const Suite& suite) {
  std::string text = suite.name + ": " + suite.summary + "\nrevision " +
                     std::to_string(suite.revision) + ", engine " + suite.engine + ", " +
                     std::to_string(suite.seeds.size()) + " seeds, " +
                     std::to_string(suite.n_runs) + " runs where they differ by luck\n";
  for (const Tier& tier : suite.tiers) {
    text += "tier of " + std::to_string(tier.evaluations) +
            " evaluations: " + seconds_text(tier.seconds) + " to decide\n";
  }
  Table table({{"task"},
               {"nodes", Align::right},
               {"devices", Align::right},
               {"lower bound", Align::right},
               {"critical-path", Align::right}});
  for (const SuiteTask& task : suite.tasks) {
    const double reference = task.critical_path.value_or(task.lower_bound);
    const Unit unit = time_unit(reference, task.raw_costs);
    table.add({task.name, std::to_string(task.n_nodes), std::to_string(task.n_devices),
               with_unit(task.lower_bound, unit),
               task.critical_path ? with_unit(*task.critical_path, unit) : "measured beside"});
  }
  return text + "\n" + table.to_string();
}

struct SuitesOptions {
  std::string suite;
  std::string fill;
  bool json = false;
};

void show_suites(const SuitesOptions& options) {
  if (!options.fill.empty()) {
    Suite suite = parse_suite(read_file(options.fill), options.fill);
    fill_in(suite);
    save(options.fill, to_json(suite));
    print(options.fill + " is filled in\n");
    return;
  }
  const std::vector<Suite> chosen = suites_of(options.suite);
  if (options.json) {
    Json list = Json::array();
    for (const Suite& suite : chosen) list.push_back(suite_json(suite));
    print(json_text({{"suites", std::move(list)}}));
    return;
  }
  if (!options.suite.empty()) {
    print(suite_text(chosen.front()));
    return;
  }
  Table table({{"suite"}, {"tasks", Align::right}, {"tiers"}, {"engine"}, {"what"}});
  for (const Suite& suite : chosen) {
    std::string tiers;
    for (const Tier& tier : suite.tiers) {
      tiers += (tiers.empty() ? "" : ",") + std::to_string(tier.evaluations);
    }
    table.add({suite.name, std::to_string(suite.tasks.size()), tiers, suite.engine, suite.summary});
  }
  print(table.to_string());
}

// --- run ---

struct RunOptionsOfCommand {
  LeaderboardRun run;
  std::vector<std::string> tiers;
  std::optional<std::int64_t> jobs = {};
  double memory = 8;  // GiB
  std::string ray;    // address; empty: this machine
  bool json = false;
};

void run(RunOptionsOfCommand& options) {
  LeaderboardRun& run = options.run;
  run.tiers.clear();
  for (const std::string& text : options.tiers) {
    std::int64_t tier = 0;
    into(tier, 1)("--tiers", {text});
    run.tiers.push_back(tier);
  }
  run.jobs = static_cast<int>(options.jobs.value_or(options.ray.empty() ? 1 : 0));
  run.limits.memory = options.memory * kGibibyte;
  if (!options.ray.empty()) {
    if (!run.plugin.empty()) {
      throw UsageError(
          "--plugin cannot be given with --ray: a library is not sent to other machines");
    }
    connect_to_ray(options.ray, run);
  }
  const LeaderboardRunDone done = run_leaderboard(run);
  if (options.json) {
    Json failed = Json::array();
    for (const FailedRow& row : done.failed) {
      failed.push_back({{"file", row.file},
                        {"agent", row.agent},
                        {"tier", row.tier},
                        {"task", row.task},
                        {"seed", row.seed},
                        {"reason", row.reason}});
    }
    print(json_text({{"made", done.made}, {"found", done.found}, {"failed", std::move(failed)}}));
  } else {
    std::string text;
    for (const std::string& file : done.made) text += "made  " + run.rows + "/" + file + "\n";
    print(text + std::to_string(done.made.size()) + " rows made, " +
          std::to_string(done.found.size()) + " were there, in " + run.rows + "\n");
  }
  if (done.failed.empty()) return;
  const FailedRow& first = done.failed.front();
  std::string names;
  for (const FailedRow& row : done.failed) {
    names += (names.empty() ? "" : ", ") + row.agent + " (" + std::to_string(row.tier) + ")";
  }
  throw RunError(std::to_string(done.failed.size()) + " rows failed: " + names +
                 "; the first: " + first.agent + ", task '" + first.task + "', seed " +
                 std::to_string(first.seed) + ": " + first.reason);
}

// --- submit ---

struct SubmitOptions {
  std::string file;
  std::string suite;
  std::string rows = kRows;
  bool json = false;
};

// What follows from the assignments of a draft.
void fill_in(Submission& row, const Suite& suite) {
  if (row.revision == 0) row.revision = suite.revision;
  if (row.code_version.empty()) row.code_version = DOPPLER_VERSION;
  for (SubmissionTask& task : row.tasks) {
    const auto found = std::find_if(suite.tasks.begin(), suite.tasks.end(),
                                    [&](const SuiteTask& item) { return item.name == task.name; });
    if (found == suite.tasks.end()) continue;  // told by the verification
    if (task.hash == 0) task.hash = found->hash;
    for (SubmissionRun& run : task.runs) {
      if (run.makespans.empty()) {
        if (!suite.is_simulated()) {
          throw UsageError(
              "a row of a real engine needs its makespans, and critical-path's from "
              "the same machine; see doppler-gym leaderboard run");
        }
        run.makespans = measure(suite, *found, run.assignment);
      }
      if (!run.curve.empty()) continue;
      double sum = 0;
      for (const double makespan : run.makespans) sum += makespan;
      run.curve = {{run.evaluations, run.seconds, sum / static_cast<double>(run.makespans.size())}};
    }
  }
}

std::string fault_text(const std::string& path, const std::vector<std::string>& faults) {
  std::string text = path + ": the row does not hold";
  constexpr std::size_t kMostShown = 8;
  for (std::size_t i = 0; i < std::min(faults.size(), kMostShown); ++i) text += "\n  " + faults[i];
  if (faults.size() > kMostShown) {
    text += "\n  and " + std::to_string(faults.size() - kMostShown) + " more";
  }
  return text;
}

void submit(const SubmitOptions& options) {
  Verifier verifier(options.suite.empty() ? std::vector<Suite>{} : suites_of(options.suite));
  Submission row = parse_submission(read_file(options.file), options.file, Completeness::draft);
  const Suite& suite = verifier.suite_of(row.suite);
  try {
    fill_in(row, suite);
  } catch (const InvalidError& error) {
    throw InvalidError(options.file + ": " + error.what());
  }
  const Verification verification = verifier.verify(row);
  if (!verification.holds()) throw RunError(fault_text(options.file, verification.faults));
  const std::string path = options.rows + "/" + row.file_name();
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  if (code) throw RunError(path + ": cannot make the folder: " + code.message());
  if (std::filesystem::exists(path, code)) {
    throw UsageError(path +
                     " is there; remove it to have another row of this agent, its authors "
                     "and tier");
  }
  save(path, to_json(row));
  if (options.json) {
    print(json_text({{"file", path}, {"executions", verification.n_executions}}));
  } else {
    print(path + ": verified by " + std::to_string(verification.n_executions) + " executions\n");
  }
}

// --- verify ---

struct VerifyOptions {
  std::vector<std::string> files;
  std::string suite;
  std::string rows = kRows;
  bool all = false;
  bool no_real = false;
  bool json = false;
};

Json verification_json(const CheckedFile& file) {
  Json spreads = Json::array();
  for (const Spread& spread : file.verification.spreads) {
    spreads.push_back({{"task", spread.task},
                       {"seed", spread.seed},
                       {"row", {spread.row_least, spread.row_largest}},
                       {"here", {spread.here_least, spread.here_largest}}});
  }
  return {{"file", file.path},
          {"format", file.format},
          {"holds", file.verification.holds()},
          {"faults", file.verification.faults},
          {"executions", file.verification.n_executions},
          {"spreads", std::move(spreads)}};
}

std::string spread_text(const CheckedFile& file) {
  if (file.verification.spreads.empty()) return {};
  Table table({{"task"}, {"seed", Align::right}, {"row", Align::right}, {"here", Align::right}});
  for (const Spread& spread : file.verification.spreads) {
    const Unit unit = time_unit(std::max(spread.row_largest, spread.here_largest), false);
    table.add({spread.task, std::to_string(spread.seed),
               in_unit(spread.row_least, unit) + " .. " + with_unit(spread.row_largest, unit),
               in_unit(spread.here_least, unit) + " .. " + with_unit(spread.here_largest, unit)});
  }
  return file.path + "\n" + table.to_string();
}

void verify(const VerifyOptions& options) {
  std::vector<std::string> paths = options.files;
  if (options.all == !paths.empty()) {
    throw UsageError("say what to verify: files, or --all for every row below --rows");
  }
  if (options.all) paths = files_below(options.rows, ".json");
  if (paths.empty()) throw UsageError(options.rows + " holds no rows");
  FileChecker checker(options.suite.empty() ? std::vector<Suite>{} : suites_of(options.suite),
                      !options.no_real);
  Progress progress(paths.size());
  Json list = Json::array();
  std::string spreads;
  std::vector<std::string> refused;
  std::string first;
  std::int64_t n_executions = 0;
  for (const std::string& path : paths) {
    const CheckedFile file = checker.check(path);
    n_executions += file.verification.n_executions;
    if (options.json) list.push_back(verification_json(file));
    spreads += spread_text(file);
    if (!file.verification.holds()) {
      if (first.empty()) first = fault_text(path, file.verification.faults);
      refused.push_back(path);
    }
    progress.advance(path);
  }
  if (options.json) {
    print(json_text({{"files", paths.size()},
                     {"executions", n_executions},
                     {"refused", refused},
                     {"results", std::move(list)}}));
  } else {
    print(spreads + std::to_string(paths.size() - refused.size()) + " of " +
          std::to_string(paths.size()) + " files hold (" + std::to_string(n_executions) +
          " executions)\n");
  }
  if (!refused.empty()) {
    throw RunError(std::to_string(refused.size()) + " of " + std::to_string(paths.size()) +
                   " files do not hold; the first: " + first);
  }
}

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

// --- work ---

struct WorkOptions {
  std::int64_t result_fd = -1;
  std::string plugin;
  bool describe = false;
};

void work(const WorkOptions& options) {
  const auto output = static_cast<int>(options.result_fd);
  if (options.describe) {
    try {
      describe_agents(register_plugin(options.plugin), output);
    } catch (const Error& error) {
      describe_failure(error.what(), output);
    }
    return;
  }
  if (!options.plugin.empty()) register_plugin(options.plugin);
  std::vector<DecisionKey> keys;
  for (std::string line; std::getline(std::cin, line);) {
    keys.push_back(parse_decision_key(line, "standard input"));
  }
  serve_decisions(keys, output);
}

void add_rank_options(Command& command, RankOptions& options) {
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options.rows));
  command.option({"--suite", "NAME", "One suite, by name or file. Default: all that have rows"},
                 into(options.suite));
  command.option({"--bootstrap-samples", "N", "Of the intervals. Default 2000"},
                 into(options.samples, 100, 1000000));
}

void add_run(Command& leaderboard) {
  Command command = leaderboard.add("run", kRunHelp);
  auto options = std::make_shared<RunOptionsOfCommand>();
  LeaderboardRun& run_options = options->run;
  run_options.rows = kRows;
  command.option({"--suite", "NAME", "A suite by name, or a file (.json)"}, into(run_options.suite),
                 true);
  command.option({"--agents,--agent", "X,Y", "Agents, with parameters where wanted"},
                 into(run_options.agents));
  command.option({"--plugin", "FILE",
                  "A shared library with agents (agents/plugin.h); without "
                  "--agents all of them"},
                 into(run_options.plugin));
  command.option({"--tiers,--tier", "N,M", "Budgets of the suite, in evaluations. Default: all"},
                 into(options->tiers));
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(run_options.rows));
  command.flag("--resume", "Keep what is there, and make what is missing", run_options.resume);
  command.option({"--jobs", "N",
                  "Processes side by side; 0: one a core. More may disturb "
                  "seconds; a real engine has one. Default 1; with --ray 0"},
                 [options](const std::string& name, const std::vector<std::string>& values) {
                   into(options->jobs.emplace(), 0, 1024)(name, values);
                 });
  command.option({"--memory", "GIB", "The most memory of an agent's process. Default 8"},
                 into(options->memory, 0.0625, 1e6));
  command.option({"--ray", "ADDRESS",
                  "A Ray cluster that this machine belongs to and that makes the decisions: "
                  "HOST:PORT, 'auto', or 'local' for one of its own"},
                 into(options->ray));
  command.group("What the rows say");
  command.option({"--training", "FILE",
                  "What the agents had learnt beforehand: a file with tasks, "
                  "evaluations and seconds, or the folder of a training run"},
                 into(run_options.training));
  command.option({"--kind", "KIND",
                  "heuristic, search, learned or other. Default: what the agent "
                  "says"},
                 into(run_options.kind));
  command.option({"--authors", "A,B", "Who made the agent"}, into(run_options.authors));
  command.option({"--link", "URL", "Where more is told of it"}, into(run_options.link));
  command.option({"--note", "TEXT", "What should be known of the rows"}, into(run_options.note));
  command.group("Options");
  command.flag("--json", "Print an object", options->json);
  command.run([options] { run(*options); });
}

void add_submit(Command& leaderboard) {
  Command command = leaderboard.add("submit", kSubmitHelp);
  auto options = std::make_shared<SubmitOptions>();
  command.option({"FILE", "FILE", "The row, or its draft"}, into(options->file), true);
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options->rows));
  command.option({"--suite", "FILE", "The file of a suite that is not of this build"},
                 into(options->suite));
  command.flag("--json", "Print an object", options->json);
  command.run([options] { submit(*options); });
}

void add_verify(Command& leaderboard) {
  Command command = leaderboard.add("verify", kVerifyHelp);
  auto options = std::make_shared<VerifyOptions>();
  command.option({"FILES", "FILE...", "Rows"},
                 [options](const std::string&, const std::vector<std::string>& values) {
                   options->files = values;
                 });
  command.flag("--all", "Every row of the folder", options->all);
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options->rows));
  command.option({"--suite", "FILE", "The file of a suite that is not of this build"},
                 into(options->suite));
  command.flag("--no-real", "Do not execute rows of real engines", options->no_real);
  command.flag("--json", "Print an object", options->json);
  command.run([options] { verify(*options); });
}

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

}  // namespace

void add_leaderboard(Command& program) {
  Command leaderboard = program.add("leaderboard", kHelp);
  Command listing = leaderboard.add("suites", kSuitesHelp);
  auto options = std::make_shared<SuitesOptions>();
  listing.option({"--suite", "NAME", "One suite, by name or file"}, into(options->suite));
  listing.option({"--fill", "FILE", "Fill in what follows from the rest of a suite's file"},
                 into(options->fill));
  listing.flag("--json", "Print an object", options->json);
  listing.run([options] { show_suites(*options); });
  add_run(leaderboard);
  add_submit(leaderboard);
  add_verify(leaderboard);
  add_rank(leaderboard);
  add_report(leaderboard);

  Command working = leaderboard.add("work", kWorkHelp);
  auto work_options = std::make_shared<WorkOptions>();
  working.option({"--result-fd", "N", "The open file that records are written to"},
                 into(work_options->result_fd, 0, 1000000), true);
  working.option({"--plugin", "FILE", "A shared library with agents"}, into(work_options->plugin));
  working.flag("--describe", "Tell the plugin's agents and end", work_options->describe);
  working.run([work_options] { work(*work_options); });
}

}  // namespace doppler::cli
