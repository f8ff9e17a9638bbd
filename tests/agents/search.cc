// What local-search and annealing do with a budget.
#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "agents/search/evaluations.h"
#include "agents/search/moves.h"
#include "agents/search/shard_groups.h"
#include "datasets/tasks.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;

const std::vector<std::string> kWalks = {"annealing", "local-search",
                                         "annealing(start=random,moves=single,hot=1)",
                                         "local-search(start=random,moves=single)"};

const std::vector<std::string> kSearches = {
    "annealing", "local-search", "annealing(start=random,moves=single,hot=1)",
    "local-search(start=random,moves=single)", "rule-search"};
const std::vector<std::string> kPlain = {"annealing", "local-search"};

Task task_of(const RandomCase& drawn) {
  return {.name = "drawn",
          .graph = drawn.graph,
          .cluster = drawn.cluster,
          .cost_model = drawn.cost_model,
          .options = drawn.options};
}

// The least makespan of all assignments.
double exhaustive_optimum(const Task& task) {
  Simulator simulator = task.simulator();
  const auto n_devices = static_cast<std::int32_t>(task.cluster.n_devices());
  std::vector<DeviceId> devices(task.graph.n_nodes(), DeviceId{0});
  double least = simulator.makespan(devices);
  while (true) {
    std::size_t v = 0;
    while (v < devices.size() && devices[v].value == n_devices - 1) devices[v++] = DeviceId{0};
    if (v == devices.size()) return least;
    devices[v] = DeviceId(devices[v].value + 1);
    least = std::min(least, simulator.makespan(devices));
  }
}

TEST_CASE("searches find the optimum of tiny tasks that were enumerated") {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const RandomCase drawn = random_case(seed, {.max_nodes = 7, .max_devices = 3});
    const Task task = task_of(drawn);
    const double optimum = exhaustive_optimum(task);
    for (const std::string& agent : kWalks) {
      INFO(agent << " on " << drawn);
      CHECK(assign(*make_agent(agent), task, {.seed = 1, .max_evaluations = 4000}).makespan ==
            optimum);
    }
  }
}

TEST_CASE("searches use every evaluation they are given and no more") {
  const Task task = make_task("published/chainmm");
  for (const std::string& agent : kSearches) {
    for (std::int64_t budget : {1, 2, 3, 100, 2345}) {
      INFO(agent << " with " << budget);
      CHECK(assign(*make_agent(agent), task, {.max_evaluations = budget}).evaluations == budget);
    }
  }
}

TEST_CASE("searches give the same for a seed, another for another") {
  const Task task = make_task("published/llama-layer");
  for (const std::string& agent : kSearches) {
    INFO(agent);
    const auto found = [&](std::uint64_t seed) {
      return assign(*make_agent(agent), task, {.seed = seed, .max_evaluations = 300}).assignment;
    };
    CHECK(found(3) == found(3));
    CHECK(found(3) != found(4));
  }
}

TEST_CASE("searches are never worse than what they start from") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Task task = task_of(random_case(seed));
    for (const char* start : {"partner-list", "heft", "round-robin"}) {
      const double before = assign(*make_agent(start), task).makespan;
      for (const std::string& walk : kPlain) {
        const auto agent = make_agent(walk + "(start=" + start + ")");
        INFO(walk << " from " << start << " on case " << seed);
        const AssignResult one = assign(*agent, task, {.max_evaluations = 1});
        CHECK(one.makespan == before);
        CHECK(assign(*agent, task, {.max_evaluations = 50}).makespan <= before);
      }
    }
  }
}

TEST_CASE("searches end by the clock, and return an assignment without any time") {
  constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();
  const Task task = make_task("published/chainmm");
  for (const std::string& agent : kSearches) {
    INFO(agent);
    CHECK(assign(*make_agent(agent), task, {.max_evaluations = kMany, .max_seconds = 0})
              .evaluations == 1);
    const AssignResult result =
        assign(*make_agent(agent), task, {.max_evaluations = kMany, .max_seconds = 0.1});
    CHECK(result.evaluations > 1);
    CHECK(result.seconds < 30);
  }
}

