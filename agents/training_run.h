// A training run in a folder: a trainer, its metrics, and checkpoints from which it goes on to the
// same bits (docs/training.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agents/training.h"
#include "agents/training_config.h"
#include "agents/training_folder.h"

namespace doppler {

using TrainingTasks = std::vector<std::shared_ptr<const PlacementModel>>;

// What a run has come to on one of its tasks.
struct TrainedResult {
  std::string task = {};
  Assignment assignment = {};  // the best that was measured, or what the policy decides
  double makespan = 0;         // seconds; one run of the simulator that is not counted
  double lower_bound = 0;      // seconds
};

// Serves one thread.
class TrainingRun {
 public:
  enum class State {
    running,
    over,           // the trainer has done everything
    out_of_seconds  // TrainOptions::max_seconds are spent; more would let it go on
  };

  // Starts a run in a new folder. Fills what `config` records of the run (but code_version); keeps
  // options.initial_policy. Throws what make_trainer() and TrainingFolder::create() throw; then
  // nothing was written.
  static TrainingRun start(const std::string& folder, TrainingConfig config,
                           const TrainingTasks& tasks);
  // Continues the run of a folder from its last checkpoint. `wanted` may differ from
  // folder.config() where check_same_run() allows it. Throws UsageError for tasks that are not
  // those of the run, ParseError for a checkpoint that is refused; then nothing was changed.
  static TrainingRun resume(TrainingFolder folder, TrainingConfig wanted,
                            const TrainingTasks& tasks);

  // One update, its line of metrics, and a checkpoint if one is due or the run ends. Returns
  // whether there was one. Throws RunError if the trainer fails: the last checkpoint stays.
  bool update();
  // Writes a checkpoint now, with the policy and the best assignments.
  void checkpoint();

  [[nodiscard]] State state() const;
  [[nodiscard]] const TrainingFolder& folder() const { return folder_; }
  [[nodiscard]] const TrainingConfig& config() const { return folder_.config(); }
  [[nodiscard]] const Task& task(std::size_t index) const { return tasks_[index]->task(); }
  [[nodiscard]] TrainProgress progress() const { return trainer_->progress(); }
  [[nodiscard]] double seconds() const;  // of this process and of those before
  // Updates that this process began with: 0 unless it continued.
  [[nodiscard]] std::int64_t first_update() const { return first_update_; }
  // By task. Throws RunError for an assignment that does not fit or a makespan that the simulator
  // does not confirm.
  [[nodiscard]] std::vector<TrainedResult> results() const;

 private:
  TrainingRun(TrainingFolder folder, std::unique_ptr<Trainer> trainer, TrainingTasks tasks);
  [[nodiscard]] bool is_saved() const;
  [[nodiscard]] bool checkpoint_is_due() const;
  void add_metrics();
  void write_results() const;  // policy and best assignments

  using Clock = std::chrono::steady_clock;

  TrainingFolder folder_;
  std::unique_ptr<Trainer> trainer_;
  TrainingTasks tasks_;
  bool over_ = false;
  double seconds_ = 0;  // of earlier processes; of all of them once it is over
  Clock::time_point begin_ = Clock::now();
  Clock::time_point saved_ = begin_;
  std::int64_t first_update_ = 0;
  std::int64_t saved_updates_ = 0;  // of the last checkpoint
  bool saved_over_ = false;
  bool has_checkpoint_ = false;
};

}  // namespace doppler
