// The files of a training run (docs/training.md). Whatever moment a run is killed at, each file but
// the metrics is whole, and the checkpoint is one from which the run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agents/training_config.h"
#include "graphs/assignment.h"
#include "graphs/folder_lock.h"

namespace doppler {

// What checkpoint.bin holds.
struct Checkpoint {
  std::uint64_t identity = 0;      // TrainingConfig::identity()
  double seconds = 0;              // that the run has taken
  std::int64_t metrics_bytes = 0;  // of metrics.jsonl
  bool over = false;               // the trainer has done all of it
  std::string state = {};          // Trainer::state()
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// One process at a time has a folder. Everything throws RunError that names the path where the
// system refuses.
class TrainingFolder {
 public:
  // The folder of a run that is there. Throws UsageError if there is none or another process trains
  // in it, ParseError for a configuration that is damaged or of another version.
  static TrainingFolder open(const std::string& path);
  // A folder for a new run: empty, or made here (not its parent). Throws UsageError, and changes
  // nothing, if it holds a run or anything else.
  static TrainingFolder create(const std::string& path, const TrainingConfig& config);
  // The check of create() alone, to tell a mistake before there is anything to do.
  static void check_can_create(const std::string& path);

  TrainingFolder(TrainingFolder&& other) noexcept;
  TrainingFolder& operator=(TrainingFolder&& other) noexcept;
  ~TrainingFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const TrainingConfig& config() const { return config_; }
  // The file's content; with it config().options.initial_policy.
  void set_config(const TrainingConfig& config);

  // Nothing before the first checkpoint. Throws ParseError for a file that is damaged, of another
  // version, or of another configuration.
  [[nodiscard]] std::optional<Checkpoint> read_checkpoint() const;
  // The metrics reach the disk first. Fills identity and metrics_bytes.
  void write_checkpoint(Checkpoint checkpoint);

  // Cuts the metrics to what a checkpoint knows of; 0: empty. Throws ParseError if there are fewer.
  void cut_metrics(std::int64_t n_bytes);
  // A whole line; requires cut_metrics() before the first.
  void add_metrics(std::string_view line);

  [[nodiscard]] bool has_policy() const;
  void write_policy(std::string_view policy) const;
  // By task: best_assignment.json, or for several tasks a file each in best_assignments/.
  void write_assignments(const std::vector<Assignment>& assignments) const;

  [[nodiscard]] std::string policy_path() const;
  [[nodiscard]] std::string assignment_path(std::size_t task) const;

 private:
  TrainingFolder(std::string path, FolderLock lock);

  std::string path_;
  TrainingConfig config_;
  FolderLock lock_;
  int metrics_ = -1;            // a file to append to
  std::int64_t n_metrics_ = 0;  // its bytes
};

// The content of a policy file: `path` itself, or policy.json in the folder of a run. Throws
// RunError if there is none.
std::string read_policy(const std::string& path);

}  // namespace doppler
