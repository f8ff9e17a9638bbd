// Copies through pinned host memory, for GPUs that cannot reach each other: while one half of the
// memory is filled by the source, the other one is emptied by the destination.
#pragma once

#include <array>
#include <map>
#include <memory>

#include "executor/cuda/module/transfer.h"

namespace doppler::cuda {

// Of one lane. Memory and streams are made when they are first needed.
class StagedCopy {
 public:
  // Enqueues a transfer behind what the lane holds, and lets the lane wait for it. Throws RunError.
  void enqueue(const Transfer& transfer, const Lane& lane);
  // After a failure: until nothing that was enqueued is under way beside the lane.
  void wait();

 private:
  struct Destination {
    OwnedStream stream;
    std::array<OwnedEvent, 2> emptied;  // of the two halves
  };
  Destination& destination(Gpu& gpu);

  std::unique_ptr<PinnedMemory> memory_;
  std::map<const Gpu*, Destination> destinations_;
};

}  // namespace doppler::cuda
