#include "env/partial_schedule.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"
#include "tests/support/reference_schedule.h"

namespace doppler {
namespace {

using testing::CaseLimits;
using testing::random_case;
using testing::RandomCase;

Task task_of(const RandomCase& drawn) {
  return {.graph = drawn.graph,
          .cluster = drawn.cluster,
          .cost_model = drawn.cost_model,
          .options = drawn.options};
}

Approx about(double value) { return Approx(value).epsilon(1e-12).margin(1e-12); }

void check_against_slow(const RandomCase& drawn, testing::Draws& draws) {
  PartialSchedule schedule(std::make_shared<PlacementModel>(task_of(drawn)));
  const std::size_t n_devices = drawn.cluster.n_devices();
  const Task task = task_of(drawn);
  testing::ReferenceSchedule slow(task);
  std::vector<double> siblings(n_devices);
  std::vector<double> starts(n_devices);
  std::vector<double> ready(n_devices);
  std::vector<double> incoming(n_devices);
  std::vector<double> partners(n_devices);
  while (!schedule.complete()) {
    std::size_t n_candidates = 0;
    for (std::size_t v = 0; v < drawn.graph.n_nodes(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      REQUIRE(schedule.placed(node) == slow.placed().contains(node));
      REQUIRE(schedule.is_candidate(node) == slow.is_candidate(node));
      n_candidates += slow.is_candidate(node) ? 1 : 0;
    }
    REQUIRE(schedule.candidates().size() == n_candidates);
    const NodeId node = schedule.candidates()[draws.below(n_candidates)];
    schedule.earliest_starts(node, starts);
    schedule.data_ready(node, ready);
    schedule.incoming_transfers(node, incoming);
    schedule.partner_transfers(node, partners);
    schedule.sibling_computes(node, siblings);
    for (std::size_t d = 0; d < n_devices; ++d) {
      const DeviceId device{static_cast<std::int64_t>(d)};
      REQUIRE(schedule.device_free(device) == about(slow.device_free(device)));
      REQUIRE(ready[d] == about(slow.data_ready(node, device)));
      REQUIRE(starts[d] == about(slow.earliest_start(node, device)));
      REQUIRE(incoming[d] == about(slow.incoming(node, device)));
      REQUIRE(partners[d] == about(slow.partners(node, device)));
      REQUIRE(siblings[d] == about(slow.siblings(node, device)));
      REQUIRE(schedule.data_ready(node, device) == ready[d]);
      REQUIRE(schedule.earliest_start(node, device) == starts[d]);
      REQUIRE(schedule.incoming_transfer(node, device) == incoming[d]);
      REQUIRE(schedule.partner_transfer(node, device) == partners[d]);
    }
    const DeviceId device{static_cast<std::int64_t>(draws.below(n_devices))};
    schedule.place(node, device);
    slow.place(node, device);
  }
  std::vector<double> compute(n_devices, 0);
  double makespan = 0;
  for (const auto& [node, run] : slow.placed()) {
    REQUIRE(schedule.device(node) == run.device);
    REQUIRE(schedule.start(node) == about(run.start));
    REQUIRE(schedule.end(node) == about(run.end));
    compute[run.device.index()] +=
        drawn.cost_model.compute(drawn.graph, node, drawn.cluster, run.device);
    makespan = std::max(makespan, run.end);
  }
  REQUIRE(schedule.makespan() == about(makespan));
  for (std::size_t d = 0; d < n_devices; ++d) {
    REQUIRE(schedule.device_compute(DeviceId(std::int64_t(d))) == about(compute[d]));
  }
}

TEST_CASE("a partial schedule agrees with the definitions evaluated from nothing") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const RandomCase drawn = random_case(seed);
    INFO(drawn);
    testing::Draws draws(seed);
    check_against_slow(drawn, draws);
  }
}

TEST_CASE("a partial schedule agrees with the definitions beyond the table of pairs") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    testing::Draws draws(seed);
    const std::size_t n_devices = PlacementModel::kTableDevices + draws.below(3);
    RandomCase drawn = random_case(seed);
    drawn.graph = random_graph(draws, n_devices, {.max_nodes = 10});
    drawn.cost_model = CostModel::of(drawn.graph);
    drawn.cluster = Cluster::ring(static_cast<std::int64_t>(n_devices));
    drawn.options = {};
    check_against_slow(drawn, draws);
  }
}

