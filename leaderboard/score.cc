#include "leaderboard/score.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "graphs/hash.h"

namespace doppler {
namespace {

// Draws of splitmix64, the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    state_ += 0x9e3779b97f4a7c15ULL;
    // The upper half of the product: unbiased to within n / 2^32.
    return static_cast<std::size_t>(((mix64(state_) >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

 private:
  std::uint64_t state_;
};

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Interval interval_of(double value, std::vector<double> samples, double confidence) {
  const double tail = (1 - confidence) / 2;
  return {value, quantile(samples, tail), quantile(samples, 1 - tail)};
}

}  // namespace

double interquartile_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t cut = values.size() / 4;
  return mean_of(std::span(values).subspan(cut, values.size() - 2 * cut));
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

Interval mean_interval(std::span<const double> values, const BootstrapOptions& options) {
  const double mean = mean_of(values);
  if (std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); })) {
    return {values.front(), values.front(), values.front()};
  }
  Draws draws(options.seed);
  std::vector<double> samples(static_cast<std::size_t>(options.n_samples));
  for (double& sample : samples) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[draws.below(values.size())];
    sample = sum / static_cast<double>(values.size());
  }
  return interval_of(mean, std::move(samples), options.confidence);
}

Interval interquartile_mean_interval(const ScoreTable& scores, const BootstrapOptions& options) {
  std::vector<double> all;
  for (const auto& task : scores) all.insert(all.end(), task.begin(), task.end());
  const double value = interquartile_mean(all);
  const bool is_fixed = std::all_of(scores.begin(), scores.end(), [](const auto& task) {
    return std::equal(task.begin() + 1, task.end(), task.begin());
  });
  if (is_fixed) return {value, value, value};
  Draws draws(options.seed);
  std::vector<double> samples(static_cast<std::size_t>(options.n_samples));
  for (double& sample : samples) {
    std::size_t place = 0;
    for (const auto& task : scores) {
      for (std::size_t i = 0; i < task.size(); ++i) all[place++] = task[draws.below(task.size())];
    }
    sample = interquartile_mean(all);
  }
  return interval_of(value, std::move(samples), options.confidence);
}

double probability_of_improvement(const ScoreTable& x, const ScoreTable& y) {
  double sum = 0;
  for (std::size_t task = 0; task < x.size(); ++task) {
    double wins = 0;
    for (const double a : x[task]) {
      for (const double b : y[task]) wins += a < b ? 1 : a == b ? 0.5 : 0;
    }
    sum += wins / static_cast<double>(x[task].size() * y[task].size());
  }
  return sum / static_cast<double>(x.size());
}

}  // namespace doppler
