// Agent: decides an assignment. Implement the step interface (select and place, one node at a time)
// or assign() as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "env/partial_schedule.h"
#include "env/task.h"
#include "graphs/registry.h"

namespace doppler {

// What an agent may spend on one task. Whichever limit comes first ends it; at least one assignment
// is returned in any case.
struct AssignOptions {
  std::uint64_t seed = 0;
  std::int64_t max_evaluations = 1;  // runs of an engine
  double max_seconds = std::numeric_limits<double>::infinity();
};

// What an agent found.
struct AssignResult {
  Assignment assignment = {};
  double makespan = 0;           // seconds, by the task's engine settings; one evaluation
  std::int64_t evaluations = 0;  // runs of the engine that were used, the last one included
  double seconds = 0;            // to decide, without the last evaluation
  friend bool operator==(const AssignResult&, const AssignResult&) = default;
};

// One agent serves one thread. The default assign() runs the step interface over a PartialSchedule.
class Agent {
 public:
  virtual ~Agent() = default;

  // Before the first step of an episode. All luck of the agent comes from `seed`.
  virtual void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed);
  // One of schedule.candidates(). Throws std::logic_error if the agent has no step interface.
  virtual NodeId select(const PartialSchedule& schedule);
  // A device of the cluster for `node`, which is a candidate.
  virtual DeviceId place(const PartialSchedule& schedule, NodeId node);
  // Whether select() and place() are implemented.
  [[nodiscard]] virtual bool has_steps() const { return true; }
  // The assignment only, with what it cost; assign() below measures it.
  virtual AssignResult decide(std::shared_ptr<const PlacementModel> model,
                              const AssignOptions& options);
};

// Runs an agent on a task: decides, checks and evaluates the assignment once more if the agent did
// not. Throws RunError if the agent returns an assignment that does not fit.
AssignResult assign(Agent& agent, const Task& task, const AssignOptions& options = {});

// A registered agent.
struct AgentEntry : Description {
  std::string family;          // "heuristic", "search", "learned"
  bool deterministic = false;  // the same for every seed
  std::function<std::unique_ptr<Agent>(const Parameters&)> make;
};

// Every agent of this build.
const Registry<AgentEntry>& agents();
// From a spelling with parameters, "annealing(moves=all)"; throws UsageError.
std::unique_ptr<Agent> make_agent(std::string_view spelling);

}  // namespace doppler