// Two tensors, of 3 and 5 bytes, from node 0 to node 1; the first goes to node 2 as well.
Graph two_tensors() {
  GraphBuilder builder("two tensors");
  builder.add_node({.name = "p", .outputs = {{.bytes = 3}, {.bytes = 5}}});
  builder.add_node({.name = "v"});
  builder.add_node({.name = "w"});
  builder.add_edge(NodeId{0}, NodeId{1}, 0);
  builder.add_edge(NodeId{0}, NodeId{1}, 1);
  builder.add_edge(NodeId{0}, NodeId{2}, 0);
  builder.set_raw_compute({1, 1, 1});
  return builder.build();
}

std::shared_ptr<const PlacementModel> model_of(Graph graph, Cluster cluster) {
  return std::make_shared<PlacementModel>(Task{
      .graph = std::move(graph), .cluster = std::move(cluster), .cost_model = CostModel::raw()});
}

TEST_CASE("a reader waits for every tensor of its producer") {
  PartialSchedule schedule(model_of(two_tensors(), Cluster::uniform(2)));
  schedule.place(NodeId{0}, DeviceId{0});
  CHECK(schedule.data_ready(NodeId{1}, DeviceId{0}) == 1);
  CHECK(schedule.data_ready(NodeId{1}, DeviceId{1}) == 6);
  CHECK(schedule.incoming_transfer(NodeId{1}, DeviceId{1}) == 8);
  CHECK(schedule.incoming_transfer(NodeId{1}, DeviceId{0}) == 0);
}

TEST_CASE("a partner counts once, with each tensor that it sends to shared consumers once") {
  // Nodes 0 and 1 feed both 2 and 3: node 0 with one tensor of 4 bytes, twice read.
  GraphBuilder builder("partners");
  builder.add_node({.name = "a", .outputs = {{.bytes = 4}}});
  builder.add_node({.name = "b", .outputs = {{.bytes = 7}}});
  builder.add_node({.name = "c"});
  builder.add_node({.name = "d"});
  for (std::int64_t from : {0, 1}) {
    for (std::int64_t to : {2, 3}) builder.add_edge(NodeId(from), NodeId(to));
  }
  builder.set_raw_compute({1, 1, 1, 1});
  PartialSchedule schedule(model_of(builder.build(), Cluster::uniform(3)));
  CHECK(schedule.partner_transfer(NodeId{1}, DeviceId{2}) == 0);
  schedule.place(NodeId{0}, DeviceId{2});
  CHECK(schedule.partner_transfer(NodeId{1}, DeviceId{2}) == 4);
  CHECK(schedule.partner_transfer(NodeId{1}, DeviceId{0}) == 0);
}

TEST_CASE("slots of a device run side by side") {
  GraphBuilder builder("three alone");
  for (const char* name : {"a", "b", "c"}) builder.add_node({.name = name});
  builder.set_raw_compute({5, 2, 4});
  const Cluster cluster({.name = "two slots", .devices = {{.kind = "d", .streams = 2}}});
  PartialSchedule schedule(model_of(builder.build(), cluster));
  schedule.place(NodeId{0}, DeviceId{0});
  CHECK(schedule.device_free(DeviceId{0}) == 0);
  schedule.place(NodeId{1}, DeviceId{0});
  CHECK(schedule.device_free(DeviceId{0}) == 2);
  schedule.place(NodeId{2}, DeviceId{0});
  CHECK(schedule.start(NodeId{2}) == 2);
  CHECK(schedule.makespan() == 6);
  CHECK(schedule.device_compute(DeviceId{0}) == 11);
}

