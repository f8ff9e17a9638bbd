// Agent: decides an assignment, by steps (select a node, place it) or as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "env/partial_schedule.h"
#include "env/task.h"
#include "graphs/registry.h"

namespace doppler {

// The least makespan that an agent has measured so far, when it found it.
struct Improvement {
  std::int64_t evaluations = 0;  // runs of the engine up to then, this one included
  double seconds = 0;            // since the agent began
  double makespan = 0;           // seconds
  friend bool operator==(const Improvement&, const Improvement&) = default;
};

// What an agent may spend on one task. Whichever limit comes first ends it; at least one assignment
// is returned in any case.
struct AssignOptions {
  std::uint64_t seed = 0;
  std::int64_t max_evaluations = 1;  // runs of an engine
  double max_seconds = std::numeric_limits<double>::infinity();
  // Called at every improvement, in its order, by the thread that decides; it changes no result.
  // Agents that do not call it are told of by assign() at the end.
  std::function<void(const Improvement&)> on_better = {};

  void check() const;  // throws UsageError for options that leave no evaluation
};

// What an agent found.
struct AssignResult {
  Assignment assignment = {};
  double makespan = 0;           // seconds, by the task's engine settings; one evaluation
  std::int64_t evaluations = 0;  // runs of the engine that were used, the last one included
  double seconds = 0;            // to decide, without the last evaluation
  friend bool operator==(const AssignResult&, const AssignResult&) = default;
};

// What an agent decides, before assign() checks and measures it.
struct Decision {
  Assignment assignment = {};
  // Seconds, if the agent ran the engine on this very assignment.
  std::optional<double> makespan = std::nullopt;
  std::int64_t evaluations = 0;  // runs of the engine that the agent used

  void check(const Task& task) const;  // throws RunError for an assignment that does not fit
};

// One agent serves one thread. Implement begin(), select() and place(), or decide().
class Agent {
 public:
  virtual ~Agent() = default;

  // Before the first step of an episode. All luck of the agent comes from `seed`.
  virtual void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed);
  // One of schedule.candidates(). Throws std::logic_error if the agent has no step interface.
  virtual NodeId select(const PartialSchedule& schedule);
  // A device of the cluster for `node`, which is a candidate. Throws like select().
  virtual DeviceId place(const PartialSchedule& schedule, NodeId node);
  // Whether select() and place() are implemented.
  [[nodiscard]] virtual bool has_steps() const { return true; }
  // The whole assignment. By default one episode of the step interface over a PartialSchedule,
  // without a run of the engine. Keeps to the limits of `options`.
  virtual Decision decide(std::shared_ptr<const PlacementModel> model,
                          const AssignOptions& options);
};

// Runs an agent on a task and measures its assignment by the simulator with the task's options (in
// one evaluation more, if the agent did not run it itself). Throws InvalidError for a task whose
// parts do not fit each other, UsageError for options that leave no evaluation, and RunError if the
// agent returns an assignment that does not fit the task, a makespan that the simulator does not
// confirm, or used more evaluations than allowed.
AssignResult assign(Agent& agent, const Task& task, const AssignOptions& options = {});

class Trainer;
struct TrainProblem;

// A registered agent.
struct AgentEntry : Description {
  std::string family;          // "heuristic", "search", "learned"
  bool deterministic = false;  // the same for every seed
  std::function<std::unique_ptr<Agent>(const Parameters&)> make;
  // For an agent that learns (agents/training.h); empty for one that does not.
  std::function<std::unique_ptr<Trainer>(const Parameters&, const TrainProblem&)> train = {};
  // Whether the trainer takes TrainOptions::demonstrations.
  bool imitates_demonstrations = false;
  // Why `make` would throw RunError in this build; an empty function or string: it does not.
  std::function<std::string()> missing = {};
};

// Every agent of this build, and those that were registered since.
const Registry<AgentEntry>& agents();
// Adds an agent of the application, found by name like any other. Not thread safe: nobody else may
// use agents() meanwhile. Throws UsageError for a name that is taken.
void register_agent(AgentEntry entry);
// From a spelling with parameters, "annealing(moves=all)"; throws UsageError.
std::unique_ptr<Agent> make_agent(std::string_view spelling);
// The spelling with the parameters in the order of their schema: "annealing(moves=all)". Throws
// like make_agent().
std::string canonical_agent(std::string_view spelling);
// Every parameter with its value, given or default. Throws like make_agent().
std::map<std::string, ParameterValue> agent_parameters(std::string_view spelling);

}  // namespace doppler
