// Layered random graphs of any size for the benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graphs/graph_builder.h"

namespace doppler::benchmarks {

// `n` nodes in layers of `width`; each reads one to three nodes of the layer before. Raw costs of
// about 1 s, tensors of about 1 byte. With `shuffled`, ids are in random order instead of by layer.
inline Graph layered_graph(std::size_t n, std::size_t width, bool shuffled = false) {
  std::mt19937_64 random(n);
  std::uniform_real_distribution<double> cost(0.5, 1.5);
  std::vector<std::size_t> place(n);  // of the i-th node by layers
  std::iota(place.begin(), place.end(), std::size_t{0});
  if (shuffled) std::ranges::shuffle(place, random);
  std::vector<std::size_t> at(n);
  for (std::size_t i = 0; i < n; ++i) at[place[i]] = i;

  GraphBuilder builder("layered");
  builder.reserve(n, 2 * n);
  std::vector<double> seconds(n);
  for (std::size_t id = 0; id < n; ++id) {
    Node node{.name = "node" + std::to_string(at[id])};
    node.outputs = {{.bytes = cost(random)}};
    builder.add_node(node);
    seconds[id] = cost(random);
  }
  for (std::size_t i = width; i < n; ++i) {
    const std::size_t first = (i / width - 1) * width;
    const std::size_t n_read = 1 + random() % 3;
    const std::size_t start = random() % width;
    for (std::size_t k = 0; k < n_read; ++k) {
      builder.add_edge(NodeId(static_cast<std::int64_t>(place[first + (start + k) % width])),
                       NodeId(static_cast<std::int64_t>(place[i])));
    }
  }
  builder.set_raw_compute(std::move(seconds));
  return builder.build();
}

// One of `n_devices` for each of `n` entries, at random.
inline std::vector<DeviceId> random_devices(std::size_t n, std::size_t n_devices,
                                            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<DeviceId> devices(n);
  for (DeviceId& device : devices)
    device = DeviceId(static_cast<std::int64_t>(random() % n_devices));
  return devices;
}

}  // namespace doppler::benchmarks
