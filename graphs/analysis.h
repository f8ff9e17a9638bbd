// Levels, critical path, width and lower bounds of a graph on a cluster.
//
// With c(v) the mean compute time of v over the devices and t(e) the mean time to send the tensor
// of edge e between two different devices (0 on one device):
//   b-level b(v) = c(v) + max over out-edges e = (v, w) of (t(e) + b(w))
//   t-level t(v) = c(v) + max over in-edges e = (p, v) of (t(p) + t(e))
// b is the upward rank of Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.1.
#pragma once

#include <vector>

#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

struct LevelOptions {
  bool compute_only = false;  // leaves t(e) out
};

// Seconds for each node, in the user's order; O(nodes + edges).
struct Levels {
  std::vector<double> b_level;
  std::vector<double> t_level;
  // The next node on the path that attains the level; -1 at its end; ties to the smaller id.
  std::vector<std::int32_t> b_next;  // a successor
  std::vector<std::int32_t> t_next;  // a predecessor
};
Levels levels(const Graph& graph, const CostTable& costs, const LevelOptions& options = {});

// The b-path (t-path) of a node, itself first.
std::vector<NodeId> b_path(const Levels& levels, NodeId node);
std::vector<NodeId> t_path(const Levels& levels, NodeId node);

// The longest path: its length in seconds is the largest b-level; ties to the smaller id.
struct CriticalPath {
  double seconds = 0;
  std::vector<NodeId> nodes;  // from a source to a sink
};
CriticalPath critical_path(const Graph& graph, const CostTable& costs,
                           const LevelOptions& options = {});

// Nodes on each level (Graph::level), and the largest of these counts.
std::vector<std::size_t> level_widths(const Graph& graph);
std::size_t width(const Graph& graph);

// max(sum of c / total slots, longest compute_only path); 1 if that is 0. What observations and
// rewards are divided by.
double time_scale(const Graph& graph, const Cluster& cluster, const CostTable& costs);

}  // namespace doppler
