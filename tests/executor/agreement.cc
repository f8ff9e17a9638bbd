// The simulator agrees with the reference simulator, of a different structure, to the last bit on
// random problems.
#include <vector>

#include "executor/simulator/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"
#include "tests/support/random_cases.h"
#include "tests/support/reference_simulator.h"

namespace doppler {
namespace {

// Runs both on random problems.
void check_agreement(std::uint64_t first_seed, std::size_t count,
                     const testing::CaseLimits& limits) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const testing::RandomCase problem = testing::random_case(seed, limits);
    INFO("seed " << seed << ' ' << problem);
    const Execution slow = testing::reference_run(
        problem.graph, problem.cluster, problem.cost_model, problem.assignment, problem.options);
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    CHECK(testing::difference(slow, simulator.run(problem.assignment)) == "");
    const double makespan = simulator.makespan(problem.assignment.devices);
    CHECK(makespan == slow.makespan);
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
      CHECK(testing::difference(slow, simulator.run(assignment, other)) == "");
      const double makespan = simulator.makespan(assignment.devices, other);
      CHECK(makespan == slow.makespan);
    }
    if (problem.graph.n_nodes() == 0) continue;
    CHECK(simulator.makespans(rows) == expected);
  }
}

}  // namespace
}  // namespace doppler
