// The enumerative agent and the matching against exhaustion.
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "agents/search/matching.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

// Calls visit(choice) for every injective choice of n_columns for n_rows.
template <class Visit>
void for_each_choice(std::size_t n_rows, std::size_t n_columns, Visit&& visit) {
  std::vector<std::size_t> choice;
  const auto descend = [&](auto&& self) -> void {
    if (choice.size() == n_rows) return visit(choice);
    for (std::size_t c = 0; c < n_columns; ++c) {
      if (std::find(choice.begin(), choice.end(), c) != choice.end()) continue;
      choice.push_back(c);
      self(self);
      choice.pop_back();
    }
  };
  descend(descend);
}

TEST_CASE("the least-cost matching is that of all injective choices") {
  testing::Draws draws(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n_columns = 1 + draws.below(6);
    const std::size_t n_rows = draws.below(n_columns + 1);
    std::vector<double> costs(n_rows * n_columns);
    // Integers with many ties; negative ones are fine too.
    for (double& cost : costs) cost = double(draws.between(-3, 5));
    const auto total = [&](const std::vector<std::size_t>& choice) {
      double sum = 0;
      for (std::size_t r = 0; r < n_rows; ++r) sum += costs[r * n_columns + choice[r]];
      return sum;
    };
    double least = std::numeric_limits<double>::infinity();
    for_each_choice(n_rows, n_columns,
                    [&](const auto& choice) { least = std::min(least, total(choice)); });
    const auto found = least_cost_matching(costs, n_rows, n_columns);
    REQUIRE(std::set<std::size_t>(found.begin(), found.end()).size() == n_rows);
    REQUIRE(total(found) == least);
  }
}

// Layers of nodes on uniform devices, one meta-op a layer.
class Layers {
 public:
  std::vector<NodeId> add(std::size_t n, testing::Draws& draws, const char* kind = "einsum") {
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < n; ++i) {
      nodes.emplace_back(std::int64_t(n_nodes_++));
      builder_.add_node({.name = "n",
                         .kind = kind,
                         .meta_op = meta_op_,
                         .outputs = {{.bytes = double(draws.between(1, 9))}}});
    }
    ++meta_op_;
    return nodes;
  }
  void connect(NodeId producer, NodeId reader) { builder_.add_edge(producer, reader); }
  Task task(std::size_t n_devices) {
    builder_.set_raw_compute(std::vector<double>(n_nodes_, 1));
    return {.name = "layers",
            .graph = builder_.build(),
            .cluster = Cluster::uniform(std::int64_t(n_devices)),
            .cost_model = CostModel::raw()};
  }

 private:
  GraphBuilder builder_{"layers"};
  std::int32_t meta_op_ = 0;
  std::size_t n_nodes_ = 0;
};

// Bytes into a node from other devices.
double moved(const Graph& graph, NodeId node, DeviceId device, const Assignment& assignment) {
  double bytes = 0;
  for (EdgeId e : graph.in_edges(node)) {
    if (assignment[graph.edge(e).producer] != device) bytes += graph.edge_bytes(e);
  }
  return bytes;
}

// A first layer, shards that read it, and aggregations of shards: what the shards and aggregations
// move is the least of all choices for the shards, given the first layer.
void check_layers(std::uint64_t seed, std::size_t n_devices, std::size_t n_shards,
                  std::size_t n_aggregations) {
  INFO("seed " << seed << ", " << n_devices << " devices, " << n_shards << " shards");
  testing::Draws draws(seed);
  Layers layers;
  const auto first = layers.add(n_devices, draws);
  const auto shards = layers.add(n_shards, draws);
  const auto aggregations = layers.add(n_aggregations, draws, "aggregate");
  for (NodeId shard : shards) {
    for (NodeId producer : first) {
      if (draws.chance(0.5)) layers.connect(producer, shard);
    }
  }
  for (NodeId aggregation : aggregations) {
    std::vector<NodeId> read = shards;
    while (read.size() > 1 && draws.chance(0.5)) read.pop_back();
    for (NodeId shard : read) layers.connect(shard, aggregation);
  }
  const Task task = layers.task(n_devices);
  const Assignment found = assign(*make_agent("enumerative"), task).assignment;

  const auto cost = [&](const Assignment& assignment) {
    double sum = 0;
    for (NodeId shard : shards) sum += moved(task.graph, shard, assignment[shard], assignment);
    for (NodeId aggregation : aggregations) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t d = 0; d < n_devices; ++d) {
        least =
            std::min(least, moved(task.graph, aggregation, DeviceId(std::int64_t(d)), assignment));
      }
      sum += least;
    }
    return sum;
  };
  double least = std::numeric_limits<double>::infinity();
  for_each_choice(n_shards, n_devices, [&](const auto& choice) {
    Assignment tried = found;
    for (std::size_t s = 0; s < n_shards; ++s) tried[shards[s]] = DeviceId(std::int64_t(choice[s]));
    least = std::min(least, cost(tried));
  });
  REQUIRE(cost(found) == least);
  for (const auto& layer : {first, shards}) {
    std::set<DeviceId> devices;
    for (NodeId node : layer) devices.insert(found[node]);
    REQUIRE(devices.size() == layer.size());
  }
  for (NodeId aggregation : aggregations) {
    for (std::size_t d = 0; d < n_devices; ++d) {
      REQUIRE(moved(task.graph, aggregation, found[aggregation], found) <=
              moved(task.graph, aggregation, DeviceId(std::int64_t(d)), found));
    }
  }
}

TEST_CASE("enumerative moves least of all permutations, aggregations included") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    check_layers(seed, 4, 4, 2);
    check_layers(seed, 3, 3, 3);
  }
  check_layers(7, 6, 6, 3);
}

TEST_CASE("enumerative moves least of all injective choices where shards are fewer") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    check_layers(seed, 5, 3, 2);
    check_layers(seed, 4, 2, 1);
  }
}

TEST_CASE("above eight devices enumerative moves least into the shards") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) check_layers(seed, 9, 3, 0);
}

TEST_CASE("enumerative cuts a large meta-op into parts of different devices") {
  testing::Draws draws(3);
  Layers layers;
  const auto first = layers.add(8, draws);
  const auto second = layers.add(8, draws);
  // Node i reads node 7 - i alone.
  for (std::size_t i = 0; i < 8; ++i) layers.connect(first[7 - i], second[i]);
  const Task task = layers.task(4);
  const Assignment found = assign(*make_agent("enumerative"), task).assignment;
  for (std::size_t part = 0; part < 8; part += 4) {
    std::set<DeviceId> devices;
    for (std::size_t i = part; i < part + 4; ++i) devices.insert(found[first[i]]);
    CHECK(devices.size() == 4);
  }
  CHECK(task.simulator().run(found).bytes_moved == 0);
}

}  // namespace
}  // namespace doppler
