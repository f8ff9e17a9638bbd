// doppler-gym trace: an execution as a picture.
#include <memory>
#include <string>

#include "cli/chrome_trace.h"
#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/units.h"
#include "executor/engine.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

constexpr HelpText kHelp = {
    .summary = "Write an execution as a Chrome trace",
    .details = R"(For ui.perfetto.dev or chrome://tracing: a process a device with a thread a slot,
a process for the channels, arrows from producers to transfers to readers. Makespans beyond 1,000 s
(raw costs) are shown shorter by the power of ten in otherData.)",
    .examples =
        R"(doppler-gym trace --task llama-layer@p100x4 --agent critical-path --out trace.json
doppler-gym trace --graph model.txt --cluster 'uniform(4)' --assignment a.json > trace.json)"};

struct TraceOptions {
  std::string engine = "simulator";
  ProblemOptions problem;
  DecisionOptions decision;
  std::string out;
};

void trace(const TraceOptions& options) {
  check_can_save(options.out);
  Task task = make_problem(options.problem);
  const Assignment assignment = decide_assignment(options.decision, task);
  task.options.record_timeline = true;
  const Execution execution =
      make_engine(options.engine)
          ->run(task.graph, task.cluster, task.cost_model, assignment, task.options);
  if (execution.out_of_memory) {
    const OutOfMemory& lack = *execution.out_of_memory;
    const bool raw = has_raw_costs(task);
    throw RunError(task.name + ": device " + std::to_string(lack.device.value) + " needs " +
                   bytes_text(lack.needed, raw) + " and has " + bytes_text(lack.available, raw) +
                   " of memory, so nothing runs; --no-enforce-memory shows it all the same");
  }
  deliver(options.out, chrome_trace(task, execution));
}

}  // namespace

void add_trace(Command& program) {
  Command command = program.add("trace", kHelp);
  auto options = std::make_shared<TraceOptions>();
  command.option(
      {"--engine", "NAME", "What runs it; see doppler-gym tasks --engines. Default: simulator"},
      into(options->engine));
  command.option({"--out", "FILE", "Where to write. Default: standard output"}, into(options->out));
  add_decision_options(command, options->decision);
  add_problem_options(command, options->problem);
  command.run([options] { trace(*options); });
}

}  // namespace doppler::cli
