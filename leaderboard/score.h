// Statistics of scores over tasks and runs, as rliable defines them (Agarwal et al., Deep
// Reinforcement Learning at the Edge of the Statistical Precipice, NeurIPS 2021).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace doppler {

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct BootstrapOptions {
  std::int64_t n_samples = 2000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

// scores[task][run]; tasks may have different numbers of runs, each at least one.
using ScoreTable = std::vector<std::vector<double>>;

// The mean of what is left without the lowest and the highest floor(n / 4) values. Requires a
// value. O(n log n).
double interquartile_mean(std::vector<double> values);

// The q-quantile, 0 to 1, with linear interpolation between order statistics (numpy's default).
// Requires values.
double quantile(std::vector<double> values, double q);

// The mean and its percentile bootstrap interval: samples of as many values with replacement.
Interval mean_interval(std::span<const double> values, const BootstrapOptions& options = {});

// The interquartile mean of all scores and its stratified percentile bootstrap interval: in each
// sample the runs of every task are drawn with replacement from the same task's. Requires scores.
// O(samples x scores).
Interval interquartile_mean_interval(const ScoreTable& scores,
                                     const BootstrapOptions& options = {});

// The probability that a run of `x` on a task is better than one of `y` on the same task, where
// less is better and equal is half, averaged over the tasks (the Mann-Whitney statistic over the
// product of the numbers of runs). Requires the same tasks, at least one.
double probability_of_improvement(const ScoreTable& x, const ScoreTable& y);

}  // namespace doppler
