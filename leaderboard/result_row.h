// A result row: one run of one agent on one task, with the assignment itself, so that anyone can
// run it again. One JSON file a row (docs/result-rows.md).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"
#include "env/task.h"
#include "graphs/assignment.h"
#include "graphs/registry.h"

namespace doppler {

// What a row is of.
struct ResultKey {
  std::string task = {};   // Task::name
  std::string agent = {};  // canonical_agent()
  std::uint64_t seed = 0;
  std::int64_t max_evaluations = 1;
  double max_seconds = std::numeric_limits<double>::infinity();
  // Engine settings other than the task's own, by name: {"noise", 0.1}.
  std::map<std::string, ParameterValue> settings = {};

  // Of the row's file: readable, and different for different keys.
  [[nodiscard]] std::string file_name() const;
  // The task, with the settings if there are any: "ffnn@p100x4 (noise=0.1)".
  [[nodiscard]] std::string task_text() const;
  friend bool operator==(const ResultKey&, const ResultKey&) = default;
};

struct ResultRow {
  ResultKey key = {};
  std::uint64_t task_hash = 0;                            // Task::hash()
  std::map<std::string, ParameterValue> parameters = {};  // of the agent, defaults included
  std::int64_t evaluations = 0;                           // that were used
  double seconds = 0;                                     // to decide
  double makespan = 0;                                    // seconds; infinity: out of memory
  double lower_bound = 0;                                 // seconds; with noise a reference only
  bool raw_costs = false;                                 // "seconds" are raw numbers
  Assignment assignment = {};
  // Every improvement of the best makespan, down to `makespan`.
  std::vector<Improvement> curve = {};
  std::string code_version = {};
  friend bool operator==(const ResultRow&, const ResultRow&) = default;
};

// Runs the agent; `task` has the key's settings. The key's seed is that of the agent and, where the
// task has noise or random choice, of its luck. Throws what assign() and make_agent() throw, and
// RunError for a makespan below a lower bound that is proved.
ResultRow run_row(const ResultKey& key, const Task& task, const std::string& code_version);

// read(write(row)) == row. Throws ParseError that names `source` and the place.
ResultRow parse_row(std::string_view content, const std::string& source);
std::string to_json(const ResultRow& row);

// Throws RunError unless the row's assignment fits the task, gives its makespan there, and the row
// is of this task's hash.
void check_row(const ResultRow& row, const Task& task);

// The task as a row of this seed runs it.
Task with_luck_of(Task task, std::uint64_t seed);

}  // namespace doppler
