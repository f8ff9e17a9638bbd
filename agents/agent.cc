#include "agents/agent.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace doppler {

void AssignOptions::check() const {
  if (max_evaluations < 1) {
    throw UsageError("max_evaluations is " + std::to_string(max_evaluations) +
                     "; give 1 or more, for the assignment that is returned is always measured");
  }
  if (!(max_seconds >= 0)) {
    throw UsageError("max_seconds is " + std::to_string(max_seconds) + "; give 0 or more seconds");
  }
}

void Decision::check(const Task& task) const {
  try {
    assignment.check(task.graph, task.cluster);
  } catch (const InvalidError& error) {
    throw RunError("the agent returned an assignment that does not fit task '" + task.name +
                   "': " + error.what());
  }
}

void Agent::begin(std::shared_ptr<const PlacementModel> /*model*/, std::uint64_t /*seed*/) {}

NodeId Agent::select(const PartialSchedule& /*schedule*/) {
  throw std::logic_error("this agent has no step interface; call decide()");
}

DeviceId Agent::place(const PartialSchedule& /*schedule*/, NodeId /*node*/) {
  throw std::logic_error("this agent has no step interface; call decide()");
}

Decision Agent::decide(std::shared_ptr<const PlacementModel> model, const AssignOptions& options) {
  PartialSchedule schedule(model);
  begin(std::move(model), options.seed);
  while (!schedule.complete()) {
    const NodeId node = select(schedule);
    schedule.place(node, place(schedule, node));
  }
  return {.assignment = schedule.assignment()};
}

AssignResult assign(Agent& agent, const Task& task, const AssignOptions& options) {
  options.check();
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Improvement> told;
  AssignOptions watched = options;
  if (options.on_better) {
    watched.on_better = [&](const Improvement& improvement) {
      told = improvement;
      options.on_better(improvement);
    };
  }
  Decision decision = agent.decide(std::make_shared<const PlacementModel>(task), watched);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  decision.check(task);
  AssignResult result{.assignment = std::move(decision.assignment),
                      .evaluations = decision.evaluations,
                      .seconds = spent.count()};
  result.makespan = task.simulator().makespan(result.assignment.devices);
  if (!decision.makespan) {
    ++result.evaluations;
  } else if (*decision.makespan != result.makespan) {
    throw RunError("the agent claims a makespan of " + std::to_string(*decision.makespan) +
                   " s on task '" + task.name + "', the simulator gives " +
                   std::to_string(result.makespan) + " s");
  }
  if (result.evaluations > options.max_evaluations) {
    throw RunError("the agent used " + std::to_string(result.evaluations) + " evaluations of " +
                   std::to_string(options.max_evaluations) + " allowed");
  }
  if (options.on_better && !(told && told->makespan <= result.makespan)) {
    options.on_better({result.evaluations, result.seconds, result.makespan});
  }
  return result;
}

}  // namespace doppler
