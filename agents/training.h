// Trainer: one training run of a learned agent, update by update, which can be stopped and resumed.
//
// An agent that learns registers AgentEntry::train beside `make`. The training tool
// (agents/training_run.h, `doppler-gym train`) knows nothing else of it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "agents/demonstrations.h"

namespace doppler {

struct TrainOptions {
  // Which stages, ascending: 1 imitation, 2 simulator, 3 real engine.
  std::vector<int> stages = {1, 2};
  std::uint64_t seed = 0;
  // Runs of the simulator for all tasks and stages together; 0: as many as the agent's parameters
  // say (a number of episodes), which an agent without such parameters refuses.
  std::int64_t max_evaluations = 10'000;
  double max_seconds = std::numeric_limits<double>::infinity();
  int n_threads = 1;             // of rollouts and evaluations
  std::string device = "cpu";    // of the gradients: "cpu" or "cuda"
  std::string initial_policy{};  // the content of a policy file (--init-from); empty: from nothing
  // Stage 3: the engine that is learnt on, with parameters, and the most runs of it for all tasks.
  // They are apart from max_evaluations, which counts the simulator's.
  std::string engine = "cpu";
  std::int64_t max_executions = 500;
  // Stage 3 of an agent that explores with care: what exploring may cost in all, as a share of
  // max_executions runs of the assignment that it starts from.
  double max_regret = 0.1;
  // What stage 1 imitates instead of the agent's own teacher; null: that teacher.
  std::shared_ptr<const Demonstrations> demonstrations = nullptr;
  // As AssignOptions::on_better, for the first task: of an agent that trains while it decides.
  std::function<void(const Improvement&)> on_better = {};

  // Throws UsageError that names the field.
  void check() const;
};

// What a run is about.
struct TrainProblem {
  std::vector<std::shared_ptr<const PlacementModel>> tasks = {};  // at least one
  TrainOptions options = {};
};

// How far a run is; one line of the metrics.
struct TrainProgress {
  int stage = 0;                 // of the last update; 0: none yet
  std::int64_t updates = 0;      // gradient steps, or generations
  std::int64_t episodes = 0;     // assignments that a policy decided, measured or not
  std::int64_t evaluations = 0;  // runs of the simulator
  std::int64_t executions = 0;   // stage 3: runs of its engine, failed ones included
  double share = 0;              // of the run that is done, [0, 1], without regard to seconds
  // Least makespan so far, in seconds, of the first task; infinity: none measured.
  double best_makespan = std::numeric_limits<double>::infinity();
  // Of the last update, by name: loss, entropy, learning_rate, mean_makespan, ...
  std::vector<std::pair<std::string, double>> values = {};
};

// Serves one thread; may use threads of its own. Everything that it does depends on the problem and
// the seed alone, for every number of threads (unless max_seconds ends it).
class Trainer {
 public:
  virtual ~Trainer() = default;

  // One update: some episodes and what is learnt from them. Returns false, and does nothing, when
  // the run is over. Throws RunError if the loss or a parameter is no longer finite; the trainer is
  // then as it was before the update.
  virtual bool update() = 0;
  [[nodiscard]] virtual TrainProgress progress() const = 0;
  // The best assignment of a task that was measured; `evaluations` counts the whole run. Before the
  // first evaluation of the task: what the policy decides, unmeasured. After stage 3: what was best
  // on its engine, without a makespan, which is the simulator's.
  [[nodiscard]] virtual Decision best(std::size_t task) const = 0;
  // The content of a policy file: what the agent has learnt, without the state of the run.
  [[nodiscard]] virtual std::string policy() const = 0;
  // Everything. A new trainer of the same problem that restores it continues to the same bits;
  // max_seconds and n_threads may be others.
  [[nodiscard]] virtual std::string state() const = 0;
  // Requires state() of a trainer of the same agent, parameters and problem. Throws ParseError
  // otherwise, and nothing changes.
  virtual void restore(std::string_view state) = 0;
};

// A trainer of the named agent ("doppler(preset=paper)"). Throws UsageError for an agent that does
// not learn, options that do not fit, or stages that it does not have; ParseError for a policy
// that does not fit; RunError where the learned agents are missing. With stage 3,
// its engine runs each task once, all on the first device, and what it cannot take is told here:
// InvalidError or RunError.
std::unique_ptr<Trainer> make_trainer(std::string_view spelling, const TrainProblem& problem);

}  // namespace doppler