TEST_CASE("searches leave a task alone that has a single assignment") {
  Task task = make_task("published/chainmm");
  task.cluster = Cluster::uniform(1);
  for (const std::string& agent : kSearches) {
    CHECK(assign(*make_agent(agent), task, {.max_evaluations = 100}).evaluations == 1);
    CHECK(assign(*make_agent(agent), Task{}, {.max_evaluations = 100}).evaluations == 1);
  }
}

TEST_CASE("a move changes each node once, to a device that it is not on") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomCase drawn = random_case(seed);
    const PlacementModel model(task_of(drawn));
    for (const MoveKinds kinds : {MoveKinds::single, MoveKinds::all}) {
      Moves moves(model, kinds);
      if (!moves.any()) continue;
      Draws draws(seed);
      for (int i = 0; i < 100; ++i) {
        const auto changes = moves.draw(drawn.assignment.devices, draws);
        REQUIRE_FALSE(changes.empty());
        if (kinds == MoveKinds::single) REQUIRE(changes.size() == 1);
        std::vector<NodeId> nodes;
        for (const Change& change : changes) {
          REQUIRE(change.device.index() < model.n_devices());
          REQUIRE(change.device != drawn.assignment[change.node]);
          nodes.push_back(change.node);
        }
        std::sort(nodes.begin(), nodes.end());
        REQUIRE(std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end());
      }
    }
  }
}

TEST_CASE("runs are counted, repeats are not, and the best is kept whatever the base") {
  const RandomCase drawn = random_case(15, {.max_nodes = 12, .max_devices = 4});
  const Task task = task_of(drawn);
  REQUIRE(task.graph.n_nodes() > 2);
  REQUIRE(task.cluster.n_devices() > 1);
  Simulator simulator = task.simulator();
  Evaluations evaluations(PlacementModel(task), {.max_evaluations = 300});
  Draws draws(5);
  Assignment base = drawn.assignment;
  double least = evaluations.run_base(base.devices);
  CHECK(least == simulator.makespan(base.devices));
  std::int64_t n_runs = 1;
  while (evaluations.left()) {
    Assignment changed = base;
    const NodeId node(std::int64_t(draws.below(task.graph.n_nodes())));
    changed[node] = DeviceId(std::int64_t(draws.below(task.cluster.n_devices())));
    const bool whole = draws.below(2) == 0;
    const double makespan =
        whole ? evaluations.run(changed.devices) : evaluations.run_move(node, changed[node]);
    ++n_runs;
    REQUIRE(makespan == simulator.makespan(changed.devices));
    least = std::min(least, makespan);
    if (draws.below(3) == 0) {
      if (whole) evaluations.take(changed.devices);
      if (!whole) evaluations.take_move(node, changed[node]);
      base = changed;
    }
    REQUIRE(std::equal(base.devices.begin(), base.devices.end(), evaluations.base().begin()));
    REQUIRE(evaluations.n_used() == n_runs);
    const Decision decision = evaluations.decision();
    REQUIRE(decision.evaluations == n_runs);
    REQUIRE(*decision.makespan == least);
    REQUIRE(simulator.makespan(decision.assignment.devices) == least);
  }
  CHECK(n_runs == 300);
}

TEST_CASE("shards are grouped by meta-op, nodes without one by level and kind") {
  GraphBuilder builder("groups");
  const auto add = [&](const std::string& kind, std::int32_t meta_op) {
    builder.add_node({.name = "n", .kind = kind, .meta_op = meta_op, .outputs = {{.bytes = 1}}});
  };
  add("sum", 7);   // 0
  add("sum", -1);  // 1
  add("exp", -1);  // 2
  add("sum", -1);  // 3
  add("exp", 7);   // 4, one level later
  add("sum", -1);  // 5, one level later
  builder.add_edge(NodeId{0}, NodeId{4});
  builder.add_edge(NodeId{1}, NodeId{5});
  builder.set_raw_compute(std::vector<double>(6, 1));
  const std::vector<std::vector<NodeId>> expected = {
      {NodeId{0}, NodeId{4}}, {NodeId{1}, NodeId{3}}, {NodeId{2}}, {NodeId{5}}};
  CHECK(shard_groups(builder.build()) == expected);
}

}  // namespace
}  // namespace doppler
