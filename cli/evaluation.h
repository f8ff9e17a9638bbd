// Agents against each other on tasks: runs every (task, agent, seed) and sums up each (task,
// agent).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/decision.h"
#include "env/task.h"

namespace doppler::cli {

// What stands in for an agent's name: the best assignment that is known of the task.
inline constexpr const char* kBestKnown = "best-known";

// The agent to which all others are compared.
inline constexpr const char* kBaseline = "critical-path";

struct EvaluationPlan {
  std::vector<Task> tasks = {};
  std::vector<std::string> agents = {};  // spellings with parameters
  std::int64_t first_seed = 0;
  std::int64_t n_seeds = 10;  // of an agent's luck, and of noise and random choice
  BudgetOptions budget = {};
  int jobs = 1;  // threads; 0: one a core
};

// One agent on one task. Means are over the seeds; seconds and bytes as the task's makespans.
struct EvaluationRow {
  std::string task;
  std::string agent;
  std::vector<double> makespans;        // one a seed; one alone where nothing depends on luck
  double mean = 0;                      // infinity if one is out of memory
  std::optional<double> interval = {};  // half of the 95 % interval of the mean
  double best = 0;                      // the smallest
  std::int64_t n_out_of_memory = 0;     // makespans that are infinite
  std::optional<double> ratio = {};     // mean over the mean of critical-path, if both are finite
  double lower_bound = 0;
  std::optional<double> gap = {};  // mean / lower bound - 1; empty if infinite or no bound
  double seconds = 0;              // mean time to decide
  double evaluations = 0;          // mean runs of the engine used
};

// Rows by task, then agent, in the plan's order. Deterministic but for `seconds` (and for what
// agents do within a limit of seconds): the number of threads plays no part. Throws what the first
// failing run threw, UsageError for a task of which no best assignment is known where it is asked
// for, and RunError for a makespan below the task's lower bound where that is proved.
std::vector<EvaluationRow> evaluate(const EvaluationPlan& plan);

}  // namespace doppler::cli
