// Random graphs with random costs, of three shapes.
//
// Every draw comes from one splitmix64 sequence, in integers, so that a seed gives the same graph
// on every machine.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "datasets/workloads/builtin.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxNodes = 4'000'000;
constexpr std::int64_t kMaxEdges = 32'000'000;
constexpr std::int64_t kFarLayers = 8;

class Random {
 public:
  explicit Random(std::int64_t seed) : state_(mix64(static_cast<std::uint64_t>(seed))) {}

  // Uniform on 0 .. n - 1 up to a bias of n / 2^32; n <= 2^32.
  std::int64_t below(std::int64_t n) {
    state_ += 0x9e3779b97f4a7c15ULL;
    return static_cast<std::int64_t>(((mix64(state_) >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

 private:
  std::uint64_t state_;
};

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;  // producer, reader

std::pair<std::int32_t, std::int32_t> edge(std::int64_t producer, std::int64_t reader) {
  return {static_cast<std::int32_t>(producer), static_cast<std::int32_t>(reader)};
}

// Layers of `width` nodes. A node reads one node of the layer before it, and 0 .. 2 (degree - 1)
// more, most of them from that layer too, one in eight from any of the last eight layers.
Edges layered_edges(std::int64_t n, std::int64_t width, std::int64_t degree, Random& random) {
  Edges edges;
  std::vector<std::int64_t> chosen;
  for (std::int64_t v = width; v < n; ++v) {
    const std::int64_t layer_begin = v - v % width;
    const std::int64_t far_begin = std::max<std::int64_t>(0, layer_begin - kFarLayers * width);
    chosen = {layer_begin - width + random.below(width)};
    const std::int64_t n_more = random.below(2 * degree - 1);
    for (std::int64_t k = 0; k < n_more; ++k) {
      const std::int64_t begin = random.below(8) == 0 ? far_begin : layer_begin - width;
      const std::int64_t producer = begin + random.below(layer_begin - begin);
      if (std::find(chosen.begin(), chosen.end(), producer) == chosen.end()) {
        chosen.push_back(producer);
      }
    }
    for (std::int64_t producer : chosen) edges.push_back(edge(producer, v));
  }
  return edges;
}

// n degree different pairs of nodes, all sets of pairs being equally likely (Erdos and Renyi's
// G(n, M)); the smaller number is the producer.
Edges erdos_edges(std::int64_t n, std::int64_t degree, Random& random) {
  const std::int64_t n_pairs = n * (n - 1) / 2;
  const std::int64_t n_edges = std::min(n * degree, n_pairs);
  Edges edges;
  if (2 * n_edges > n_pairs) {  // so many that drawing again and again would be slow
    for (std::int64_t v = 1; v < n; ++v) {
      for (std::int64_t u = 0; u < v; ++u) edges.push_back(edge(u, v));
    }
    for (std::int64_t k = 0; k < n_edges; ++k) {
      std::swap(edges[static_cast<std::size_t>(k)],
                edges[static_cast<std::size_t>(k + random.below(n_pairs - k))]);
    }
    edges.resize(static_cast<std::size_t>(n_edges));
  }
  const auto by_reader = [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first) < std::pair(b.second, b.first);
  };
  std::sort(edges.begin(), edges.end(), by_reader);
  while (static_cast<std::int64_t>(edges.size()) < n_edges) {
    while (static_cast<std::int64_t>(edges.size()) < n_edges) {
      const std::int64_t u = random.below(n);
      const std::int64_t v = random.below(n);
      if (u != v) edges.push_back(edge(std::min(u, v), std::max(u, v)));
    }
    std::sort(edges.begin(), edges.end(), by_reader);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }
  return edges;
}

// Grown from one edge: each further node is put into an edge drawn at random (series), or beside it
// (parallel), with equal chances. Nodes are numbered so that producers come first.
Edges series_parallel_edges(std::int64_t n, Random& random) {
  if (n < 2) return {};
  Edges edges = {edge(0, 1)};
  for (std::int64_t x = 2; x < n; ++x) {
    const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(edges.size())));
    const auto [u, v] = edges[at];
    if (random.below(2) == 0) {
      edges[at] = edge(u, x);
    } else {
      edges.push_back(edge(u, x));
    }
    edges.push_back(edge(x, v));
  }
  std::vector<std::vector<std::int32_t>> readers(static_cast<std::size_t>(n));
  std::vector<std::int32_t> n_waiting(static_cast<std::size_t>(n), 0);
  for (const auto& [u, v] : edges) {
    readers[static_cast<std::size_t>(u)].push_back(v);
    ++n_waiting[static_cast<std::size_t>(v)];
  }
  std::vector<std::int32_t> order = {0};
  std::vector<std::int32_t> number(static_cast<std::size_t>(n), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    number[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
    for (std::int32_t reader : readers[static_cast<std::size_t>(order[i])]) {
      if (--n_waiting[static_cast<std::size_t>(reader)] == 0) order.push_back(reader);
    }
  }
  for (auto& [u, v] : edges) {
    u = number[static_cast<std::size_t>(u)];
    v = number[static_cast<std::size_t>(v)];
  }
  return edges;
}

// The numbers mean (1 + spread ((2 k + 1) / n - 1)), k = 0 .. n - 1, in random order: their mean is
// `mean` whatever the seed.
std::vector<double> spread_values(std::int64_t n, double mean, double spread, Random& random) {
  std::vector<double> values;
  for (std::int64_t k = 0; k < n; ++k) {
    const double place = static_cast<double>(2 * k + 1) / static_cast<double>(n) - 1;
    values.push_back(mean * (1 + spread * place));
  }
  for (std::int64_t k = n - 1; k > 0; --k) {
    std::swap(values[static_cast<std::size_t>(k)],
              values[static_cast<std::size_t>(random.below(k + 1))]);
  }
  return values;
}

Graph make_random_dag(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t shards = shards_of(parameters, n_devices);
  const auto n = parameters.get<std::int64_t>("n");
  const auto degree = parameters.get<std::int64_t>("degree");
  const auto shape = parameters.get<std::string>("shape");
  const auto spread = parameters.get<double>("spread");
  if (shape != "series-parallel" && n * degree > kMaxEdges) {
    throw UsageError("random-dag: n times degree is " + std::to_string(n * degree) +
                     ", more than " + std::to_string(kMaxEdges) +
                     " edges; choose a smaller n or degree");
  }
  Random random(parameters.get<std::int64_t>("seed"));
  const Edges edges = shape == "layered"
                          ? layered_edges(n, parameters.get<std::int64_t>("width"), degree, random)
                      : shape == "erdos" ? erdos_edges(n, degree, random)
                                         : series_parallel_edges(n, random);
  const auto flops = spread_values(n, parameters.get<double>("flops"), spread, random);
  const auto bytes = spread_values(n, parameters.get<double>("bytes"), spread, random);
  std::vector<double> bytes_read(static_cast<std::size_t>(n), 0);
  for (const auto& [u, v] : edges) {
    bytes_read[static_cast<std::size_t>(v)] += bytes[static_cast<std::size_t>(u)];
  }

  GraphBuilder builder("random-dag");
  builder.reserve(static_cast<std::size_t>(n), edges.size());
  Node node;
  node.kind = "synthetic";
  for (std::int64_t v = 0; v < n; ++v) {
    const auto at = static_cast<std::size_t>(v);
    node.name = "node" + std::to_string(v);
    node.meta_op = static_cast<std::int32_t>(v / shards);
    node.flops = flops[at];
    node.bytes_read = bytes_read[at];
    node.bytes_written = bytes[at];
    node.outputs = {{.bytes = bytes[at]}};
    builder.add_node(node);
  }
  for (const auto& [u, v] : edges) builder.add_edge(NodeId(u), NodeId(v));
  return builder.build();
}

}  // namespace

WorkloadEntry random_dag_workload() {
  WorkloadEntry entry;
  entry.name = "random-dag";
  entry.summary = "random graph: layered, series-parallel or Erdos-Renyi";
  entry.source = "own";
  entry.parameters = {
      {.name = "seed", .summary = "of all draws", .default_value = std::int64_t{0}, .minimum = 0},
      size_parameter("n", "nodes", 1000, kMaxNodes),
      {.name = "shape",
       .summary = "of the graph",
       .default_value = std::string("layered"),
       .choices = {"layered", "series-parallel", "erdos"}},
      size_parameter("width", "nodes a layer (layered)", 64, kMaxNodes),
      size_parameter("degree", "mean number of predecessors (layered, erdos)", 2, 64),
      {.name = "flops",
       .summary = "mean FLOPs a node",
       .default_value = 1e9,
       .minimum = 0,
       .maximum = 1e30},
      {.name = "bytes",
       .summary = "mean bytes of a node's output",
       .default_value = 1e6,
       .minimum = 1,
       .maximum = 1e30},
      {.name = "spread",
       .summary = "costs are uniform from (1 - spread) to (1 + spread) times their mean",
       .default_value = 0.5,
       .minimum = 0,
       .maximum = 1},
      shards_parameter("nodes a meta-op; 0: one a device")};
  entry.make = make_random_dag;
  entry.total_flops = [](const Parameters& parameters, std::int64_t) {
    return static_cast<double>(parameters.get<std::int64_t>("n")) * parameters.get<double>("flops");
  };
  return entry;
}

}  // namespace doppler
