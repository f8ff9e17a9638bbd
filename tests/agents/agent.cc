#include "agents/agent.h"

#include <set>

#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Task two_nodes() {
  GraphBuilder builder("two");
  builder.add_node({.name = "a", .outputs = {{.bytes = 2}}});
  builder.add_node({.name = "b"});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.set_raw_compute({3, 4});
  return {.name = "two@uniform",
          .graph = builder.build(),
          .cluster = Cluster::uniform(2),
          .cost_model = CostModel::raw()};
}

// Decides what it was told to.
class Puppet : public Agent {
 public:
  explicit Puppet(Decision decision) : decision_(std::move(decision)) {}
  [[nodiscard]] bool has_steps() const override { return false; }
  Decision decide(std::shared_ptr<const PlacementModel> /*model*/,
                  const AssignOptions& /*options*/) override {
    return decision_;
  }

 private:
  Decision decision_;
};

const Assignment kApart({DeviceId{0}, DeviceId{1}});

TEST_CASE("assign measures what the agent did not") {
  Puppet agent({.assignment = kApart});
  const AssignResult result = assign(agent, two_nodes());
  CHECK(result.assignment == kApart);
  CHECK(result.makespan == 9);
  CHECK(result.evaluations == 1);
  CHECK(result.seconds >= 0);
}

TEST_CASE("assign counts no evaluation twice") {
  Puppet measured({.assignment = kApart, .makespan = 9, .evaluations = 5});
  CHECK(assign(measured, two_nodes(), {.max_evaluations = 5}).evaluations == 5);
  Puppet unmeasured({.assignment = kApart, .evaluations = 5});
  CHECK(assign(unmeasured, two_nodes(), {.max_evaluations = 6}).evaluations == 6);
}

TEST_CASE("an agent that breaks the rules is told") {
  const Task task = two_nodes();
  const auto message = [&](Decision decision) {
    Puppet agent(std::move(decision));
    try {
      assign(agent, task, {.max_evaluations = 2});
    } catch (const RunError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message({.assignment = Assignment(1, DeviceId{0})}), Catch::Contains("does not fit"));
  CHECK_THAT(message({.assignment = Assignment(2, DeviceId{2})}), Catch::Contains("does not fit"));
  CHECK_THAT(message({.assignment = kApart, .makespan = 8, .evaluations = 1}),
             Catch::Contains("claims a makespan"));
  CHECK_THAT(message({.assignment = kApart, .makespan = 9, .evaluations = 3}),
             Catch::Contains("3 evaluations of 2 allowed"));
  CHECK_THAT(message({.assignment = kApart, .evaluations = 2}),
             Catch::Contains("3 evaluations of 2 allowed"));
  CHECK(message({.assignment = kApart, .makespan = 9, .evaluations = 2}).empty());
}

TEST_CASE("a budget that leaves no evaluation is refused") {
  Puppet agent({.assignment = kApart});
  CHECK_THROWS_AS(assign(agent, two_nodes(), {.max_evaluations = 0}), UsageError);
  CHECK_THROWS_AS(assign(agent, two_nodes(), {.max_seconds = -1}), UsageError);
}

TEST_CASE("an agent without steps says so") {
  Puppet agent({.assignment = kApart});
  const PartialSchedule schedule(std::make_shared<PlacementModel>(two_nodes()));
  CHECK_THROWS_AS(agent.select(schedule), std::logic_error);
  CHECK_THROWS_AS(agent.place(schedule, NodeId{0}), std::logic_error);
}

TEST_CASE("agents are made from spellings, and slips are answered with the nearest names") {
  CHECK_NOTHROW(make_agent("single-device(device=1)"));
  CHECK_THROWS_WITH(make_agent("critical-pth"), Catch::Contains("critical-path"));
  CHECK_THROWS_AS(make_agent("single-device(devise=1)"), UsageError);
  CHECK_THROWS_AS(make_agent("single-device(device=-2)"), UsageError);
  auto agent = make_agent("single-device(device=2)");
  CHECK_THROWS_WITH(assign(*agent, two_nodes()), Catch::Contains("the cluster has 2 devices"));
}

TEST_CASE("the heuristics are registered with their descriptions") {
  std::set<std::string> heuristics;
  for (const auto& [name, entry] : agents()) {
    CHECK_FALSE(entry.summary.empty());
    CHECK_FALSE(entry.source.empty());
    if (entry.family == "heuristic") heuristics.insert(name);
  }
  CHECK(heuristics == std::set<std::string>{"critical-path", "heft", "m-etf", "partner-list",
                                            "random", "round-robin", "single-device"});
}

}  // namespace
}  // namespace doppler
