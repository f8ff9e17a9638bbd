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

  // Bytes by device, valid until the next call; `devices` is by position.
  // O((nodes + transfers) log) time, no allocation after the first calls.
  std::span<const double> peaks(std::span<const std::int32_t> devices, const Timeline& timeline);

 private:
  struct Change {
    double time;
    double bytes;  // negative: freed
    std::int32_t device;
  };
  const Model& model_;
  std::vector<double> unread_;  // by position: bytes of outputs that nobody reads
  std::vector<double> peak_;
  std::vector<double> last_sent_;  // by source: the end of its last transfer
  std::vector<Change> changes_;
};

}  // namespace doppler::simulation
