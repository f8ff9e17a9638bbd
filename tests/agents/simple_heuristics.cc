// random, round-robin, single-device, critical-path, partner-list: their rules, step by step.
#include <algorithm>
#include <set>

#include "agents/agent.h"
#include "agents/draws.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;

Task task_of(const RandomCase& drawn) {
  return {.graph = drawn.graph,
          .cluster = drawn.cluster,
          .cost_model = drawn.cost_model,
          .options = drawn.options};
}

// Calls check(schedule, node, device) before each placement of an agent.
template <class Check>
void for_each_step(const std::string& name, const Task& task, std::uint64_t seed, Check check) {
  const auto model = std::make_shared<const PlacementModel>(task);
  PartialSchedule schedule(model);
  const auto agent = make_agent(name);
  agent->begin(model, seed);
  while (!schedule.complete()) {
    const NodeId node = agent->select(schedule);
    const DeviceId device = agent->place(schedule, node);
    check(schedule, node, device);
    schedule.place(node, device);
  }
}

TEST_CASE("critical-path takes a largest b-level, and a device of the earliest start") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const RandomCase drawn = random_case(seed);
    const auto n_devices = static_cast<std::int64_t>(drawn.cluster.n_devices());
    for_each_step("critical-path", task_of(drawn), seed,
                  [&](const PartialSchedule& schedule, NodeId node, DeviceId device) {
                    const auto& b_level = schedule.model().levels().b_level;
                    for (NodeId other : schedule.candidates()) {
                      REQUIRE(b_level[node.index()] >= b_level[other.index()]);
                    }
                    for (std::int64_t d = 0; d < n_devices; ++d) {
                      REQUIRE(schedule.earliest_start(node, device) <=
                              schedule.earliest_start(node, DeviceId(d)));
                    }
                  });
  }
}

Task independent(std::size_t n_nodes, std::int64_t n_devices) {
  GraphBuilder builder("independent");
  for (std::size_t v = 0; v < n_nodes; ++v) builder.add_node({.name = "n"});
  builder.set_raw_compute(std::vector<double>(n_nodes, 1));
  return {.name = "independent",
          .graph = builder.build(),
          .cluster = Cluster::uniform(n_devices),
          .cost_model = CostModel::raw()};
}

TEST_CASE("critical-path breaks ties evenly over nodes and devices") {
  constexpr int kRuns = 3000;
  std::vector<int> first_node(3, 0);
  std::vector<int> first_device(4, 0);
  const Task task = independent(3, 4);
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    for_each_step("critical-path", task, seed,
                  [&](const PartialSchedule& schedule, NodeId node, DeviceId device) {
                    if (schedule.n_placed() > 0) return;
                    ++first_node[node.index()];
                    ++first_device[device.index()];
                  });
  }
  // Five standard deviations of a binomial.
  for (int count : first_node) CHECK(std::abs(count - kRuns / 3) < 130);
  for (int count : first_device) CHECK(std::abs(count - kRuns / 4) < 119);
}

TEST_CASE("partner-list takes the candidate and device of its rule") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const RandomCase drawn = random_case(seed);
    const auto n_devices = static_cast<std::int64_t>(drawn.cluster.n_devices());
    for_each_step("partner-list", task_of(drawn), 0,
                  [&](const PartialSchedule& schedule, NodeId node, DeviceId device) {
                    const auto& b_level = schedule.model().levels().b_level;
                    for (NodeId other : schedule.candidates()) {
                      REQUIRE(b_level[node.index()] >= b_level[other.index()]);
                      if (b_level[node.index()] == b_level[other.index()]) REQUIRE(node <= other);
                    }
                    const auto cost = [&](DeviceId d) {
                      return schedule.earliest_start(node, d) +
                             0.3 * schedule.incoming_transfer(node, d) -
                             schedule.partner_transfer(node, d);
                    };
                    for (std::int64_t d = 0; d < n_devices; ++d) {
                      REQUIRE(cost(device) <= cost(DeviceId(d)));
                      if (cost(device) == cost(DeviceId(d))) REQUIRE(device.value <= d);
                    }
                  });
  }
}

TEST_CASE("round-robin takes the devices in turn over the topological order") {
  const RandomCase drawn = random_case(3);
  const auto result = assign(*make_agent("round-robin"), task_of(drawn));
  const auto n_devices = static_cast<std::int32_t>(drawn.cluster.n_devices());
  for (std::size_t v = 0; v < drawn.graph.n_nodes(); ++v) {
    const NodeId node{static_cast<std::int64_t>(v)};
    CHECK(result.assignment[node].value == drawn.graph.position(node) % n_devices);
  }
}

TEST_CASE("random draws every device about equally often") {
  const auto result = assign(*make_agent("random"), independent(4000, 4), {.seed = 3});
  std::vector<int> counts(4, 0);
  for (DeviceId device : result.assignment.devices) ++counts[device.index()];
  for (int count : counts) CHECK(std::abs(count - 1000) < 137);  // five standard deviations
}

TEST_CASE("single-device takes the device of the least compute that has the memory") {
  GraphBuilder builder("pair");
  builder.add_node({.name = "a", .outputs = {{.bytes = 10}}});
  builder.add_node({.name = "b", .outputs = {{.bytes = 10}}});
  builder.add_input({.name = "x", .tensor = {.bytes = 5}, .readers = {NodeId{0}}});
  builder.set_raw_compute({4, 1, 2, 4, 2, 2}, 3);
  ClusterParts parts{
      .name = "three",
      .devices = {{.kind = "a", .memory = 40}, {.kind = "b", .memory = 8}, {.kind = "c"}},
      .default_link = DefaultLink{}};
  parts.devices[2].memory = 30;
  Task task{.name = "pair",
            .graph = builder.build(),
            .cluster = Cluster(parts),
            .cost_model = CostModel::raw()};
  const auto device_of = [&](const std::string& agent) {
    const auto devices = assign(*make_agent(agent), task).assignment.devices;
    REQUIRE(devices[0] == devices[1]);
    return devices[0].value;
  };
  CHECK(device_of("single-device") == 1);  // 3 s against 8 s and 4 s
  CHECK(device_of("single-device(device=0)") == 0);
  task.options.enforce_memory = true;
  CHECK(device_of("single-device") == 2);  // 25 bytes do not fit on device 1
  parts.devices[2].memory = 20;
  task.cluster = Cluster(parts);
  CHECK(device_of("single-device") == 0);
  parts.devices[0].memory = 20;
  task.cluster = Cluster(parts);
  CHECK(device_of("single-device") == 2);  // nowhere: least compute among the largest memories
  parts.devices[0].streams = 4;
  task.cluster = Cluster(parts);
  CHECK(device_of("single-device") == 0);  // 8 s over four slots
}

TEST_CASE("an agent's luck is uniform and a seed's own") {
  Draws draws(1);
  std::vector<int> counts(5, 0);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    ++counts[draws.below(5)];
    const double u = draws.uniform();
    REQUIRE((u >= 0 && u < 1));
    sum += u;
  }
  for (int count : counts) CHECK(std::abs(count - 2000) < 200);  // five standard deviations
  CHECK(sum / 10000 == Approx(0.5).margin(0.015));
  CHECK(Draws(1) == Draws(1));
  CHECK(Draws(1).next() != Draws(2).next());
}

}  // namespace
}  // namespace doppler
