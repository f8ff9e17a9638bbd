// Arms against the formulas of their beliefs, and a bandit with known means.
#include "agents/online/arms.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "agents/draws.h"
#include "agents/search/evolution.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Assignment numbered(std::int64_t number) {
  return Assignment({DeviceId(number % 7), DeviceId(number / 7)});
}

TEST_CASE("an assignment has one arm") {
  Arms arms(numbered(0));
  CHECK(arms.add(numbered(3), 2.0) == 1);
  CHECK(arms.add(numbered(3), 5.0) == 1);
  CHECK(arms.add(numbered(0), 5.0) == 0);
  CHECK(arms.size() == 2);
  CHECK(arms[1].predicted == 2.0);
}

TEST_CASE("a belief weighs prediction and runs by their precision") {
  Arms arms(numbered(0));
  arms.set_predicted(0, 10);
  for (double makespan : {10.0, 10.4, 9.6, 10.2}) arms.add_run(0, makespan);
  arms.add(numbered(1), 8);
  arms.estimate();
  const double mean = 10.05;
  const double variance = 0.05 * 0.05 + 0.35 * 0.35 + 0.45 * 0.45 + 0.15 * 0.15;
  const double sigma = std::sqrt((2 * 0.03 * 0.03 + variance / (mean * mean)) / (2 + 3));
  CHECK(arms.noise() == Approx(sigma));
  // One arm: the factor is its own, and the error is the prior's: nothing but it was seen.
  const double tau = std::sqrt(3 * 0.05 * 0.05 / 4);
  CHECK(arms.model_error() == Approx(tau));
  const double factor = mean / 10;
  CHECK(arms.belief(1).mean == Approx(factor * 8));
  CHECK(arms.belief(1).deviation == Approx(tau * factor * 8));
  const double of_prior = 1 / std::pow(tau * mean, 2);
  const double of_runs = 4 / std::pow(sigma * mean, 2);
  CHECK(arms.belief(0).mean == Approx(mean));
  CHECK(arms.belief(0).deviation == Approx(1 / std::sqrt(of_prior + of_runs)));
}

TEST_CASE("what failed is never chosen, nor is what does not fit") {
  Arms arms(numbered(0));
  arms.set_predicted(0, 10);
  arms.add_run(0, 10);
  arms.add(numbered(1), 5);
  arms.add(numbered(2), std::numeric_limits<double>::infinity());
  arms.estimate();
  CHECK(arms.most_promising() == 1);
  arms.add_failure(1);
  CHECK(arms.most_promising() == 0);
  CHECK(arms.incumbent() == 0);
}

TEST_CASE("the arms that are kept are those that were run and those predicted best") {
  Arms arms(numbered(0));
  for (int i = 1; i < 9; ++i) arms.add(numbered(i), 10 - i);
  arms.add_run(2, 8);
  arms.keep(2);
  REQUIRE(arms.size() == 4);
  CHECK(arms[0].assignment == numbered(0));
  CHECK(arms[1].assignment == numbered(2));
  CHECK(arms[2].assignment == numbered(7));
  CHECK(arms[3].assignment == numbered(8));
  CHECK(arms.add(numbered(8), 0) == 3);
}

TEST_CASE("the best of twenty arms is found whose predictions are off and whose runs are noisy") {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draws draws(seed);
    std::vector<double> means;
    Arms arms(numbered(0));
    for (std::int64_t i = 0; i < 20; ++i) {
      means.push_back(i == 13 ? 0.9 : 1 + 0.2 * draws.uniform());
      const double predicted = 1.3 * means.back() * (1 + 0.04 * normal(draws));
      if (i == 0) {
        arms.set_predicted(0, predicted);
      } else {
        arms.add(numbered(i), predicted);
      }
    }
    for (int run = 0; run < 150; ++run) {
      const std::size_t arm = arms.most_promising();
      arms.add_run(arm, means[arm] * (1 + 0.05 * normal(draws)));
      arms.estimate();
    }
    found += arms.incumbent() == 13 ? 1 : 0;
    CHECK(means[arms.incumbent()] <= 1.03);
    CHECK(arms.noise() == Approx(0.05).margin(0.015));
  }
  CHECK(found >= 17);
}

TEST_CASE("arms go on from their state") {
  Arms arms(numbered(0));
  arms.set_predicted(0, 10);
  arms.add(numbered(5), 9);
  arms.add_run(1, 9.5);
  arms.estimate();
  Arms again(numbered(0));
  again.restore(nlohmann::json::parse(arms.state().dump()));
  CHECK(again.belief(1).mean == arms.belief(1).mean);
  CHECK(again.add(numbered(5), 0) == 1);
  CHECK(again[1].n_runs == 1);
}

}  // namespace
}  // namespace doppler
