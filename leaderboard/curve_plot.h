// Curves of the best makespan against evaluations and against seconds, as one SVG a task.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leaderboard/result_row.h"
#include "leaderboard/result_summary.h"

namespace doppler {

enum class CurveAxis { evaluations, seconds };

// The median over the rows of the best makespan after x evaluations or seconds: points (x,
// makespan) at each x where it changes, from the first x where every row has measured something, to
// the median of what the rows used. Requires rows.
std::vector<std::pair<double, double>> median_curve(std::span<const ResultRow* const> rows,
                                                    CurveAxis axis);

// A picture of the summaries of one task: a panel against evaluations, one against seconds, both
// axes logarithmic. y is the excess over the least makespan of any row of the task; what is within
// 0.01 % of it lies on the lowest line. A colour an agent; smaller budgets are dashed; an agent
// with one evaluation is a dot, whose level a thin line shows. Requires a summary; all are of one
// task.
std::string curves_svg(std::span<const ResultSummary> summaries);

}  // namespace doppler
