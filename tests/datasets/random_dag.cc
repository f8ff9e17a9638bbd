// Random graphs: shapes, costs, and the same graph for a seed on every machine.
#include <algorithm>
#include <map>
#include <set>

#include "datasets/workloads.h"
#include "graphs/analysis.h"
#include "tests/support/catch.h"

using namespace doppler;

namespace {

Graph random_dag(const std::string& arguments) {
  return make_workload("random-dag(" + arguments + ")", 4);
}

std::set<std::pair<std::int32_t, std::int32_t>> edge_set(const Graph& graph) {
  std::set<std::pair<std::int32_t, std::int32_t>> edges;
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    edges.emplace(edge.producer.value, edge.reader.value);
  }
  return edges;
}

// Whether series and parallel reductions bring a graph of one source and one sink to one edge,
// which they do exactly for two-terminal series-parallel graphs (Valdes, Tarjan, Lawler, 1982).
bool is_series_parallel(const Graph& graph) {
  auto edges = edge_set(graph);
  std::map<std::int32_t, std::set<std::int32_t>> in, out;
  for (const auto& [u, v] : edges) {
    out[u].insert(v);
    in[v].insert(u);
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(graph.n_nodes()); ++v) {
      if (in[v].size() != 1 || out[v].size() != 1) continue;
      const std::int32_t u = *in[v].begin();
      const std::int32_t w = *out[v].begin();
      out[u].erase(v);
      in[w].erase(v);
      in[v].clear();
      out[v].clear();
      out[u].insert(w);  // a parallel edge is merged by the set
      in[w].insert(u);
      changed = true;
    }
  }
  std::size_t n_edges = 0;
  for (const auto& [u, readers] : out) n_edges += readers.size();
  return n_edges == 1;
}

}  // namespace

TEST_CASE("A seed gives one random graph on every machine, another seed another") {
  for (const std::string shape : {"layered", "erdos", "series-parallel"}) {
    CAPTURE(shape);
    CHECK(random_dag("n=200,seed=5,shape=" + shape) == random_dag("n=200,seed=5,shape=" + shape));
    CHECK(random_dag("n=200,seed=5,shape=" + shape) != random_dag("n=200,seed=6,shape=" + shape));
  }
  // From a second implementation, in Python. Fixed once: a change breaks every result that was
  // published on these graphs.
  CHECK(edge_set(random_dag("n=6,width=2,seed=1")) ==
        std::set<std::pair<std::int32_t, std::int32_t>>{{0, 3}, {1, 2}, {2, 4}, {2, 5}, {3, 4}});
  CHECK(edge_set(random_dag("n=8,shape=erdos,degree=1,seed=1")) ==
        std::set<std::pair<std::int32_t, std::int32_t>>{
            {0, 4}, {1, 3}, {1, 4}, {1, 7}, {2, 5}, {2, 7}, {3, 4}, {3, 7}});
  CHECK(edge_set(random_dag("n=6,shape=series-parallel,seed=1")) ==
        std::set<std::pair<std::int32_t, std::int32_t>>{
            {0, 1}, {0, 2}, {0, 4}, {1, 3}, {2, 4}, {3, 4}, {4, 5}});
}

TEST_CASE("Layers of a layered random graph are as wide as asked") {
  const Graph graph = random_dag("n=1000,width=64,degree=3");
  auto expected = std::vector<std::size_t>(15, 64);
  expected.push_back(1000 - 15 * 64);
  CHECK(level_widths(graph) == expected);
  const double mean = static_cast<double>(graph.n_edges()) / (1000 - 64);
  CHECK(mean > 2.7);
  CHECK(mean < 3.1);
}

TEST_CASE("A layer that is wider than the graph leaves nodes without edges") {
  const Graph graph = random_dag("n=10,width=64");
  CHECK(graph.n_nodes() == 10);
  CHECK(graph.n_edges() == 0);
}

TEST_CASE(
    "An Erdos-Renyi graph has exactly the edges asked for, all of them if there are no more") {
  CHECK(random_dag("n=1000,shape=erdos,degree=5").n_edges() == 5000);
  CHECK(random_dag("n=10,shape=erdos,degree=3").n_edges() == 30);
  CHECK(random_dag("n=10,shape=erdos,degree=64").n_edges() == 45);
  CHECK(random_dag("n=1,shape=erdos").n_edges() == 0);
}

TEST_CASE("Pairs of an Erdos-Renyi graph are drawn equally often") {
  // 400 graphs of 6 nodes with 6 of 15 edges: each edge 160 times, standard deviation below 10.
  std::map<std::pair<std::int32_t, std::int32_t>, int> counts;
  for (int seed = 0; seed < 400; ++seed) {
    for (const auto& pair :
         edge_set(random_dag("n=6,shape=erdos,degree=1,seed=" + std::to_string(seed)))) {
      ++counts[pair];
    }
  }
  CHECK(counts.size() == 15);
  for (const auto& [pair, count] : counts) {
    CHECK(count > 110);
    CHECK(count < 210);
  }
}

TEST_CASE("A series-parallel random graph is one, and the check knows a graph that is none") {
  for (int seed = 0; seed < 20; ++seed) {
    CHECK(
        is_series_parallel(random_dag("n=100,shape=series-parallel,seed=" + std::to_string(seed))));
  }
  CHECK(random_dag("n=1,shape=series-parallel").n_edges() == 0);
  CHECK(random_dag("n=2,shape=series-parallel").n_edges() == 1);
  CHECK_FALSE(is_series_parallel(random_dag("n=20,shape=erdos,degree=4")));
}

TEST_CASE("Costs of a random graph are spread evenly about their mean") {
  const Graph graph = random_dag("n=1000,flops=8,bytes=100,spread=0.25");
  std::vector<double> flops, bytes;
  for (NodeId node : graph.topological_order()) {
    flops.push_back(graph.flops(node));
    bytes.push_back(graph.tensor_bytes(graph.first_tensor(node)));
  }
  std::sort(flops.begin(), flops.end());
  std::sort(bytes.begin(), bytes.end());
  for (std::size_t k = 0; k < 1000; ++k) {
    const double place = (2 * static_cast<double>(k) + 1) / 1000 - 1;
    CHECK(flops[k] == Approx(8 * (1 + 0.25 * place)));
    CHECK(bytes[k] == Approx(100 * (1 + 0.25 * place)));
  }
}

TEST_CASE("A random graph of a hundred thousand nodes of every shape is valid") {
  for (const std::string shape : {"layered", "erdos", "series-parallel"}) {
    const Graph graph = random_dag("n=100000,shape=" + shape);
    CHECK(graph.n_nodes() == 100000);
    CHECK(graph.n_edges() >= 99999 - 64);
  }
}
