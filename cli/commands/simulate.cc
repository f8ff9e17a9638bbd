// doppler-gym simulate: what an assignment costs.
#include <memory>

#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/execution_report.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Makespan of one assignment",
    .details = R"(--json prints an object: makespan (seconds), devices (busy seconds, peak memory in
bytes, nodes), bytes_moved, bytes_local, lower_bound, settings. If a device has too little memory,
makespan is null and out_of_memory names the device with the bytes needed and available; the exit
code is 0, for the simulation itself did not fail.)",
    .examples = R"(doppler-gym simulate --task llama-layer@p100x4 --agent critical-path
doppler-gym simulate --graph model.txt --cluster 'uniform(4)' --network independent \
    --assignment a.json --json)"};

struct SimulateOptions {
  ProblemOptions problem;
  DecisionOptions decision;
  bool timeline = false;
  bool json = false;
};

void simulate(const SimulateOptions& options) {
  if (options.timeline && !options.json) {
    throw UsageError("--timeline adds to --json; give both, or see doppler-gym trace");
  }
  Task task = make_problem(options.problem);
  const Assignment assignment = decide_assignment(options.decision, task);
  task.options.record_timeline = options.timeline;
  const Execution execution = task.simulator().run(assignment);
  if (!options.json) {
    print(execution_text(task, assignment, execution));
    return;
  }
  nlohmann::ordered_json json = execution_json(task, assignment, execution);
  if (!options.timeline) {
    print(json_text(json));
    return;
  }
  json["timeline"] = timeline_json(task, execution);
  print(compact_json_text(json));
}

}  // namespace

void add_simulate(Command& program) {
  Command command = program.add("simulate", kHelp);
  auto options = std::make_shared<SimulateOptions>();
  command.flag("--timeline", "With --json: also start and end of each node and transfer",
               options->timeline);
  command.flag("--json", "Print an object", options->json);
  add_decision_options(command, options->decision);
  add_problem_options(command, options->problem);
  command.run([options] { simulate(*options); });
}

}  // namespace doppler::cli
