// The options that select a problem, shared by all subcommands: a task by name, or a graph on a
// cluster; and the settings of the engine, which also override those of a task.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "env/task.h"

namespace doppler::cli {

// Engine settings as the user gave them; empty: as the task says.
struct SettingOptions {
  std::optional<std::string> network = {};
  std::optional<std::string> choice = {};
  std::optional<std::string> schedule = {};
  std::optional<std::string> inputs = {};  // "replicated", or the device where all inputs lie
  std::optional<double> noise = {};
  std::optional<bool> enforce_memory = {};
  std::optional<std::int64_t> streams = {};
  std::optional<std::string> profile = {};
};

struct ProblemOptions {
  std::optional<std::string> task = {};
  std::optional<std::string> graph = {};
  std::optional<std::string> cluster = {};
  SettingOptions settings = {};
  std::int64_t seed = 0;  // of noise and random choice, and of an agent's luck
};

// Both refer to `options` until the command has run.
void add_problem_options(Command& command, ProblemOptions& options);
void add_setting_options(Command& command, SettingOptions& options);

// The problem, checked. A graph on a cluster is named "FILE@CLUSTER" (without the
// folder), takes raw costs if it has
// them (then memory is not enforced), and otherwise what the cluster says. Throws UsageError,
// InvalidError, ParseError or RunError.
Task make_problem(const ProblemOptions& options);
Task make_problem_of_task(const std::string& spelling, const SettingOptions& settings);
Task make_problem_of_graph(const std::string& path, const std::string& cluster,
                           const SettingOptions& settings);

// A graph file of any readable format; "-" is standard input.
Graph load_graph(const std::string& path);
// An assignment file that fits the problem; a mistake names the file.
Assignment load_assignment(const std::string& path, const Task& task);

// Whether costs are raw numbers rather than seconds.
bool has_raw_costs(const Task& task);
// The settings as --json shows them.
nlohmann::json settings_json(const Task& task);
// The same in words: "network channel, choice fifo".
std::string settings_text(const Task& task);

}  // namespace doppler::cli
