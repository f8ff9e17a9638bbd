// Routes between devices that no link joins: the paths of a cluster.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graphs/cluster.h"

namespace doppler {

// The best route of every ordered pair, row-major [n_devices, n_devices]; `n_hops` is 0 on the
// diagonal and for a pair that cannot be reached. Best: fewest hops, then least latency, then
// larger bandwidth, then smaller device ids along the path, compared one by one from the source.
// Latencies are summed from the source on, and ties are exact equality at every device of the path.
// Requires links whose ids are in range, none to itself, at most one for a pair. O(devices * links)
// where the bottlenecks of a source are few or their paths apart, O(devices^2 * links) at worst;
// memory O(devices^2).
std::vector<Route> find_routes(std::size_t n_devices, std::span<const Link> links);

}  // namespace doppler
