#include "agents/search/matching.h"

#include <limits>

namespace doppler {

std::vector<std::size_t> least_cost_matching(std::span<const double> costs, std::size_t n_rows,
                                             std::size_t n_columns) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::size_t none = n_rows;
  // Reduced costs, cost - row price - column price, stay >= 0, and 0 on matched pairs.
  std::vector<double> row_price(n_rows, 0);
  std::vector<double> column_price(n_columns, 0);
  std::vector<std::size_t> row_of(n_columns, none);
  std::vector<double> distance(n_columns);
  std::vector<std::size_t> previous(n_columns);  // the column before it on its path; itself: none
  std::vector<char> done(n_columns);

  for (std::size_t start = 0; start < n_rows; ++start) {
    // The shortest path from the new row to a free column, over matched pairs.
    distance.assign(n_columns, kInfinity);
    done.assign(n_columns, 0);
    std::size_t row = start;
    std::size_t column = n_columns;  // by which `row` was reached; n_columns: it is the new row
    double length = 0;
    while (true) {
      for (std::size_t c = 0; c < n_columns; ++c) {
        if (done[c]) continue;
        const double reduced = costs[row * n_columns + c] - row_price[row] - column_price[c];
        if (length + reduced >= distance[c]) continue;
        distance[c] = length + reduced;
        previous[c] = column == n_columns ? c : column;
      }
      column = n_columns;
      for (std::size_t c = 0; c < n_columns; ++c) {
        if (!done[c] && (column == n_columns || distance[c] < distance[column])) column = c;
      }
      done[column] = 1;
      length = distance[column];
      if (row_of[column] == none) break;
      row = row_of[column];
    }
    row_price[start] += length;
    for (std::size_t c = 0; c < n_columns; ++c) {
      if (!done[c] || c == column) continue;
      row_price[row_of[c]] += length - distance[c];
      column_price[c] -= length - distance[c];
    }
    while (previous[column] != column) {
      row_of[column] = row_of[previous[column]];
      column = previous[column];
    }
    row_of[column] = start;
  }

  std::vector<std::size_t> result(n_rows);
  for (std::size_t c = 0; c < n_columns; ++c) {
    if (row_of[c] != none) result[row_of[c]] = c;
  }
  return result;
}

}  // namespace doppler
