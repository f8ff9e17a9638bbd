#include "leaderboard/score.h"

#include <algorithm>
#include <numeric>

#include "tests/support/catch.h"

namespace doppler {
namespace {

TEST_CASE("the interquartile mean leaves out a quarter at each end, rounded down") {
  CHECK(interquartile_mean({8, 1, 2, 7, 3, 6, 4, 5}) == 4.5);
  CHECK(interquartile_mean({100, 1, 2, 3, -50}) == 2);  // 5 values: one at each end
  CHECK(interquartile_mean({1, 2, 6}) == 3);            // 3 values: none
  CHECK(interquartile_mean({7}) == 7);
}

TEST_CASE("quantiles interpolate as numpy's do") {
  // numpy.quantile([1, 2, 4, 8], [0, 0.1, 0.5, 0.95, 1])
  const std::vector<double> values = {8, 1, 4, 2};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.1) == Approx(1.3));
  CHECK(quantile(values, 0.5) == Approx(3));
  CHECK(quantile(values, 0.95) == Approx(7.4));
  CHECK(quantile(values, 1) == 8);
}

// Every sample of the stratified bootstrap, which are equally likely.
std::vector<double> all_samples(const ScoreTable& scores) {
  std::vector<std::vector<double>> samples = {{}};
  for (const auto& task : scores) {
    for (std::size_t draw = 0; draw < task.size(); ++draw) {
      std::vector<std::vector<double>> longer;
      for (const auto& sample : samples) {
        for (const double value : task) {
          longer.push_back(sample);
          longer.back().push_back(value);
        }
      }
      samples = std::move(longer);
    }
  }
  std::vector<double> means;
  for (auto& sample : samples) means.push_back(interquartile_mean(sample));
  return means;
}

TEST_CASE("the bootstrap's interval is that of all samples") {
  const ScoreTable scores = {{1, 2, 5}, {10, 11}, {3, 3.5, 9}};
  const std::vector<double> samples = all_samples(scores);
  REQUIRE(samples.size() == 27 * 4 * 27);
  for (const double confidence : {0.5, 0.8, 0.95}) {
    const Interval interval =
        interquartile_mean_interval(scores, {.n_samples = 200'000, .confidence = confidence});
    INFO(confidence);
    CHECK(interval.value == interquartile_mean({1, 2, 5, 10, 11, 3, 3.5, 9}));
    // The distribution has steps: the quantile lies between those a little to the left and right.
    const double tail = (1 - confidence) / 2;
    CHECK(interval.low >= quantile(samples, tail - 0.004) - 1e-12);
    CHECK(interval.low <= quantile(samples, tail + 0.004) + 1e-12);
    CHECK(interval.high >= quantile(samples, 1 - tail - 0.004) - 1e-12);
    CHECK(interval.high <= quantile(samples, 1 - tail + 0.004) + 1e-12);
  }
}

TEST_CASE("strata are not mixed") {
  // Any mixture of the tasks would have an interval.
  const double mean = (1.0 + 1 + 9) / 3;
  CHECK(interquartile_mean_interval({{1, 1, 1}, {9, 9}}) == Interval{mean, mean, mean});
}

TEST_CASE("the interval of a mean is that of all samples") {
  const std::vector<double> values = {1, 2, 6};
  std::vector<double> samples;
  for (const double a : values) {
    for (const double b : values) {
      for (const double c : values) samples.push_back((a + b + c) / 3);
    }
  }
  const Interval interval = mean_interval(values, {.n_samples = 200'000, .confidence = 0.8});
  CHECK(interval.value == 3);
  CHECK(interval.low == Approx(quantile(samples, 0.1)));
  CHECK(interval.high == Approx(quantile(samples, 0.9)));
  CHECK(mean_interval(std::vector<double>{4.0, 4.0}) == Interval{4, 4, 4});
}

TEST_CASE("the probability of improvement counts pairs of runs") {
  // Task 1: 1 beats 2 and 3, 2 beats 3 and equals 2: 3.5 of 4. Task 2: none of 2.
  CHECK(probability_of_improvement({{1, 2}, {5}}, {{2, 3}, {4, 4}}) == Approx(3.5 / 4 / 2));
  CHECK(probability_of_improvement({{1}}, {{1}}) == 0.5);
}

}  // namespace
}  // namespace doppler
