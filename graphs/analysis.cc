#include "graphs/analysis.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace doppler {
namespace {

// The node of the two that stands for a tie: the better value, then the smaller id.
struct Best {
  double value = 0;
  std::int32_t node = -1;

  void offer(double candidate, NodeId id) {
    if (node < 0 || candidate > value || (candidate == value && id.value < node)) {
      value = candidate;
      node = id.value;
    }
  }
};

std::vector<NodeId> follow(const std::vector<std::int32_t>& next, NodeId node) {
  std::vector<NodeId> path;
  for (std::int32_t at = node.value; at >= 0; at = next[NodeId{at}.index()]) {
    path.push_back(NodeId{at});
  }
  return path;
}

}  // namespace

Levels levels(const Graph& graph, const CostTable& costs, const LevelOptions& options) {
  const std::size_t n = graph.n_nodes();
  Levels result{std::vector<double>(n), std::vector<double>(n), std::vector<std::int32_t>(n, -1),
                std::vector<std::int32_t>(n, -1)};
  const auto transfer = [&](EdgeId edge) {
    return options.compute_only ? 0.0 : costs.mean_transfer(graph.edge_bytes(edge));
  };
  const std::span<const NodeId> order = graph.topological_order();
  for (const NodeId node : order) {
    Best best;
    for (const EdgeId edge : graph.in_edges(node)) {
      const NodeId producer = graph.edge(edge).producer;
      best.offer(result.t_level[producer.index()] + transfer(edge), producer);
    }
    result.t_level[node.index()] = costs.mean[node.index()] + best.value;
    result.t_next[node.index()] = best.node;
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    Best best;
    for (const EdgeId edge : graph.out_edges(*at)) {
      const NodeId reader = graph.edge(edge).reader;
      best.offer(transfer(edge) + result.b_level[reader.index()], reader);
    }
    result.b_level[at->index()] = costs.mean[at->index()] + best.value;
    result.b_next[at->index()] = best.node;
  }
  return result;
}

std::vector<NodeId> b_path(const Levels& levels, NodeId node) {
  return follow(levels.b_next, node);
}

std::vector<NodeId> t_path(const Levels& levels, NodeId node) {
  return follow(levels.t_next, node);
}

CriticalPath critical_path(const Graph& graph, const CostTable& costs,
                           const LevelOptions& options) {
  const Levels all = levels(graph, costs, options);
  // A largest b-level is always attained by a node without predecessors; a reader behind a node
  // that costs nothing may share it, but the path starts at a source.
  Best best;
  for (std::size_t i = 0; i < graph.n_nodes(); ++i) {
    const NodeId node{static_cast<std::int64_t>(i)};
    if (graph.in_edges(node).empty()) best.offer(all.b_level[i], node);
  }
  if (best.node < 0) return {};
  return {best.value, b_path(all, NodeId{best.node})};
}

std::vector<std::size_t> level_widths(const Graph& graph) {
  std::vector<std::size_t> widths;
  for (const NodeId node : graph.topological_order()) {
    const auto level = static_cast<std::size_t>(graph.level(node));
    if (level >= widths.size()) widths.resize(level + 1);
    ++widths[level];
  }
  return widths;
}

std::size_t width(const Graph& graph) {
  const std::vector<std::size_t> widths = level_widths(graph);
  return widths.empty() ? 0 : *std::max_element(widths.begin(), widths.end());
}

double time_scale(const Graph& graph, const Cluster& cluster, const CostTable& costs) {
  double sum = 0;
  for (const double seconds : costs.mean) sum += seconds;
  const double scale = std::max(sum / static_cast<double>(cluster.total_slots()),
                                critical_path(graph, costs, {.compute_only = true}).seconds);
  return scale > 0 ? scale : 1;
}

}  // namespace doppler
