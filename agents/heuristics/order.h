// Agents that take the nodes in an order which is known before the episode.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

// A topological order, read once from the front. next() is O(1) over an episode.
class NodeOrder {
 public:
  // For begin(). The storage of an earlier episode is reused.
  std::vector<NodeId>& restart() {
    next_ = 0;
    return nodes_;
  }
  void restart(std::span<const NodeId> nodes) { restart().assign(nodes.begin(), nodes.end()); }

  // The first node that is not placed: a candidate, for those before it are placed.
  NodeId next(const PartialSchedule& schedule) {
    while (schedule.placed(nodes_[next_])) ++next_;
    return nodes_[next_];
  }

 private:
  std::vector<NodeId> nodes_;
  std::size_t next_ = 0;
};

}  // namespace doppler
