// The options of `doppler-gym train`, and the configuration that they come to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agents/training_config.h"
#include "agents/training_run.h"
#include "cli/command_line.h"
#include "cli/problem.h"

namespace doppler::cli {

// As the user gave them; empty: as the configuration says.
struct TrainingOptions {
  std::vector<std::string> tasks = {};
  std::optional<std::string> graph = {};
  std::optional<std::string> cluster = {};
  std::optional<std::string> agent = {};
  std::vector<std::string> stages = {};
  std::optional<std::int64_t> evaluations = {};
  std::optional<std::string> engine = {};
  std::optional<std::int64_t> executions = {};
  std::optional<double> regret = {};
  std::optional<double> seconds = {};
  std::optional<std::int64_t> seed = {};
  std::optional<std::int64_t> threads = {};
  std::optional<std::string> device = {};
  std::optional<std::string> init_from = {};
  std::optional<std::string> dataset = {};
  std::optional<std::string> checkpoint_every = {};
  bool allow_test_tasks = false;
  SettingOptions settings = {};
};
// Refers to `options` until the command has run.
void add_training_options(Command& command, TrainingOptions& options);

// The configuration with what the user gave in its place; names of files are made absolute, so that
// the run goes on from any folder. Throws UsageError.
TrainingConfig with_options(TrainingConfig config, const TrainingOptions& options);

// The tasks that a configuration names, with its settings and its seed. Throws UsageError if it
// names none, and whatever making them throws.
std::vector<Task> make_training_tasks(const TrainingConfig& config);

}  // namespace doppler::cli
