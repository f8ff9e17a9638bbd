// Schedule::bulk_synchronous: all nodes of a level, barrier, all transfers of their outputs,
// barrier, the next level. Transfers of placed graph inputs have a phase of their own before the
// first level. Private to executor/simulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/simulator/model.h"
#include "executor/simulator/network.h"

namespace doppler::simulation {

class BulkSynchronous {
 public:
  explicit BulkSynchronous(const Model& model);

  // One run; `devices` is by position. The timeline is overwritten. A node is ready at the start of
  // its phase. O((nodes + edges) log nodes + nodes x streams).
  void run(std::span<const std::int32_t> devices, std::uint64_t seed, Timeline& timeline);

 private:
  // A slot is free from an instant on; a node that takes no time frees it one round later.
  struct Slot {
    double free = 0;
    std::int32_t round = 0;
    friend auto operator<=>(const Slot&, const Slot&) = default;
  };
  struct Item {
    double first;
    std::int32_t node;
    std::int32_t position;
  };

  // Runs the nodes of positions [begin, end) from `now` on; returns the end of the last one.
  double compute(std::size_t begin, std::size_t end, double now);
  // Lets all transfers under way arrive; returns the last arrival, at least `now`.
  double finish_transfers(double now);

  const Model& model_;
  Luck luck_;
  TransferNetwork network_;
  std::span<const std::int32_t> devices_;
  Timeline* timeline_ = nullptr;
  std::vector<std::size_t> first_slot_;  // by device
  std::vector<Slot> slots_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> arrived_;
};

}  // namespace doppler::simulation
