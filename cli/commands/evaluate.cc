// doppler-gym evaluate: the table of agents on tasks.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/evaluation.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Compare agents on tasks",
    .details = R"(Each row: mean makespan ± half of its 95 % interval (Student's t over the seeds);
best makespan; mean over the mean of critical-path; mean above the lower bound, which is a
reference only where there is noise; mean seconds to decide and evaluations used. Where nothing
depends on luck one seed is run and there is no interval. Raw costs have no unit.)",
    .examples = R"(doppler-gym evaluate
doppler-gym evaluate --tasks 'llama-layer@p100x4,chainmm(n=4096,shards=8)@v100x8' \
    --agents critical-path,partner-list --seeds 20
doppler-gym evaluate --graph model.txt --cluster 'uniform(4)' --network independent --json)"};

struct EvaluateOptions {
  std::vector<std::string> tasks;
  std::vector<std::string> graphs;
  std::optional<std::string> cluster;
  SettingOptions settings;
  std::vector<std::string> agents;
  std::int64_t seeds = 10;
  std::int64_t first_seed = 0;
  BudgetOptions budget;
  std::int64_t jobs = 1;
  std::string out;
  bool json = false;
};

std::vector<std::string> paper_tasks() {
  return {"chainmm@p100x4", "ffnn@p100x4", "llama-block@p100x4", "llama-layer@p100x4"};
}

std::vector<std::string> all_heuristics() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : agents()) {
    if (entry.family == "heuristic") names.push_back(name);
  }
  return names;
}

EvaluationPlan plan_of(const EvaluateOptions& options) {
  if (options.cluster.has_value() == options.graphs.empty()) {
    throw UsageError(options.cluster
                         ? "--cluster goes with --graph; a task names its own: workload@" +
                               *options.cluster
                         : "--graph needs --cluster, such as --cluster 'uniform(4)' or p100x4");
  }
  EvaluationPlan plan;
  plan.agents = options.agents.empty() ? all_heuristics() : options.agents;
  for (const std::string& agent : plan.agents) {
    if (agent != kBestKnown) named_agent(agent);  // a slip is told before any run
  }
  const bool none_named = options.tasks.empty() && options.graphs.empty();
  for (const std::string& task : none_named ? paper_tasks() : options.tasks) {
    plan.tasks.push_back(make_problem_of_task(task, options.settings));
  }
  for (const std::string& graph : options.graphs) {
    plan.tasks.push_back(make_problem_of_graph(graph, *options.cluster, options.settings));
  }
  plan.first_seed = options.first_seed;
  plan.n_seeds = options.seeds;
  plan.budget = options.budget;
  plan.jobs = static_cast<int>(options.jobs);
  return plan;
}

Json row_json(const EvaluationRow& row) {
  return {{"task", row.task},
          {"agent", row.agent},
          {"mean", row.mean},
          {"interval", json_or_null(row.interval)},
          {"best", row.best},
          {"ratio", json_or_null(row.ratio)},
          {"lower_bound", row.lower_bound},
          {"gap", json_or_null(row.gap)},
          {"seconds", row.seconds},
          {"evaluations", row.evaluations},
          {"out_of_memory", row.n_out_of_memory},
          {"makespans", row.makespans}};
}

Json plan_json(const EvaluationPlan& plan, const std::vector<EvaluationRow>& rows) {
  Json tasks = Json::array();
  for (const Task& task : plan.tasks) {
    tasks.push_back({{"name", task.name},
                     {"nodes", task.graph.n_nodes()},
                     {"devices", task.cluster.n_devices()},
                     {"settings", settings_json(task)}});
  }
  Json list = Json::array();
  for (const EvaluationRow& row : rows) list.push_back(row_json(row));
  return {{"seeds", plan.n_seeds},
          {"first_seed", plan.first_seed},
          {"baseline", kBaseline},
          {"tasks", std::move(tasks)},
          {"rows", std::move(list)}};
}

