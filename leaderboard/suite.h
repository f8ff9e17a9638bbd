// A suite: a versioned list of tasks and the protocol by which agents are run on them and ranked.
// One JSON file each, leaderboard/suites/*.json (docs/leaderboard.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "env/task.h"

namespace doppler {

// What a suite changes of a task's engine settings and devices; empty: as the task has it.
struct SuiteSettings {
  std::optional<Network> network = {};
  std::optional<Choice> choice = {};
  std::optional<double> noise = {};
  std::optional<bool> enforce_memory = {};
  std::optional<double> memory = {};  // bytes of each device
  friend bool operator==(const SuiteSettings&, const SuiteSettings&) = default;
};

// One task of a suite. What is marked "filled in" follows from the rest (fill_in()) and is kept in
// the file, so that rows are compared with it and ranked without a graph being built.
struct SuiteTask {
  std::string name = {};  // one of its own in the suite: "ffnn@p100x4, noise 0.1"
  std::string task = {};  // a spelling that make_task() takes
  SuiteSettings settings = {};
  // Kinds of agents that may leave the task out. Such a task counts in no rank.
  std::vector<std::string> exempt = {};

  std::uint64_t hash = 0;                    // filled in: Task::hash() with seed 0
  std::uint64_t graph_hash = 0;              // filled in
  std::uint64_t cluster_hash = 0;            // filled in
  std::int64_t n_nodes = 0;                  // filled in
  std::int64_t n_devices = 0;                // filled in
  bool raw_costs = false;                    // filled in: "seconds" are raw numbers
  double lower_bound = 0;                    // filled in: seconds; a reference where there is luck
  std::optional<double> critical_path = {};  // filled in: its mean makespan by the protocol

  // Whether runs differ by luck: noise or random choice.
  [[nodiscard]] bool has_luck() const;
  friend bool operator==(const SuiteTask&, const SuiteTask&) = default;
};

// A budget for one decision; the tiers of a suite are ranked each by itself.
struct Tier {
  std::int64_t evaluations = 1;  // runs of the engine
  double seconds = 60;           // to decide; wall clock
  friend bool operator==(const Tier&, const Tier&) = default;
};

// What an agent may have learnt beforehand.
struct TrainingRule {
  std::int64_t max_evaluations = 0;
  double max_seconds = 0;
  // Agents that were trained on tasks of the suite are shown without a rank.
  bool held_out = false;
  std::vector<std::string> tasks = {};  // the train split, where the suite has one
  friend bool operator==(const TrainingRule&, const TrainingRule&) = default;
};

struct Suite {
  std::string name = {};
  std::int64_t revision = 1;  // rows of another revision are refused
  std::string summary = {};
  std::string engine = "simulator";       // with parameters where wanted: "cpu(repeats=1)"
  std::vector<std::uint64_t> seeds = {};  // of the agent; one decision a task and seed
  // Executions of each assignment where they differ (luck, real engine); once where they do not.
  std::int64_t n_runs = 1;
  // The luck of run r is the seed first_luck + r, that of an agent's own evaluations its seed:
  // nobody decides by the luck that is measured.
  std::uint64_t first_luck = 1'000'000;
  std::vector<Tier> tiers = {};  // ascending
  TrainingRule training = {};
  std::vector<SuiteTask> tasks = {};

  [[nodiscard]] bool is_simulated() const { return engine == "simulator"; }
  // Throws UsageError that lists the names or the tiers.
  [[nodiscard]] const SuiteTask& task(std::string_view name) const;
  [[nodiscard]] const Tier& tier(std::int64_t evaluations) const;
  // Executions of each assignment of the task.
  [[nodiscard]] std::int64_t n_runs_of(const SuiteTask& task) const;
  friend bool operator==(const Suite&, const Suite&) = default;
};

// The suites of this build, by name.
const std::vector<Suite>& suites();
// A suite of this build, or that of a file (what holds a '/' or ends in ".json"). Throws
// UsageError for an unknown name, ParseError or RunError for a file.
Suite find_suite(std::string_view name_or_path);

// The task with the suite's settings, as an agent of this seed sees it.
Task make_suite_task(const SuiteTask& task, std::uint64_t seed = 0);

// Fills in what follows from the rest: runs critical-path by the protocol, unless the engine is a
// real one. Throws UsageError where critical-path is no measure: out of memory, or makespan 0.
void fill_in(Suite& suite);

// read(write(suite)) == suite. Throws ParseError that names `source` and the place.
Suite parse_suite(std::string_view content, const std::string& source);
std::string to_json(const Suite& suite);

}  // namespace doppler
