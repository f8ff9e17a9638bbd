// Every registered agent through an environment, against itself without one.
#include "agents/through_env.h"

#include <string>
#include <vector>

#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/present_agents.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

std::vector<EnvOptions> suitable_options() {
  return {{.mode = "sequential"},
          {.mode = "sequential", .reward = Reward::dense, .max_nodes = 40, .max_devices = 9},
          {.mode = "joint"},
          {.mode = "joint", .max_nodes = 40, .max_devices = 9},
          {.mode = "joint", .factored = true},
          {.mode = "place"},
          {.mode = "place", .order = PlaceOrder::topological},
          {.mode = "refine"},
          {.mode = "oneshot"},
          {.mode = "oneshot", .max_nodes = 40, .max_devices = 9}};
}

TEST_CASE("every agent assigns the same through an environment of every mode as without one") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const testing::RandomCase drawn = testing::random_case(seed);
      if (drawn.graph.n_nodes() == 0) continue;
      const Task task{.name = "drawn",
                      .graph = drawn.graph,
                      .cluster = drawn.cluster,
                      .cost_model = drawn.cost_model,
                      .options = drawn.options};
      // A learned agent searches where it may measure more; its steps are its policy alone.
      const std::int64_t max_evaluations = entry.family == "learned" ? 1 : 20;
      const AssignOptions options{.seed = seed, .max_evaluations = max_evaluations};
      const AssignResult direct = assign(*make_agent(name), task, options);
      for (const EnvOptions& env_options : suitable_options()) {
        INFO(name << " in " << env_options << "\n" << drawn);
        Env env(task, env_options);
        const auto agent = make_agent(name);
        for (int time = 0; time < 2; ++time) {  // a used agent and environment are as good
          const AssignResult result = assign_through_env(*agent, env, options);
          REQUIRE(result.assignment == direct.assignment);
          REQUIRE(result.makespan ==
                  task.simulator().makespan(result.assignment.devices, env.result().engine_seed));
          REQUIRE(result.evaluations >= env.result().evaluations);
        }
      }
    }
  }
}

TEST_CASE("the evaluations of an episode count: one, or one a node and one in refine") {
  const Task task = testing::diamond();
  for (const EnvOptions& options : suitable_options()) {
    Env env(task, options);
    const auto agent = make_agent("partner-list");
    const AssignResult result = assign_through_env(*agent, env);
    CHECK(result.evaluations == (options.mode == "refine" ? 5 : 1));
    CHECK(result.seconds >= 0);
  }
}

// Chooses what its maker says.
class Fixed : public Agent {
 public:
  Fixed(NodeId node, DeviceId device) : node_(node), device_(device) {}
  NodeId select(const PartialSchedule& /*schedule*/) override { return node_; }
  DeviceId place(const PartialSchedule& /*schedule*/, NodeId /*node*/) override { return device_; }
  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& /*options*/) override {
    return {.assignment = Assignment(model->n_nodes(), device_)};
  }

 private:
  NodeId node_;
  DeviceId device_;
};

TEST_CASE("an agent that chooses what is not there is told so, whatever the environment allows") {
  for (EnvOptions options : suitable_options()) {
    options.on_illegal = OnIllegal::penalize;
    INFO(options);
    Env env(testing::diamond(), options);
    for (const std::int64_t device : {-1, 2, 1000}) {
      Fixed agent(NodeId{0}, DeviceId(device));
      CHECK_THROWS_AS(assign_through_env(agent, env), RunError);
    }
    if (options.mode != "sequential" && options.mode != "joint") continue;
    for (const std::int64_t node : {-1, 1, 4, 39}) {
      Fixed agent{NodeId(node), DeviceId{0}};
      CHECK_THROWS_WITH(assign_through_env(agent, env),
                        Catch::Contains("selects node " + std::to_string(node)));
    }
    Fixed agent(NodeId{0}, DeviceId{0});
    CHECK_THROWS_AS(assign_through_env(agent, env, {.max_evaluations = 0}), UsageError);
    CHECK_THROWS_AS(assign_through_env(agent, env, {.max_seconds = -1}), UsageError);
  }
}

}  // namespace
}  // namespace doppler
