#include "graphs/analysis.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/literature.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

struct EdgeSpec {
  int producer;
  int reader;
  double bytes;
};

// A graph of raw costs, each edge with a tensor of its own.
Graph raw_graph(const std::vector<double>& compute, const std::vector<EdgeSpec>& edges) {
  GraphBuilder builder;
  for (std::size_t v = 0; v < compute.size(); ++v) {
    Node node;
    node.name = "n" + std::to_string(v);
    builder.add_node(node);
  }
  for (const EdgeSpec& edge : edges) {
    Tensor tensor;
    tensor.bytes = edge.bytes;
    const NodeId producer{edge.producer};
    builder.add_edge(producer, NodeId{edge.reader}, builder.add_output(producer, tensor));
  }
  builder.set_raw_compute(compute);
  return builder.build();
}

std::vector<NodeId> ids(std::initializer_list<int> values) {
  std::vector<NodeId> result;
  for (const int value : values) result.emplace_back(value);
  return result;
}

// Every path from a node onwards (backwards), found by trying all edges one after the other.
struct Path {
  double seconds;
  std::vector<NodeId> nodes;
};

void all_paths(const Graph& graph, const CostTable& costs, bool compute_only, bool forward,
               Path path, std::vector<Path>& found) {
  const NodeId last = path.nodes.back();
  path.seconds += costs.mean[last.index()];
  bool end = true;
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId{static_cast<std::int64_t>(e)});
    if ((forward ? edge.producer : edge.reader) != last) continue;
    end = false;
    Path longer = path;
    if (!compute_only) {
      longer.seconds +=
          costs.mean_latency +
          graph.edge_bytes(EdgeId{static_cast<std::int64_t>(e)}) * costs.mean_seconds_per_byte;
    }
    longer.nodes.push_back(forward ? edge.reader : edge.producer);
    all_paths(graph, costs, compute_only, forward, longer, found);
  }
  if (end) found.push_back(path);
}

// The longest of all paths from a node; of those the first in the order of ids.
Path longest_path(const Graph& graph, const CostTable& costs, bool compute_only, bool forward,
                  NodeId node) {
  std::vector<Path> found;
  all_paths(graph, costs, compute_only, forward, {0, {node}}, found);
  return *std::min_element(found.begin(), found.end(), [](const Path& a, const Path& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.nodes < b.nodes;
  });
}

TEST_CASE("levels of a diamond with hand values") {
  // 0 -> 1 -> 3 and 0 -> 2 -> 3; on two devices of rate 1 every transfer takes its bytes.
  const Graph graph = raw_graph({1, 2, 3, 4}, {{0, 1, 10}, {0, 2, 1}, {1, 3, 5}, {2, 3, 7}});
  const Cluster cluster = Cluster::uniform(2);
  const CostTable costs(graph, cluster, CostModel::raw());

  const Levels all = levels(graph, costs);
  CHECK(all.b_level == std::vector<double>{22, 11, 14, 4});
  CHECK(all.t_level == std::vector<double>{1, 13, 5, 22});
  CHECK(all.b_next == std::vector<std::int32_t>{1, 3, 3, -1});
  CHECK(all.t_next == std::vector<std::int32_t>{-1, 0, 0, 1});
  CHECK(b_path(all, NodeId{0}) == ids({0, 1, 3}));
  CHECK(t_path(all, NodeId{3}) == ids({3, 1, 0}));
  CHECK(critical_path(graph, costs).seconds == 22);
  CHECK(critical_path(graph, costs).nodes == ids({0, 1, 3}));

  const Levels compute = levels(graph, costs, {.compute_only = true});
  CHECK(compute.b_level == std::vector<double>{8, 6, 7, 4});
  CHECK(compute.t_level == std::vector<double>{1, 3, 4, 8});
  CHECK(critical_path(graph, costs, {.compute_only = true}).nodes == ids({0, 2, 3}));
  // The sum over two slots is 5, the longest path 8.
  CHECK(time_scale(graph, cluster, costs) == 8);
  CHECK(level_widths(graph) == std::vector<std::size_t>{1, 2, 1});
  CHECK(width(graph) == 2);
}

TEST_CASE("levels take the mean over the devices and no transfers on a single device") {
  GraphBuilder builder;
  for (const char* name : {"a", "b"}) {
    Node node;
    node.name = name;
    node.outputs.resize(1);
    node.outputs[0].bytes = 100;
    builder.add_node(node);
  }
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.set_raw_compute({2, 4, 3, 9}, 2);
  const Graph two = builder.build();
  const CostTable costs(two, Cluster::uniform(2), CostModel::raw());
  CHECK(levels(two, costs).b_level == std::vector<double>{3 + 100 + 6, 6});
  CHECK(time_scale(two, Cluster::uniform(2), costs) == 9);

  const Graph one = raw_graph({2, 3}, {{0, 1, 100}});
  CHECK(levels(one, CostTable(one, Cluster::uniform(1), CostModel::raw())).b_level ==
        std::vector<double>{5, 3});
}

