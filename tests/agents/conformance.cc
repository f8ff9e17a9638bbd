// What every registered agent must do, on every kind of task.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/present_agents.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;

Task task_of(const RandomCase& drawn) {
  return {.name = "drawn",
          .graph = drawn.graph,
          .cluster = drawn.cluster,
          .cost_model = drawn.cost_model,
          .options = drawn.options};
}

AssignResult run(const std::string& agent, const Task& task, std::uint64_t seed) {
  return assign(*make_agent(agent), task, {.seed = seed});
}

// The assignment fits, its makespan is the simulator's, a seed gives it again, and an agent that is
// called deterministic needs no seed.
void check_agent(const AgentEntry& entry, const Task& task) {
  const AssignResult first = run(entry.name, task, 1);
  REQUIRE_NOTHROW(first.assignment.check(task.graph, task.cluster));
  REQUIRE(first.makespan == task.simulator().run(first.assignment).makespan);
  REQUIRE(first.evaluations >= 1);
  REQUIRE(run(entry.name, task, 1).assignment == first.assignment);
  if (entry.deterministic) REQUIRE(run(entry.name, task, 2).assignment == first.assignment);
}

Task raw_task(Graph graph, Cluster cluster) {
  const CostModel cost_model = CostModel::of(graph);
  return {.name = "corner",
          .graph = std::move(graph),
          .cluster = std::move(cluster),
          .cost_model = cost_model};
}

Graph chain(std::size_t n_nodes, double seconds, double bytes) {
  GraphBuilder builder("chain");
  for (std::size_t v = 0; v < n_nodes; ++v) {
    builder.add_node({.name = "n" + std::to_string(v), .outputs = {{.bytes = bytes}}});
  }
  for (std::size_t v = 1; v < n_nodes; ++v) {
    builder.add_edge(NodeId(std::int64_t(v - 1)), NodeId(std::int64_t(v)));
  }
  builder.set_raw_compute(std::vector<double>(n_nodes, seconds));
  return builder.build();
}

TEST_CASE("every agent assigns random graphs on random clusters") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const RandomCase drawn = random_case(seed);
      INFO(name << " on " << drawn);
      check_agent(entry, task_of(drawn));
    }
  }
}

TEST_CASE("every agent assigns what is empty, alone, free of cost, or on a great many devices") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    INFO(name);
    check_agent(entry, raw_task(Graph(), Cluster::uniform(3)));
    check_agent(entry, raw_task(chain(1, 2, 1), Cluster::uniform(4)));
    check_agent(entry, raw_task(chain(20, 2, 1), Cluster::uniform(1)));
    check_agent(entry, raw_task(chain(20, 0, 0), Cluster::uniform(4)));
    check_agent(entry, raw_task(chain(20, 1, 3), Cluster::uniform(1024)));
  }
}

TEST_CASE("every agent assigns a task whose memory is tight") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      RandomCase drawn = random_case(seed);
      ClusterParts parts = drawn.cluster.parts();
      testing::Draws draws(seed);
      double bytes = 0;
      for (std::size_t t = 0; t < drawn.graph.n_tensors(); ++t) {
        bytes += drawn.graph.tensor_bytes(TensorId(std::int64_t(t)));
      }
      for (Device& device : parts.devices) device.memory = bytes * draws.real();
      drawn.cluster = Cluster(parts);
      drawn.options.enforce_memory = true;
      INFO(name << " on " << drawn);
      check_agent(entry, task_of(drawn));
    }
  }
}

TEST_CASE("one agent serves many tasks, each as if it were the first") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    const auto agent = make_agent(name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Task task = task_of(random_case(seed));
      INFO(name << " on case " << seed);
      REQUIRE(assign(*agent, task, {.seed = 7}).assignment == run(name, task, 7).assignment);
    }
  }
}

TEST_CASE("the steps of an agent give what decide gives, and only candidates are selected") {
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    const auto agent = make_agent(name);
    if (!agent->has_steps()) continue;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto model = std::make_shared<const PlacementModel>(task_of(random_case(seed)));
      PartialSchedule schedule(model);
      agent->begin(model, 5);
      while (!schedule.complete()) {
        const NodeId node = agent->select(schedule);
        REQUIRE(schedule.is_candidate(node));
        schedule.place(node, agent->place(schedule, node));
      }
      REQUIRE(schedule.assignment() == make_agent(name)->decide(model, {.seed = 5}).assignment);
    }
  }
}

TEST_CASE("an agent that is not called deterministic gives several assignments") {
  const Task task = raw_task(chain(12, 0, 0), Cluster::uniform(4));
  for (const AgentEntry& entry : testing::present_agents()) {
    const std::string& name = entry.name;
    if (entry.deterministic || entry.family != "heuristic") continue;
    INFO(name);
    bool differs = false;
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      differs |= run(name, task, seed).assignment != run(name, task, 0).assignment;
    }
    CHECK(differs);
  }
}

}  // namespace
}  // namespace doppler
