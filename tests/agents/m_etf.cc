#include <optional>
#include <set>
#include <tuple>

#include "agents/agent.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;

// Looks at every pair of candidate and device at each step; nothing is ever given back. Nothing if
// a node fits nowhere.
std::optional<Assignment> slow_m_etf(const Task& task) {
  const Graph& graph = task.graph;
  const auto model = std::make_shared<PlacementModel>(task);
  PartialSchedule schedule(model);
  std::set<std::pair<NodeId, DeviceId>> dropped;
  const auto n_devices = static_cast<std::int64_t>(task.cluster.n_devices());

  // Bytes on a device if `extra` is there beside what was placed.
  const auto bytes_with = [&](NodeId extra, DeviceId device) {
    std::set<TensorId> tensors;
    std::set<std::size_t> inputs;
    const auto is_there = [&](NodeId v) { return v == extra || schedule.device(v) == device; };
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      const NodeId node{static_cast<std::int64_t>(v)};
      if (!is_there(node)) continue;
      for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
        tensors.insert(TensorId(std::int64_t(graph.first_tensor(node).index() + i)));
      }
      for (EdgeId edge : graph.in_edges(node)) tensors.insert(graph.edge_tensor(edge));
    }
    for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
      for (NodeId reader : graph.inputs()[i].readers) {
        if (is_there(reader)) inputs.insert(i);
      }
      const auto& homes = task.options.input_devices;
      if (!homes.empty() && homes[i] == device) inputs.insert(i);
    }
    double sum = 0;
    for (TensorId tensor : tensors) sum += graph.tensor_bytes(tensor);
    for (std::size_t i : inputs) sum += graph.inputs()[i].tensor.bytes;
    return sum;
  };

  while (!schedule.complete()) {
    std::optional<std::tuple<double, double, NodeId, DeviceId>> best;
    for (NodeId node : schedule.candidates()) {
      for (std::int64_t d = 0; d < n_devices; ++d) {
        if (dropped.contains({node, DeviceId(d)})) continue;
        const auto pair =
            std::make_tuple(schedule.earliest_start(node, DeviceId(d)),
                            -model->levels().b_level[node.index()], node, DeviceId(d));
        if (!best || pair < *best) best = pair;
      }
    }
    const auto [start, level, node, device] = *best;
    if (task.options.enforce_memory &&
        bytes_with(node, device) > task.cluster.device(device).memory) {
      dropped.insert({node, device});
      for (std::int64_t d = 0; d < n_devices && dropped.contains({node, DeviceId(d)}); ++d) {
        if (d + 1 == n_devices) return std::nullopt;
      }
      continue;
    }
    schedule.place(node, device);
  }
  return schedule.assignment();
}

Task task_of(const RandomCase& drawn) {
  return {.graph = drawn.graph,
          .cluster = drawn.cluster,
          .cost_model = drawn.cost_model,
          .options = drawn.options};
}

// Whether each device has room for the graph inputs that lie there from the start.
bool inputs_fit(const Task& task) {
  std::vector<double> bytes(task.cluster.n_devices(), 0);
  const auto& homes = task.options.input_devices;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    bytes[homes[i].index()] += task.graph.inputs()[i].tensor.bytes;
  }
  for (std::size_t d = 0; d < bytes.size(); ++d) {
    if (bytes[d] > task.cluster.parts().devices[d].memory) return false;
  }
  return true;
}

TEST_CASE("m-ETF takes the pair that starts first among all pairs") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Task task = task_of(random_case(seed, {.integers = true}));
    task.options.enforce_memory = false;
    INFO("case " << seed);
    REQUIRE(assign(*make_agent("m-etf"), task).assignment == slow_m_etf(task));
  }
}

TEST_CASE("m-ETF passes over devices without room, and what it reserves is enough") {
  std::size_t n_found = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    RandomCase drawn = random_case(seed, {.integers = true});
    double bytes = 0;
    for (std::size_t t = 0; t < drawn.graph.n_tensors(); ++t) {
      bytes += drawn.graph.tensor_bytes(TensorId(std::int64_t(t)));
    }
    for (const GraphInput& input : drawn.graph.inputs()) bytes += input.tensor.bytes;
    ClusterParts parts = drawn.cluster.parts();
    testing::Draws draws(seed);
    for (Device& device : parts.devices) device.memory = std::max(1.0, bytes * draws.real());
    drawn.cluster = Cluster(parts);
    Task task = task_of(drawn);
    task.options.enforce_memory = true;
    const auto expected = slow_m_etf(task);
    if (!expected) continue;
    ++n_found;
    INFO("case " << seed);
    const AssignResult result = assign(*make_agent("m-etf"), task);
    REQUIRE(result.assignment == *expected);
    if (!inputs_fit(task)) continue;
    REQUIRE(result.makespan < std::numeric_limits<double>::infinity());
  }
  CHECK(n_found > 30);
}

Cluster pair_of_devices(double memory_0, double memory_1) {
  return Cluster({.name = "pair",
                  .devices = {{.kind = "a", .memory = memory_0}, {.kind = "b", .memory = memory_1}},
                  .default_link = DefaultLink{.bandwidth = 1}});
}

TEST_CASE("m-ETF goes to a slow device rather than out of memory") {
  GraphBuilder builder("independent");
  for (int v = 0; v < 4; ++v) builder.add_node({.name = "n", .outputs = {{.bytes = 10}}});
  builder.set_raw_compute({1, 100, 1, 100, 1, 100, 1, 100}, 2);
  Task task{.name = "independent",
            .graph = builder.build(),
            .cluster = pair_of_devices(20, 20),
            .cost_model = CostModel::raw()};
  CHECK(assign(*make_agent("m-etf"), task).makespan == 100);
  task.options.enforce_memory = true;
  CHECK(assign(*make_agent("m-etf"), task).makespan == 200);
}

TEST_CASE("m-ETF gives tensors back where reserving all of them is too much") {
  GraphBuilder builder("chain");
  for (int v = 0; v < 8; ++v) builder.add_node({.name = "n", .outputs = {{.bytes = 10}}});
  for (std::int64_t v = 1; v < 8; ++v) builder.add_edge(NodeId(v - 1), NodeId(v));
  builder.set_raw_compute(std::vector<double>(8, 1));
  Task task{.name = "chain",
            .graph = builder.build(),
            .cluster = pair_of_devices(5, 25),
            .cost_model = CostModel::raw()};
  task.options.enforce_memory = true;
  const AssignResult result = assign(*make_agent("m-etf"), task);
  CHECK(result.assignment == Assignment(8, DeviceId{1}));
  CHECK(result.makespan == 8);
  // Nothing fits anywhere: the engine says so.
  task.cluster = pair_of_devices(5, 5);
  CHECK(assign(*make_agent("m-etf"), task).makespan == std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace doppler
