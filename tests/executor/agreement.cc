// The simulator agrees with the reference simulator, of a different structure, on random problems.
#include <cmath>
#include <span>
#include <vector>

#include "executor/simulator/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"
#include "tests/support/random_cases.h"
#include "tests/support/reference_simulator.h"

namespace doppler {
namespace {

// Runs both on random problems. Times are equal to the last bit; in `fair`, to rounding.
void check_agreement(std::uint64_t first_seed, std::size_t count,
                     const testing::CaseLimits& limits) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const testing::RandomCase problem = testing::random_case(seed, limits);
    INFO("seed " << seed << ' ' << problem);
    const Execution slow = testing::reference_run(
        problem.graph, problem.cluster, problem.cost_model, problem.assignment, problem.options);
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    const double tolerance = problem.options.network == Network::fair ? 1e-9 : 0;
    CHECK(testing::difference(slow, simulator.run(problem.assignment), tolerance) == "");
    const double makespan = simulator.makespan(problem.assignment.devices);
    CHECK((makespan == slow.makespan ||
           std::abs(makespan - slow.makespan) <= tolerance * slow.makespan));
    // Again, after a run: nothing of the first is left behind.
    CHECK(simulator.makespan(problem.assignment.devices) == makespan);
  }
}

TEST_CASE("the simulator agrees with the reference on small problems") {
  testing::CaseLimits limits;
  limits.max_nodes = 9;
  limits.max_devices = 3;
  check_agreement(10'000, 3000, limits);
}

TEST_CASE("the simulator agrees with the reference on problems full of ties") {
  testing::CaseLimits limits;
  limits.integers = true;
  limits.noise = false;
  check_agreement(20'000, 3000, limits);
}

TEST_CASE("the simulator agrees with the reference on all kinds of problems") {
  check_agreement(30'000, 8000, {});
}

TEST_CASE("the simulator agrees with the reference on larger problems") {
  testing::CaseLimits limits;
  limits.max_nodes = 120;
  check_agreement(40'000, 200, limits);
}

TEST_CASE("another seed and many assignments give what the reference gives") {
  for (std::uint64_t seed = 50'000; seed < 50'300; ++seed) {
    testing::RandomCase problem = testing::random_case(seed);
    INFO("seed " << seed << ' ' << problem);
    const double tolerance = problem.options.network == Network::fair ? 1e-9 : 0;
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    testing::Draws draws(seed);
    const std::uint64_t other = draws.bits();

    std::vector<DeviceId> rows;
    std::vector<double> expected;
    for (int k = 0; k < 4; ++k) {
      const Assignment assignment =
          testing::random_assignment(draws, problem.graph.n_nodes(), problem.cluster.n_devices());
      rows.insert(rows.end(), assignment.devices.begin(), assignment.devices.end());
      expected.push_back(testing::reference_run(problem.graph, problem.cluster, problem.cost_model,
                                                assignment, problem.options)
                             .makespan);
      RunOptions lucky = problem.options;
      lucky.seed = other;
      const Execution slow = testing::reference_run(problem.graph, problem.cluster,
                                                    problem.cost_model, assignment, lucky);
      CHECK(testing::difference(slow, simulator.run(assignment, other), tolerance) == "");
      const double makespan = simulator.makespan(assignment.devices, other);
      CHECK((makespan == slow.makespan ||
             std::abs(makespan - slow.makespan) <= tolerance * slow.makespan));
    }
    if (problem.graph.n_nodes() == 0) continue;
    const std::vector<double> makespans = simulator.makespans(rows);
    REQUIRE(makespans.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      CHECK((makespans[k] == expected[k] ||
             std::abs(makespans[k] - expected[k]) <= tolerance * expected[k]));
    }
  }
}

}  // namespace
}  // namespace doppler
