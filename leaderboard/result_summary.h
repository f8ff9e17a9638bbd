// Result rows summed up: one line for each task, agent and budget, over the seeds.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leaderboard/result_row.h"

namespace doppler {

// The middle of the sorted values; the mean of the middle two of an even number. Requires a value.
double median(std::vector<double> values);

struct ResultSummary {
  std::string task = {};
  std::string agent = {};
  std::int64_t max_evaluations = 0;
  double max_seconds = 0;
  std::vector<const ResultRow*> rows = {};  // by seed
  // Of the makespan over the seeds, in seconds; infinity: out of memory.
  double median_makespan = 0;
  double least_makespan = 0;
  double largest_makespan = 0;
  double lower_bound = 0;
  // median / least makespan of any row of the task - 1; nothing if it is infinite.
  std::optional<double> over_best = {};
  std::optional<double> over_bound = {};  // the same over the lower bound
  double median_evaluations = 0;          // used
  double median_seconds = 0;              // to decide
};

// Sorted by task, then budget, then median. Refers to the rows. Throws InvalidError if two rows
// have the same key.
std::vector<ResultSummary> summarise(std::span<const ResultRow> rows);

// The summaries of so many rows as an object with full figures; null: out of memory, or no limit.
nlohmann::ordered_json table_json(std::size_t n_rows, std::span<const ResultSummary> summaries);

}  // namespace doppler
