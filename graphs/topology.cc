#include "graphs/topology.h"

#include <string>

namespace doppler {

std::vector<DevicePair> ring_pairs(std::int64_t n) {
  std::vector<DevicePair> pairs;
  for (std::int64_t d = 0; d + 1 < n; ++d) pairs.emplace_back(d, d + 1);
  if (n > 2) pairs.emplace_back(n - 1, 0);
  return pairs;
}

std::vector<DevicePair> mesh_pairs(std::int64_t n, std::int64_t rows) {
  const std::int64_t columns = n / rows;
  std::vector<DevicePair> pairs;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t device = row * columns + column;
      if (column + 1 < columns) pairs.emplace_back(device, device + 1);
      if (row + 1 < rows) pairs.emplace_back(device, device + columns);
    }
  }
  return pairs;
}

std::int64_t mesh_rows(std::int64_t n) {
  std::int64_t rows = 1;
  for (std::int64_t r = 1; r * r <= n; ++r) {
    if (n % r == 0) rows = r;
  }
  return rows;
}

void add_own_link(ClusterParts& parts, DeviceId from, DeviceId to, double latency,
                  double bandwidth) {
  const ChannelId channel{static_cast<std::int64_t>(parts.channels.size())};
  parts.links.push_back({from, to, latency, bandwidth, channel});
  parts.channels.push_back(
      {std::to_string(from.value) + "->" + std::to_string(to.value), bandwidth});
}

}  // namespace doppler
