// Runs of stage III's engine: a real one, or a simulator that stands for one.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "env/partial_schedule.h"
#include "executor/shared_engine.h"

namespace doppler {

// One run of an assignment.
struct ExecutionResult {
  Execution execution = {};  // with its timeline; makespan infinity if it failed
  std::string failure = {};  // why; empty: it did not
  double seconds = 0;        // that the call took
  // What the run counts in learning: the makespan, or the penalty of a failed run; seconds.
  double cost = 0;
};

// Counts the runs of one task on one engine. A run that fails (RunError, too little memory) is a
// result like any other: it costs kPenalty time scales of the task. One thread at a time.
class Executions {
 public:
  static constexpr double kPenalty = 10;  // time scales
  // An engine that fails so often before its first success cannot run the task.
  static constexpr int kMostFailures = 3;

  // `engine` is a spelling with parameters. Throws UsageError for an unknown one.
  Executions(std::shared_ptr<const PlacementModel> model, const std::string& engine,
             std::uint64_t seed);

  // Run number n_runs() has the luck of (seed, n_runs()): the same for a run that is continued.
  // Throws InvalidError for an assignment, or a graph, that the engine does not take, and RunError
  // if the first kMostFailures runs failed for another reason than memory.
  ExecutionResult run(const Assignment& assignment);

  // The engine takes the task: a run succeeded, or lacked nothing but memory.
  [[nodiscard]] bool has_run() const { return has_run_; }
  [[nodiscard]] std::int64_t n_runs() const { return n_runs_; }
  void set_n_runs(std::int64_t n_runs) { n_runs_ = n_runs; }
  [[nodiscard]] const std::string& engine() const { return engine_.spelling(); }
  [[nodiscard]] const PlacementModel& model() const { return *model_; }

 private:
  std::shared_ptr<const PlacementModel> model_;
  SharedEngine engine_;
  std::uint64_t seed_;
  std::int64_t n_runs_ = 0;
  bool has_run_ = false;
  int n_failures_ = 0;
};

}  // namespace doppler
