// doppler-gym leaderboard: suites, and the runs of agents that make rows.
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "agents/plugin_agents.h"
#include "cli/commands/commands.h"
#include "cli/commands/leaderboard.h"
#include "cli/json_text.h"
#include "cli/leaderboard_files.h"
#include "cli/leaderboard_run.h"
#include "cli/output.h"
#include "cli/ray.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "leaderboard/isolation.h"
#include "leaderboard/protocol.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

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

constexpr HelpText kWorkHelp = {
    .summary = "What run starts for each agent: decisions from standard input",
    .details = "Not for people: keys of decisions come in, a line each, records go out.",
    .examples = "doppler-gym leaderboard work --result-fd 3 < keys.jsonl"};

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

void add_run(Command& leaderboard) {
  Command command = leaderboard.add("run", kRunHelp);
  auto options = std::make_shared<RunOptionsOfCommand>();
  LeaderboardRun& run_options = options->run;
  run_options.rows = kLeaderboardRows;
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

}  // namespace

std::vector<Suite> suites_of(const std::string& wanted) {
  if (wanted.empty()) return suites();
  return {find_suite(wanted)};
}

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