TEST_CASE("the time scale is the work of a slot where that is more than the longest path") {
  const Graph graph = raw_graph({3, 3, 3, 3, 3, 3}, {{0, 1, 0}});
  ClusterParts parts;
  parts.devices.resize(2);
  parts.devices[0].streams = 2;
  parts.default_link.emplace();
  const Cluster cluster(parts);
  CHECK(time_scale(graph, cluster, CostTable(graph, cluster, CostModel::raw())) == 6);
  const Cluster single = Cluster::uniform(1);
  CHECK(time_scale(graph, single, CostTable(graph, single, CostModel::raw())) == 18);
}

TEST_CASE("ties go to the smaller id, and the critical path begins at a source") {
  // Node 3 costs nothing and its edges carry nothing, so that it shares the level of its readers.
  const Graph graph = raw_graph({5, 5, 1, 0}, {{3, 1, 0}, {3, 0, 0}, {1, 2, 0}, {0, 2, 0}});
  const CostTable costs(graph, Cluster::uniform(2), CostModel::raw());
  const Levels all = levels(graph, costs);
  CHECK(all.b_level == std::vector<double>{6, 6, 1, 6});
  CHECK(all.b_next[3] == 0);
  CHECK(all.t_next[2] == 0);
  CHECK(critical_path(graph, costs).nodes == ids({3, 0, 2}));
  CHECK(t_path(all, NodeId{2}) == ids({2, 0, 3}));
}

TEST_CASE("an empty graph and nodes without cost have a time scale of one second") {
  const Cluster cluster = Cluster::uniform(2);
  const Graph empty;
  const CostTable none(empty, cluster, CostModel::of(empty));
  CHECK(levels(empty, none).b_level.empty());
  CHECK(critical_path(empty, none).nodes.empty());
  CHECK(critical_path(empty, none).seconds == 0);
  CHECK(level_widths(empty).empty());
  CHECK(width(empty) == 0);
  CHECK(time_scale(empty, cluster, none) == 1);

  const Graph zero = raw_graph({0, 0}, {{0, 1, 8}});
  CHECK(time_scale(zero, cluster, CostTable(zero, cluster, CostModel::raw())) == 1);
}

TEST_CASE("levels, paths and widths equal those of all paths one by one") {
  testing::CaseLimits limits;
  limits.max_nodes = 11;
  limits.max_devices = 4;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    // Sums of small integers are exact, so that ties are ties; reals are compared in value alone.
    limits.integers = seed % 2 == 0;
    const testing::RandomCase problem = testing::random_case(seed, limits);
    const Graph& graph = problem.graph;
    INFO("seed " << seed << ' ' << problem);
    CostTable costs(graph, problem.cluster, problem.cost_model);
    if (limits.integers) {
      costs.mean = costs.least;
      costs.mean_latency = 2;
      costs.mean_seconds_per_byte = 1;
    }
    for (const bool compute_only : {false, true}) {
      const Levels all = levels(graph, costs, {.compute_only = compute_only});
      Path longest{-1, {}};
      for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
        const NodeId node{static_cast<std::int64_t>(v)};
        const Path onwards = longest_path(graph, costs, compute_only, true, node);
        const Path backwards = longest_path(graph, costs, compute_only, false, node);
        CHECK_THAT(all.b_level[v], WithinRel(onwards.seconds, 1e-12));
        CHECK_THAT(all.t_level[v], WithinRel(backwards.seconds, 1e-12));
        if (limits.integers) {
          CHECK(b_path(all, node) == onwards.nodes);
          CHECK(t_path(all, node) == backwards.nodes);
        }
        if (graph.predecessors(node).empty() && onwards.seconds > longest.seconds) {
          longest = onwards;
        }
      }
      const CriticalPath critical = critical_path(graph, costs, {.compute_only = compute_only});
      CHECK_THAT(critical.seconds, WithinRel(std::max(0.0, longest.seconds), 1e-12));
      if (limits.integers) CHECK(critical.nodes == longest.nodes);
    }
    std::vector<std::size_t> widths;
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      std::vector<Path> paths;
      all_paths(graph, costs, true, false, {0, {NodeId{static_cast<std::int64_t>(v)}}}, paths);
      std::size_t depth = 0;
      for (const Path& path : paths) depth = std::max(depth, path.nodes.size() - 1);
      if (depth >= widths.size()) widths.resize(depth + 1);
      ++widths[depth];
    }
    CHECK(level_widths(graph) == widths);
    CHECK(width(graph) == (widths.empty() ? 0 : *std::max_element(widths.begin(), widths.end())));
  }
}

TEST_CASE("b-levels are the upward ranks of the literature's example") {
  const auto example = testing::literature_example();
  if (!example) return;
  const CostTable costs(example->graph, Cluster::uniform(3), CostModel::of(example->graph));
  const std::vector<double> ranks = {108,       77,        80,        80,        69,
                                     190.0 / 3, 128.0 / 3, 107.0 / 3, 133.0 / 3, 44.0 / 3};
  const Levels all = levels(example->graph, costs);
  REQUIRE(all.b_level.size() == ranks.size());
  for (std::size_t v = 0; v < ranks.size(); ++v) {
    CHECK_THAT(all.b_level[v], WithinAbs(ranks[v], 1e-9));
  }
  CHECK(critical_path(example->graph, costs).nodes == ids({0, 1, 8, 9}));
}

}  // namespace
}  // namespace doppler
