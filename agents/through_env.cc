#include "agents/through_env.h"

#include <chrono>
#include <string>
#include <vector>

namespace doppler {
namespace {

using Clock = std::chrono::steady_clock;

// Gives decisions to an environment as the actions of its mode.
class Player {
 public:
  Player(Env& env, StepListener* listener)
      : env_(env), listener_(listener), action_(env.spec().action.sizes.size()) {}

  // `node` must be a candidate.
  void select(NodeId node) {
    const auto n_nodes = static_cast<std::int64_t>(env_.task().graph.n_nodes());
    if (node.value < 0 || node.value >= n_nodes || !env_.schedule().is_candidate(node)) {
      throw RunError("the agent selects node " + std::to_string(node.value) + " of task '" +
                     env_.task().name + "', which cannot be placed now");
    }
    node_ = node;
    if (mode() == "sequential") step(node.value);
  }

  void place(DeviceId device) {
    const auto n_devices = static_cast<std::int64_t>(env_.task().cluster.n_devices());
    if (device.value < 0 || device.value >= n_devices) {
      throw RunError("the agent places node " + std::to_string(node_.value) + " of task '" +
                     env_.task().name + "' on device " + std::to_string(device.value) + " of " +
                     std::to_string(n_devices));
    }
    if (mode() == "sequential") {
      step(static_cast<std::int64_t>(env_.model().max_nodes()) + device.value);
    } else if (env_.options().factored) {
      action_ = {node_.value, device.value};
      step();
    } else {
      step(node_.value * static_cast<std::int64_t>(env_.model().max_devices()) + device.value);
    }
  }

  // The whole episode from one assignment.
  void play(const Assignment& assignment) {
    if (mode() == "oneshot") {
      for (std::size_t v = 0; v < assignment.size(); ++v) {
        action_[v] = assignment.devices[v].value;
      }
      step();
    } else if (mode() == "place" || mode() == "refine") {
      while (env_.running()) step(assignment[env_.node()].value);
    } else {
      for (NodeId node : env_.schedule().model().b_level_order()) {
        select(node);
        place(assignment[node]);
      }
    }
  }

 private:
  [[nodiscard]] const std::string& mode() const { return env_.options().mode; }
  void step(std::int64_t action) {
    action_.assign(1, action);
    step();
  }
  void step() {
    const StepResult result = env_.step(action_);
    if (listener_ != nullptr) listener_->stepped(env_, action_, result);
  }

  Env& env_;
  StepListener* listener_;
  std::vector<std::int64_t> action_;
  NodeId node_;
};

bool asks_for_nodes(const Env& env) {
  return env.options().mode == "sequential" || env.options().mode == "joint";
}

}  // namespace

AssignResult assign_through_env(Agent& agent, Env& env, const AssignOptions& options,
                                StepListener* listener) {
  options.check();
  env.reset({.seed = options.seed});
  if (listener != nullptr) listener->began(env, options.seed);
  const auto placement = env.model().tasks()[env.task_index()].placement;
  Player player(env, listener);
  AssignResult result;
  const auto begin = Clock::now();
  if (agent.has_steps() && asks_for_nodes(env)) {
    agent.begin(placement, options.seed);
    while (env.running()) {
      const NodeId node = agent.select(env.schedule());
      player.select(node);
      player.place(agent.place(env.schedule(), node));
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  } else {
    const Decision decision = agent.decide(placement, options);
    result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    decision.check(env.task());
    result.evaluations = decision.evaluations;
    player.play(decision.assignment);
  }
  result.assignment = env.result().assignment;
  result.makespan = env.result().makespan;
  result.evaluations += env.result().evaluations;
  return result;
}

}  // namespace doppler