TEST_CASE("what may not be placed is refused and changes nothing") {
  PartialSchedule schedule(model_of(two_tensors(), Cluster::uniform(2)));
  CHECK_THROWS_WITH(schedule.place(NodeId{1}, DeviceId{0}),
                    Catch::Contains("1 of its predecessors"));
  CHECK_THROWS_WITH(schedule.place(NodeId{3}, DeviceId{0}), Catch::Contains("3 nodes"));
  CHECK_THROWS_WITH(schedule.place(NodeId{-1}, DeviceId{0}), Catch::Contains("3 nodes"));
  CHECK_THROWS_WITH(schedule.place(NodeId{0}, DeviceId{2}), Catch::Contains("2 devices"));
  CHECK_THROWS_WITH(schedule.place(NodeId{0}, DeviceId{-1}), Catch::Contains("2 devices"));
  CHECK_THROWS_AS(schedule.assignment(), std::logic_error);
  CHECK(schedule.n_placed() == 0);
  CHECK(schedule.makespan() == 0);
  schedule.place(NodeId{0}, DeviceId{1});
  CHECK_THROWS_WITH(schedule.place(NodeId{0}, DeviceId{0}), Catch::Contains("device 1 already"));
  CHECK(schedule.device(NodeId{0}) == DeviceId{1});
}

TEST_CASE("reset and copies continue exactly") {
  const RandomCase drawn = random_case(11);
  const auto model = std::make_shared<PlacementModel>(task_of(drawn));
  const auto finish = [&](PartialSchedule& schedule) {
    while (!schedule.complete()) {
      const NodeId node = schedule.candidates().front();
      schedule.place(node, drawn.assignment[node]);
    }
    return std::make_pair(schedule.assignment(), schedule.makespan());
  };
  PartialSchedule schedule(model);
  const auto whole = finish(schedule);
  CHECK(whole.first == drawn.assignment);
  schedule.reset();
  CHECK(schedule.n_placed() == 0);
  const std::size_t half = drawn.graph.n_nodes() / 2;
  while (schedule.n_placed() < half) {
    const NodeId node = schedule.candidates().front();
    schedule.place(node, drawn.assignment[node]);
  }
  PartialSchedule copy = schedule;
  CHECK(finish(copy) == whole);
  CHECK(finish(schedule) == whole);
}

TEST_CASE("the b-level order takes the largest candidate, ties to the smaller key, then id") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RandomCase drawn = random_case(seed, {.integers = true});
    const auto model = std::make_shared<PlacementModel>(task_of(drawn));
    testing::Draws draws(seed);
    std::vector<std::uint64_t> keys(drawn.graph.n_nodes());
    for (auto& key : keys) key = draws.below(3);
    std::vector<NodeId> keyed;
    model->b_level_order(keys, keyed);
    const std::vector<std::uint64_t> none(keys.size(), 0);
    const auto plain = model->b_level_order();
    const auto expect_order = [&](std::span<const NodeId> order,
                                  const std::vector<std::uint64_t>& key) {
      PartialSchedule schedule(model);
      REQUIRE(order.size() == drawn.graph.n_nodes());
      for (NodeId node : order) {
        NodeId best = schedule.candidates().front();
        for (NodeId other : schedule.candidates()) {
          const auto rank = [&](NodeId v) {
            return std::make_tuple(-model->levels().b_level[v.index()], key[v.index()], v);
          };
          if (rank(other) < rank(best)) best = other;
        }
        REQUIRE(node == best);
        schedule.place(node, DeviceId{0});
      }
    };
    expect_order(keyed, keys);
    expect_order(plain, none);
  }
}

}  // namespace
}  // namespace doppler
