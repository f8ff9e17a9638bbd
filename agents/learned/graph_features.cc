#include "agents/learned/graph_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace doppler {

namespace {

constexpr std::array<std::string_view, 5> kKindGroups = {"contraction", "aggregation", "movement",
                                                         "elementwise", "unknown"};
constexpr std::size_t kTaskColumns = 4;

// The index in kKindGroups. Kinds are those of the workloads and of the published graphs.
std::size_t kind_group(std::string_view kind) {
  constexpr std::array<std::string_view, 2> kContractions = {"einsum", "einsummable"};
  constexpr std::array<std::string_view, 4> kAggregations = {"aggregate", "formation", "sum",
                                                             "max"};
  constexpr std::array<std::string_view, 8> kMovements = {
      "select", "transpose", "rotate", "route", "fill", "squeeze", "squeezer", "cast"};
  constexpr std::array<std::string_view, 3> kUnknown = {"", "node", "synthetic"};
  const auto is_in = [&](const auto& kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  if (is_in(kContractions)) return 0;
  if (is_in(kAggregations)) return 1;
  if (is_in(kMovements)) return 2;
  if (is_in(kUnknown)) return 4;
  return 3;
}

// A table filled row by row.
class Rows {
 public:
  explicit Rows(std::size_t n_values) { values_.reserve(n_values); }
  void add(double value) { values_.push_back(value); }
  std::span<double> values() { return values_; }

 private:
  std::vector<double> values_;
};

double log1(double x) { return std::log1p(x); }

// Sums of mean transfer times over the in-edges and out-edges of each node, in seconds.
struct EdgeSums {
  explicit EdgeSums(const PlacementModel& model) : in(model.n_nodes()), out(model.n_nodes()) {
    const Graph& graph = model.task().graph;
    for (std::size_t e = 0; e < graph.n_edges(); ++e) {
      const EdgeId id{static_cast<std::int64_t>(e)};
      const double seconds = model.costs().mean_transfer(graph.edge_bytes(id));
      in[graph.edge(id).reader.index()] += seconds;
      out[graph.edge(id).producer.index()] += seconds;
      total += seconds;
    }
  }
  std::vector<double> in;
  std::vector<double> out;
  double total = 0;
};

// The columns of `full` that are standardised, beyond those of the paper.
void add_full_columns(const PlacementModel& model, const Levels& compute_only, NodeId node,
                      Rows& rows) {
  const Graph& graph = model.task().graph;
  const CostTable& costs = model.costs();
  const double scale = 1 / model.time_scale();
  rows.add(compute_only.b_level[node.index()] * scale);
  rows.add(compute_only.t_level[node.index()] * scale);
  double outputs = 0;
  for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
    const TensorId tensor{graph.first_tensor(node).value + static_cast<std::int64_t>(i)};
    outputs += costs.mean_transfer(graph.tensor_bytes(tensor));
  }
  rows.add(outputs * scale);
  double largest = costs.least[node.index()];
  for (std::size_t c = 0; c < costs.n_columns; ++c) {
    largest = std::max(largest, costs.seconds[node.index() * costs.n_columns + c]);
  }
  rows.add((largest - costs.least[node.index()]) * scale);
  rows.add(graph.level(node));
  rows.add(log1(static_cast<double>(graph.predecessors(node).size())));
  rows.add(log1(static_cast<double>(graph.successors(node).size())));
  rows.add(log1(graph.bytes_read(node) + graph.bytes_written(node)));
}

// Numbers of the whole task, of order 1.
std::array<double, kTaskColumns> task_columns(const PlacementModel& model, double total_transfer) {
  double longest = 0;
  for (double level : model.levels().b_level) longest = std::max(longest, level);
  const double scale = 1 / model.time_scale();
  return {log1(static_cast<double>(model.n_devices())) / 2,
          log1(static_cast<double>(model.n_nodes())) / 6, log1(total_transfer * scale) / 2,
          log1(longest * scale) / 2};
}

void add_edges(const PlacementModel& model, GraphFeatures& features) {
  const Graph& graph = model.task().graph;
  const std::size_t n_edges = graph.n_edges();
  std::vector<double> seconds(n_edges);
  features.source.resize(2 * n_edges);
  features.target.resize(2 * n_edges);
  for (std::size_t e = 0; e < n_edges; ++e) {
    const EdgeId id{static_cast<std::int64_t>(e)};
    const Edge edge = graph.edge(id);
    seconds[e] = model.costs().mean_transfer(graph.edge_bytes(id)) / model.time_scale();
    features.source[e] = features.target[n_edges + e] = edge.producer.value;
    features.target[e] = features.source[n_edges + e] = edge.reader.value;
  }
  standardise(seconds, 1);
  const std::vector<float> values(seconds.begin(), seconds.end());
  set_edge_values(values, features);
}

}  // namespace

