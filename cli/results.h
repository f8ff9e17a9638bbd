// Grids of runs whose rows lie in a folder, a file each, so that a run that was broken off goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cli/problem.h"
#include "env/task.h"
#include "leaderboard/result_row.h"

namespace doppler::cli {

struct ResultGrid {
  std::vector<std::string> tasks = {};   // spellings
  std::vector<std::string> agents = {};  // spellings with parameters
  std::vector<std::int64_t> evaluations = {1000};
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t first_seed = 0;
  std::int64_t n_seeds = 1;
  SettingOptions settings = {};  // of every task
};

// One row to be.
struct PlannedRow {
  const Task* task = nullptr;
  ResultKey key = {};
};

// Every row of a grid, each once; `tasks` have its settings. Heuristics have one evaluation,
// whatever the budget; an agent that is the same for every seed, on a task without luck, has one
// seed.
std::vector<PlannedRow> plan_rows(const ResultGrid& grid, const std::vector<Task>& tasks);

// The task of a row, its settings included; not its luck.
Task task_of(const ResultKey& key);

struct RowsDone {
  std::int64_t n_made = 0;
  std::int64_t n_found = 0;  // that were there already
  std::vector<std::string> failures = {};
};

// Runs the rows that the folder lacks, `jobs` side by side, and writes each when it is done. A row
// that fails does not stop the others. Before anything runs it throws ParseError or UsageError for
// a row file that is damaged, or of another task of that name.
RowsDone run_rows(const std::vector<PlannedRow>& rows, const std::string& folder, int jobs);

// Every row of a folder, by name of file. Throws UsageError if it has none.
std::vector<ResultRow> read_rows(const std::string& folder);

}  // namespace doppler::cli
