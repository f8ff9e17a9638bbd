// The configuration of a training run: what config.json of its folder holds, and what a user may
// write for --config. Schema in docs/training.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/training.h"
#include "env/task.h"
#include "graphs/registry.h"

namespace doppler {

// How often a run is saved: after so many seconds, or after so many updates.
struct CheckpointInterval {
  double seconds = 30;       // 0: `updates` counts
  std::int64_t updates = 0;  // 0: `seconds` count

  // "30s", or a number of updates such as "100". Throws UsageError.
  static CheckpointInterval parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const CheckpointInterval&, const CheckpointInterval&) = default;
};

// A task that a run trains on.
struct TrainedTask {
  std::string name = {};
  std::uint64_t hash = 0;  // Task::hash()
  Split split = Split::none;
  friend bool operator==(const TrainedTask&, const TrainedTask&) = default;
};

struct TrainingConfig {
  std::string agent = {};  // a spelling with parameters
  // The problem as the user gave it: spellings of tasks, or a graph file and a cluster. All empty:
  // tasks that exist in a program alone.
  std::vector<std::string> tasks = {};
  std::string graph = {};
  std::string cluster = {};
  // Engine settings other than those of the tasks, by name: {"noise", 0.1}.
  std::map<std::string, ParameterValue> settings = {};
  TrainOptions options = {};   // but for initial_policy, of which the file keeps a hash
  std::string init_from = {};  // the policy file, or the folder of a run, that it came from
  std::string dataset = {};  // the folder of a recorded data set that stage 1 imitates; empty: none
  CheckpointInterval checkpoint_every = {};
  bool allow_test_tasks = false;  // training on tasks of the test split was asked for

  // What a run adds when it starts.
  std::string code_version = {};
  std::vector<TrainedTask> trained_on = {};
  std::uint64_t initial_policy_hash = 0;  // 0: none

  // Of everything that decides the outcome: a checkpoint belongs to one identity.
  [[nodiscard]] std::uint64_t identity() const;
};

// Both throw ParseError that names `source` and the place. A user's file may leave out any field,
// then the default holds; the file of a run must have format and version.
TrainingConfig parse_training_config(std::string_view content, const std::string& source);
TrainingConfig parse_run_config(std::string_view content, const std::string& source);
std::string to_json(const TrainingConfig& config);

// Throws UsageError that names the first field in which a continued run would differ from how it
// was started. `seconds`, `threads` and `checkpoint_every` may change.
void check_same_run(const TrainingConfig& started, const TrainingConfig& wanted);

}  // namespace doppler
