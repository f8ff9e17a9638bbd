// Peak memory of each device, from a timeline. Private to executor/simulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/simulator/model.h"

namespace doppler::simulation {

// A tensor lives from the start of its node, a received copy from the start of its transfer, both
// until the last reader on that device and the last transfer from it have ended. Outputs that
// nobody reads stay from the start of their node on. Graph inputs stay from 0 on, where they are
// read (replicated) or where they lie and from the start of their transfers (placed), if anybody
// reads them. What is freed at an instant makes room for what is allocated at it; a tensor whose
// life ends at the instant at which it begins takes no room.
class MemoryMeter {
 public:
  explicit MemoryMeter(const Model& model);

  // Whether a peak could be larger than its device's memory: false if everything that a device ever
  // holds fits at once. O(nodes + transfers), much cheaper than peaks().
  bool could_exceed(std::span<const std::int32_t> devices, const Timeline& timeline);

  // Bytes by device, valid until the next call; `devices` is by position.
  // O((nodes + transfers) log) time, no allocation after the first calls.
  std::span<const double> peaks(std::span<const std::int32_t> devices, const Timeline& timeline);

 private:
  // Calls hold(device, bytes) for each graph input that a device holds throughout.
  template <class Hold>
  void for_each_input(std::span<const std::int32_t> devices, Hold&& hold);

  struct Change {
    double time;
    double bytes;  // negative: freed
    std::int32_t device;
  };
  const Model& model_;
  std::vector<double> unread_;  // by position: bytes of outputs that nobody reads
  std::vector<double> peak_;
  std::vector<double> capacity_;         // by device: its memory
  std::vector<std::size_t> last_input_;  // by device: the last replicated input met there, from 1
  std::vector<double> last_sent_;        // by source: the end of its last transfer
  std::vector<Change> changes_;
};

}  // namespace doppler::simulation
