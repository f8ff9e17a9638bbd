// Seconds that no assignment can beat.
#pragma once

#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

// The largest of several bounds on the makespan of the noise-free simulator; valid for every
// assignment, network, choice rule and input placement. 0 for an empty graph.
// O((nodes + edges) log nodes). With noise or a real engine it is a reference only.
double lower_bound(const Graph& graph, const Cluster& cluster, const CostTable& costs);

// Whether `makespan` lies below `bound` by more than 1e-9 relative.
bool below_bound(double makespan, double bound);

}  // namespace doppler
