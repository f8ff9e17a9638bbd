// Recorded data sets as demonstrations: what they hand out is what the agent had decided.
#include "cli/demonstrations.h"

#include "agents/agent.h"
#include "datasets/tasks.h"
#include "graphs/error.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Words = std::vector<std::string>;
using Models = std::vector<std::shared_ptr<const PlacementModel>>;

Models models_of(const std::string& task) {
  return {std::make_shared<const PlacementModel>(make_task(task))};
}

// What critical-path decides with a seed, step by step.
Demonstration decided(const std::shared_ptr<const PlacementModel>& model, std::uint64_t seed) {
  const auto agent = make_agent("critical-path");
  Demonstration result;
  result.assignment.devices.resize(model->n_nodes());
  PartialSchedule schedule(model);
  agent->begin(model, seed);
  while (!schedule.complete()) {
    const NodeId node = agent->select(schedule);
    const DeviceId device = agent->place(schedule, node);
    schedule.place(node, device);
    result.order.push_back(node);
    result.assignment[node] = device;
  }
  return result;
}

TEST_CASE("Demonstrations are the recorded decisions in their order, in every action mode") {
  const Models models = models_of("ffnn@p100x4");
  for (const char* mode : {"sequential", "joint", "place", "oneshot", "refine"}) {
    INFO(mode);
    const TemporaryFolder folder;
    REQUIRE(run({"record", "--task", "ffnn@p100x4", "--agent", "critical-path", "--episodes", "3",
                 "--seed", "5", "--mode", mode, "--out", folder.path("data")})
                .exit_code == 0);
    const auto demonstrations = cli::open_demonstrations(folder.path("data"), models);
    REQUIRE(demonstrations->size(0) == 3);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Demonstration expected = decided(models[0], 5 + static_cast<std::uint64_t>(i));
      const Demonstration found = demonstrations->read(0, i);
      CHECK(found.assignment == expected.assignment);
      const std::string name = mode;
      if (name == "sequential" || name == "joint") {
        CHECK(found.order == expected.order);
      } else {
        const auto levels = models[0]->b_level_order();
        CHECK(found.order.size() == levels.size());
      }
    }
  }
}

TEST_CASE("A data set of another graph is refused, and so are agents that do not imitate") {
  const TemporaryFolder folder;
  const std::string data = folder.path("data");
  REQUIRE(run({"record", "--task", "ffnn@p100x4", "--agent", "heft", "--out", data}).exit_code ==
          0);
  CHECK_THROWS_AS(cli::open_demonstrations(data, models_of("chainmm@p100x4")), UsageError);
  CHECK_THROWS_AS(cli::open_demonstrations(folder.path("none"), models_of("ffnn@p100x4")),
                  RunError);
  // The same graph on other devices will do.
  CHECK(cli::open_demonstrations(data, models_of("ffnn@mixed"))->size(0) == 1);
  const Answer answer = run_of_tests({"train", "--agent", "test-learner", "--task", "ffnn@p100x4",
                                      "--dataset", data, "--out", folder.path("run")});
  INFO(answer.err);
  CHECK(answer.exit_code == 2);
  CHECK(answer.err.find("imitates no data set") != std::string::npos);
}

}  // namespace
}  // namespace doppler::testing
