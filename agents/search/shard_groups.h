// Groups of nodes that do the same to different parts of a tensor.
#pragma once

#include <vector>

#include "graphs/graph.h"

namespace doppler {

// Every node in exactly one group. A group is the nodes of one meta-op, ascending; nodes that the
// graph gives no meta-op are grouped by level and kind. Groups come in the order of their first
// node in the topological order. O(nodes log nodes).
std::vector<std::vector<NodeId>> shard_groups(const Graph& graph);

}  // namespace doppler
