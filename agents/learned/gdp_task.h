// What of a task GDP reads, made once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

// Nodes are known by their place in the order: largest b-level first, which is topological.
struct GdpTask {
  explicit GdpTask(std::shared_ptr<const PlacementModel> placement);

  std::shared_ptr<const PlacementModel> model;
  std::size_t n_features = 0;
  std::vector<float> features;          // [n_nodes, n_features], the paper's node features
  std::vector<NodeId> order;            // [n_nodes]
  std::vector<std::int32_t> first;      // [n_nodes + 1] into the neighbours
  std::vector<std::int32_t> neighbour;  // producers and readers, distinct
};

}  // namespace doppler