// The unit for all rows of one task.
Unit unit_of(const Task& task, std::span<const EvaluationRow> rows) {
  double largest = 0;
  for (const EvaluationRow& row : rows) {
    if (std::isfinite(row.mean)) largest = std::max(largest, row.mean);
  }
  return time_unit(largest, has_raw_costs(task));
}

std::string mean_text(const EvaluationRow& row, const Unit& unit) {
  if (row.n_out_of_memory > 0) {
    return "out of memory " + std::to_string(row.n_out_of_memory) + "/" +
           std::to_string(row.makespans.size());
  }
  return in_unit(row.mean, unit) + (row.interval ? " ± " + in_unit(*row.interval, unit) : "") +
         " " + unit.name;
}

std::string evaluations_text(double evaluations) {
  return fixed(evaluations, evaluations == std::floor(evaluations) ? 0 : 1);
}

std::string rows_text(const EvaluationPlan& plan, const std::vector<EvaluationRow>& rows) {
  Table table({{"task"},
               {"agent"},
               {"makespan", Align::right},
               {"best", Align::right},
               {"/critical-path", Align::right},
               {"over bound", Align::right},
               {"decided in", Align::right},
               {"evaluations", Align::right}});
  std::size_t r = 0;
  for (const Task& task : plan.tasks) {
    const Unit unit = unit_of(task, std::span(rows).subspan(r, plan.agents.size()));
    for (std::size_t a = 0; a < plan.agents.size(); ++a, ++r) {
      const EvaluationRow& row = rows[r];
      table.add({row.task, row.agent, mean_text(row, unit), in_unit(row.best, unit),
                 row.ratio ? fixed(*row.ratio, 3) : "-",
                 row.gap ? fixed(100 * *row.gap, 1) + " %" : "-", seconds_text(row.seconds),
                 evaluations_text(row.evaluations)});
    }
  }
  return table.to_string();
}

void run_evaluate(const EvaluateOptions& options) {
  check_can_save(options.out);
  const EvaluationPlan plan = plan_of(options);
  const std::vector<EvaluationRow> rows = evaluate(plan);
  deliver(options.out, options.json ? json_text(plan_json(plan, rows)) : rows_text(plan, rows));
}

}  // namespace

void add_evaluate(Command& program) {
  Command command = program.add("evaluate", kHelp);
  auto options = std::make_shared<EvaluateOptions>();
  command.option({"--tasks,--task", "A,B",
                  "Tasks. Default: chainmm, ffnn, llama-block and llama-layer @p100x4"},
                 into(options->tasks));
  command.option({"--graph,--graphs", "A,B", "Graph files instead, or besides, each on --cluster"},
                 into(options->graphs));
  command.option({"--cluster", "NAME", "With --graph: a preset with parameters, or a cluster file"},
                 into(options->cluster));
  command.option(
      {"--agents,--agent", "X,Y",
       "Agents, with parameters where wanted; best-known: the best assignment known of the task. "
       "Default: all heuristics"},
      into(options->agents));
  command.option({"--seeds", "N", "How many seeds for each. Default 10"},
                 into(options->seeds, 1, 1000000));
  command.option({"--first-seed", "N",
                  "Seeds are N, N + 1, ...: of agents, noise and random choice. Default 0"},
                 into(options->first_seed, 0));
  add_budget_options(command, options->budget);
  command.option({"--jobs", "N",
                  "Threads; 0: one a core. More do not change makespans, but may disturb seconds. "
                  "Default 1"},
                 into(options->jobs, 0, 1024));
  command.option({"--out", "FILE", "Write the table, or the object, there instead of printing it"},
                 into(options->out));
  command.flag("--json",
               "Print an object: rows with full figures and every makespan (null: out of memory)",
               options->json);
  add_setting_options(command, options->settings);
  command.run([options] { run_evaluate(*options); });
}

}  // namespace doppler::cli
