#include "agents/training.h"

#include <algorithm>

#include "agents/online/executions.h"
#include "executor/shared_engine.h"

namespace doppler {

void TrainOptions::check() const {
  if (stages.empty()) throw UsageError("stages is empty; give some of 1, 2, 3");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i] < 1 || stages[i] > 3) {
      throw UsageError("stages has " + std::to_string(stages[i]) +
                       "; there are 1 (imitation), 2 (simulator) and 3 (real engine)");
    }
    if (i > 0 && stages[i] <= stages[i - 1]) {
      throw UsageError("stages must ascend, as in 1,2; stage " + std::to_string(stages[i]) +
                       " stands after " + std::to_string(stages[i - 1]));
    }
  }
  if (max_evaluations < 0) {
    throw UsageError("max_evaluations is " + std::to_string(max_evaluations) +
                     "; give 1 or more, or 0 for what the agent's parameters say");
  }
  if (!(max_seconds >= 0)) {
    throw UsageError("max_seconds is " + std::to_string(max_seconds) + "; give 0 or more seconds");
  }
  if (n_threads < 1) {
    throw UsageError("n_threads is " + std::to_string(n_threads) + "; give 1 or more");
  }
  if (stages.back() == 3) const SharedEngine unknown_is_told(engine);
  if (max_executions < 1) {
    throw UsageError("max_executions is " + std::to_string(max_executions) + "; give 1 or more");
  }
  if (!(max_regret >= 0) || max_regret > 1e6) {
    throw UsageError("max_regret is " + std::to_string(max_regret) +
                     "; give a share of the executions' time, 0 or more");
  }
  if (device != "cpu" && device != "cuda") {
    throw UsageError("device is '" + device + "'; give cpu or cuda");
  }
}

namespace {

// An engine that cannot run a task says so now: not after other stages, nor as so many failed runs.
void try_engine(const TrainProblem& problem) {
  for (const auto& model : problem.tasks) {
    Executions executions(model, problem.options.engine, problem.options.seed);
    const Assignment first(model->n_nodes(), DeviceId(0));
    for (int i = 0; i < Executions::kMostFailures && !executions.has_run(); ++i) {
      executions.run(first);
    }
  }
}

}  // namespace

std::unique_ptr<Trainer> make_trainer(std::string_view spelling, const TrainProblem& problem) {
  const NamedCall call = NamedCall::parse(spelling);
  const AgentEntry& entry = agents().at(call.name);
  const Parameters parameters(entry.parameters, call);
  if (!entry.train) {
    std::string learning;
    for (const auto& [name, other] : agents()) {
      if (other.train) learning += (learning.empty() ? "" : ", ") + name;
    }
    throw UsageError(
        "the agent '" + entry.name + "' does not learn; " +
        (learning.empty() ? "no agent of this build does" : "agents that do: " + learning) +
        ". doppler-gym assign runs it as it is");
  }
  if (problem.tasks.empty()) throw UsageError("training needs at least one task");
  problem.options.check();
  if (problem.options.demonstrations) {
    const std::vector<int>& stages = problem.options.stages;
    if (!entry.imitates_demonstrations) {
      throw UsageError("the agent '" + entry.name +
                       "' imitates no data set; train doppler with it, or leave it out");
    }
    if (stages.front() != 1) {
      throw UsageError("a data set is for stage 1, imitation, which is not among the stages");
    }
  }
  auto trainer = entry.train(parameters, problem);
  if (problem.options.stages.back() == 3) try_engine(problem);
  return trainer;
}

}  // namespace doppler
