// The simulator against a real engine, assignment by assignment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "env/task.h"
#include "graphs/assignment.h"

namespace doppler::cli {

struct ComparisonPlan {
  Task task = {};
  std::string engine = "cpu";       // with parameters
  std::int64_t n_assignments = 50;  // >= 8
  std::int64_t rounds = 5;          // each measures every assignment once
  std::uint64_t seed = 0;           // of the assignments and of the halves
};

// Seconds throughout.
struct ComparedAssignment {
  std::string origin;  // "random", "critical-path", "levels"
  Assignment assignment;
  std::vector<double> rounds = {};  // what the engine measured
  double measured = 0;              // their median
  double before = 0;                // the simulator with the task's own costs
  double after = 0;                 // the simulator with costs fitted to the other half
};

// Of predictions with what was measured.
struct Agreement {
  double spearman = 0;
  double spearman_best_quarter = 0;  // among the quarter that measured best; NaN: it cannot tell
  double kendall = 0;
  double mean_relative_error = 0;
};

struct Comparison {
  std::vector<ComparedAssignment> assignments;
  double span = 0;  // the largest measured makespan over the smallest
  Agreement before;
  Agreement after;
};

// Different assignments, at most `n` (>= 8): what each heuristic agent finds; one that changes
// device at each level, so that nothing is parallel; and, taken so that their simulated makespans
// lie evenly between the best and the worst, random ones of more or less balance and clustered ones
// (whole tensor operations, or runs of the topological order, on one device). Those that do not fit
// into enforced memory are left out.
std::vector<ComparedAssignment> varied_assignments(const Task& task, std::int64_t n,
                                                   std::uint64_t seed);

// Measures in rounds over all assignments, so that a disturbance meets all alike; a first round
// that does not count warms up. Then assignments are split at random into two halves; a profile is
// fitted to the median runs of each, and judged on the other one. Throws what the engine throws.
Comparison compare(const ComparisonPlan& plan);

// Two scatter plots, before and after, as one SVG file.
std::string scatter_svg(const ComparisonPlan& plan, const Comparison& comparison);

}  // namespace doppler::cli
