// The assignment problem: which column each row gets so that the sum of costs is least.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace doppler {

// `costs` is row-major [n_rows, n_columns], finite, n_rows <= n_columns. Returns the column of each
// row, all different, of least total cost. Shortest augmenting paths with potentials (Jonker,
// Volgenant, Computing 38, 1987); O(n_rows^2 x n_columns).
std::vector<std::size_t> least_cost_matching(std::span<const double> costs, std::size_t n_rows,
                                             std::size_t n_columns);

}  // namespace doppler
