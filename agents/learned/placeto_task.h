// What of a task Placeto reads, made once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

// Edges by the node that they lead to: those of node v are from[first[v]] to from[first[v + 1]].
struct EdgeLists {
  std::vector<std::int32_t> first = {0};
  std::vector<std::int32_t> from = {};
};

// Nodes are known by their place in the order in which they are visited: largest b-level first,
// which is topological. Memory: O(nodes^2) bits.
struct PlacetoTask {
  explicit PlacetoTask(std::shared_ptr<const PlacementModel> placement);

  [[nodiscard]] std::size_t n_nodes() const { return order.size(); }
  // Whether there is a path from `a` to another node `b`.
  [[nodiscard]] bool reaches(std::size_t a, std::size_t b) const {
    return (reached_from[b * n_words + a / 64] >> (a % 64) & 1U) != 0;
  }

  std::shared_ptr<const PlacementModel> model;
  std::vector<NodeId> order;
  std::vector<float> costs;  // [n_nodes, 2] compute, transfer of all outputs; over the largest
  EdgeLists down;            // from producers
  EdgeLists up;              // from readers
  Assignment start;          // of a refinement: a fixed random one
  std::size_t n_words = 0;
  std::vector<std::uint64_t> reached_from;  // [n_nodes, n_words] bit a of row b: a reaches b
};

}  // namespace doppler
