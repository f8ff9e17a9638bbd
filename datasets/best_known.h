// The best assignments that are known of registered tasks, each with how it was found.
//
// datasets/best_known/TASK.json, one a task, made by scripts/best_known.py, which only ever writes
// a better one:
//   {"format": "doppler-best-known", "version": 1, "task": "ffnn@p100x4", "task_hash": "16 digits",
//    "makespan": seconds, "agent": "rule-search", "seed": 0, "max_evaluations": 10000,
//    "code_version": "0.1.0", "assignment": [device of each node]}
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "env/task.h"
#include "graphs/assignment.h"

namespace doppler {

struct BestKnown {
  std::string task;
  std::uint64_t task_hash = 0;  // Task::hash() with seed 0
  double makespan = 0;          // seconds, by the task's settings
  Assignment assignment;
  // How it was found: doppler-gym assign --task TASK --agent AGENT --seed SEED
  // --evaluations MAX_EVALUATIONS, by this version of the code.
  std::string agent;
  std::uint64_t seed = 0;
  std::int64_t max_evaluations = 1;
  std::string code_version;
};

// All, by the names of their files. Read once.
std::span<const BestKnown> best_known();
// Of this very task: its graph, cluster, costs and settings, by whatever name; null: none is known.
const BestKnown* find_best_known(const Task& task);

// Throws ParseError that names `source` and the place.
BestKnown parse_best_known(std::string_view content, const std::string& source);

}  // namespace doppler
