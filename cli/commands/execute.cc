// doppler-gym execute: an assignment for real.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/execution_report.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/units.h"
#include "executor/engine.h"
#include "executor/runtime/gaps.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Run one assignment on a real engine",
    .details =
        R"(Prints what doppler-gym simulate prints, of the run whose makespan is the median of the
engine's repeats. --json has in addition the engine, makespans (of every repeat, seconds),
simulated (what the simulator says, seconds), median_gap (seconds from a node to the next one that
depends on it, on its slot) and clock_error (seconds by which instants of different devices may be
off). Graph inputs hold numbers drawn from the
engine's seed. One execution runs on a machine at a time; the others wait.)",
    .examples =
        R"(doppler-gym execute --engine cpu --task 'chainmm(n=1024)@cpu2' --agent critical-path
doppler-gym execute --engine 'cpu(repeats=9,emulate_links=false)' --task llama-block@cpu2 \
    --assignment a.json --json)"};

struct ExecuteOptions {
  std::string engine;
  ProblemOptions problem;
  DecisionOptions decision;
  bool timeline = false;
  bool json = false;
};

std::string repeats_text(const Task& task, const Execution& execution, double simulated,
                         const std::string& engine) {
  const bool raw = has_raw_costs(task);
  std::string text = "engine       " + engine;
  if (execution.makespans.size() > 1) {
    const auto [least, most] =
        std::minmax_element(execution.makespans.begin(), execution.makespans.end());
    const Unit unit = time_unit(*most, raw);
    text += ", median of " + std::to_string(execution.makespans.size()) + " runs from " +
            in_unit(*least, unit) + " to " + with_unit(*most, unit);
  }
  if (const auto gap = median_gap(task.graph, execution)) {
    text += "\ngap          " + with_unit(*gap, time_unit(*gap, raw)) +
            " from a node to the next one that depends on it (median)";
  }
  if (execution.clock_error > 0) {
    text += "\nclocks       off by at most " +
            with_unit(execution.clock_error, time_unit(execution.clock_error, raw)) +
            " between devices";
  }
  text += "\nsimulated    " + with_unit(simulated, time_unit(simulated, raw)) + " (" +
          fixed(simulated / execution.makespan, 3) + " of the measured makespan)\n\n";
  return text;
}

void execute(const ExecuteOptions& options) {
  if (options.timeline && !options.json) {
    throw UsageError("--timeline adds to --json; give both, or see doppler-gym trace --engine");
  }
  const std::unique_ptr<Engine> engine = make_engine(options.engine);
  Task task = make_problem(options.problem);
  const Assignment assignment = decide_assignment(options.decision, task);
  task.options.record_timeline = true;
  const Execution execution =
      engine->run(task.graph, task.cluster, task.cost_model, assignment, task.options);
  const double simulated = task.simulator().makespan(assignment.devices);
  if (!options.json) {
    print(repeats_text(task, execution, simulated, options.engine) +
          execution_text(task, assignment, execution));
    return;
  }
  nlohmann::ordered_json json = execution_json(task, assignment, execution);
  json["engine"] = options.engine;
  json["makespans"] = execution.makespans;
  json["simulated"] = std::isfinite(simulated) ? nlohmann::ordered_json(simulated) : nullptr;
  const auto gap = median_gap(task.graph, execution);
  json["median_gap"] = gap ? nlohmann::ordered_json(*gap) : nullptr;
  json["clock_error"] = execution.clock_error;
  if (!options.timeline) {
    print(json_text(json));
    return;
  }
  json["timeline"] = timeline_json(task, execution);
  print(compact_json_text(json));
}

}  // namespace

void add_execute(Command& program) {
  Command command = program.add("execute", kHelp);
  auto options = std::make_shared<ExecuteOptions>();
  command.option({"--engine", "NAME",
                  "An engine with parameters, 'cpu(repeats=5)'; see doppler-gym tasks --engines"},
                 into(options->engine), true);
  command.flag("--timeline", "With --json: also start and end of each node and transfer",
               options->timeline);
  command.flag("--json", "Print an object", options->json);
  add_decision_options(command, options->decision);
  add_problem_options(command, options->problem);
  command.run([options] { execute(*options); });
}

}  // namespace doppler::cli
