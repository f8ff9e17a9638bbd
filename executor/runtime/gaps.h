// How long a device idles between two nodes of which one needs the other.
#pragma once

#include <optional>

#include "executor/execution.h"
#include "graphs/graph.h"

namespace doppler {

// The median, in seconds, of start(v) - end(p) over the nodes v whose slot ran p just before, where
// p is the last that v waited for: the machine's own time from one node to the next that depends on
// it. Nothing if there are no such nodes, or no timeline was recorded. 0 for the simulator.
// O(nodes log nodes + edges).
std::optional<double> median_gap(const Graph& graph, const Execution& execution);

}  // namespace doppler
