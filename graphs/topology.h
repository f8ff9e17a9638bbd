// Which devices of a ring or a grid are neighbours, and links between them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graphs/cluster.h"

namespace doppler {

using DevicePair = std::pair<DeviceId, DeviceId>;

// Each unordered pair of neighbours once. Device n - 1 is the neighbour of device 0; n = 2 has one
// pair. Requires n >= 1.
std::vector<DevicePair> ring_pairs(std::int64_t n);

// A two-dimensional grid of `n` devices, device = row * columns + column. Requires rows to divide
// n.
std::vector<DevicePair> mesh_pairs(std::int64_t n, std::int64_t rows);

// The rows of a mesh that is as square as possible: the largest divisor of n up to sqrt(n).
std::int64_t mesh_rows(std::int64_t n);

// Adds a link of its own channel, whose capacity is the bandwidth and whose name is "from->to".
void add_own_link(ClusterParts& parts, DeviceId from, DeviceId to, double latency,
                  double bandwidth);

}  // namespace doppler