void standardise(std::span<double> x, std::size_t n_columns, std::span<const double> weights) {
  const std::size_t n_rows = n_columns == 0 ? 0 : x.size() / n_columns;
  if (n_rows == 0) return;
  const auto weight = [&](std::size_t row) { return weights.empty() ? 1.0 : weights[row]; };
  double total = 0;
  for (std::size_t r = 0; r < n_rows; ++r) total += weight(r);
  for (std::size_t c = 0; c < n_columns; ++c) {
    double sum = 0;
    for (std::size_t r = 0; r < n_rows; ++r) sum += weight(r) * x[r * n_columns + c];
    const double mean = sum / total;
    double squares = 0;
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double away = x[r * n_columns + c] - mean;
      squares += weight(r) * away * away;
    }
    const double deviation = std::sqrt(squares / total) + kDeviationFloor;
    for (std::size_t r = 0; r < n_rows; ++r) {
      x[r * n_columns + c] = (x[r * n_columns + c] - mean) / deviation;
    }
  }
}

std::vector<std::string> node_feature_names(NodeFeatures set) {
  std::vector<std::string> names = {"compute", "b_level", "t_level", "incoming_transfer",
                                    "outgoing_transfer"};
  if (set == NodeFeatures::paper) return names;
  for (const char* name : {"compute_b_level", "compute_t_level", "output_transfer",
                           "compute_spread", "level", "producers", "readers", "bytes"}) {
    names.emplace_back(name);
  }
  for (std::string_view group : kKindGroups) names.push_back("kind_" + std::string(group));
  for (const char* name : {"task_devices", "task_nodes", "task_transfer", "task_longest_path"}) {
    names.emplace_back(name);
  }
  return names;
}

GraphFeatures graph_features(const PlacementModel& model, NodeFeatures set) {
  const Graph& graph = model.task().graph;
  const bool full = set == NodeFeatures::full;
  GraphFeatures features;
  features.n_nodes = model.n_nodes();
  features.n_columns = node_feature_names(set).size();
  const std::size_t n_raw = full ? kKindGroups.size() + kTaskColumns : 0;
  const std::size_t n_standardised = features.n_columns - n_raw;

  const EdgeSums sums(model);
  const double scale = 1 / model.time_scale();
  Levels compute_only;
  if (full) compute_only = levels(graph, model.costs(), {.compute_only = true});
  Rows rows(features.n_nodes * n_standardised);
  for (std::size_t v = 0; v < features.n_nodes; ++v) {
    rows.add(model.costs().mean[v] * scale);
    rows.add(model.levels().b_level[v] * scale);
    rows.add(model.levels().t_level[v] * scale);
    rows.add(sums.in[v] * scale);
    rows.add(sums.out[v] * scale);
    if (full) add_full_columns(model, compute_only, NodeId(static_cast<std::int64_t>(v)), rows);
  }
  standardise(rows.values(), n_standardised);

  features.nodes.reserve(features.n_nodes * features.n_columns);
  const auto task = task_columns(model, sums.total);
  for (std::size_t v = 0; v < features.n_nodes; ++v) {
    for (double x : rows.values().subspan(v * n_standardised, n_standardised)) {
      features.nodes.push_back(static_cast<float>(x));
    }
    if (!full) continue;
    const std::size_t group = kind_group(graph.kind(NodeId(static_cast<std::int64_t>(v))));
    for (std::size_t g = 0; g < kKindGroups.size(); ++g) {
      features.nodes.push_back(g == group ? 1.0F : 0.0F);
    }
    for (double x : task) features.nodes.push_back(static_cast<float>(x));
  }
  add_edges(model, features);
  return features;
}

void set_edge_values(std::span<const float> edge_values, GraphFeatures& features) {
  const std::size_t n_edges = edge_values.size();
  features.values.assign(edge_values.begin(), edge_values.end());
  std::sort(features.values.begin(), features.values.end());
  features.values.erase(std::unique(features.values.begin(), features.values.end()),
                        features.values.end());
  features.value.resize(2 * n_edges);
  for (std::size_t e = 0; e < n_edges; ++e) {
    const auto at =
        std::lower_bound(features.values.begin(), features.values.end(), edge_values[e]);
    features.value[e] = features.value[n_edges + e] =
        static_cast<std::int32_t>(at - features.values.begin());
  }
}

}  // namespace doppler
