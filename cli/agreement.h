// How well one list of numbers predicts another.
#pragma once

#include <span>

namespace doppler::cli {

// Spearman's rank correlation (American Journal of Psychology 15, 1904): Pearson's correlation of
// the ranks, equal values sharing their mean rank. NaN if one list is constant or shorter than 2.
double spearman(std::span<const double> a, std::span<const double> b);

// Kendall's tau-b (Biometrika 33, 1945): (concordant - discordant pairs) / sqrt((pairs not tied in
// a) (pairs not tied in b)). NaN as above. O(n^2).
double kendall(std::span<const double> a, std::span<const double> b);

// Mean of |predicted - actual| / actual; requires actual > 0.
double mean_relative_error(std::span<const double> predicted, std::span<const double> actual);

}  // namespace doppler::cli
