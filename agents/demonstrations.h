// Episodes of somebody else that an agent may imitate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graphs/assignment.h"
#include "graphs/ids.h"

namespace doppler {

// What was decided in an episode.
struct Demonstration {
  std::vector<NodeId> order = {};  // in which nodes were placed: each after its predecessors
  Assignment assignment = {};
};

// A source of demonstrations that is read as it is needed, not held in memory as a whole. Const
// members are thread safe.
class Demonstrations {
 public:
  virtual ~Demonstrations() = default;
  // How many there are for a task of the training run; at least 1.
  [[nodiscard]] virtual std::int64_t size(std::size_t task) const = 0;
  // Number 0 to size() - 1; the same at each call. Throws RunError if it cannot be read.
  [[nodiscard]] virtual Demonstration read(std::size_t task, std::int64_t number) const = 0;
};

}  // namespace doppler
