#include "executor/cuda/module/staged_copy.h"

#include <algorithm>

namespace doppler::cuda {
namespace {

constexpr std::size_t kHalf = std::size_t{4} << 20;  // bytes

}  // namespace

StagedCopy::Destination& StagedCopy::destination(Gpu& gpu) {
  const auto found = destinations_.find(&gpu);
  if (found != destinations_.end()) return found->second;
  const CurrentGpu current(gpu.number());
  Destination made{make_stream(), {make_event(false), make_event(false)}};
  return destinations_.emplace(&gpu, std::move(made)).first->second;
}

void StagedCopy::enqueue(const Transfer& transfer, const Lane& lane) {
  if (!memory_) memory_ = std::make_unique<PinnedMemory>(2 * kHalf);
  Destination& to = destination(*transfer.to_gpu);
  std::size_t half = 0;
  for (std::size_t begin = 0; begin < transfer.bytes; begin += kHalf) {
    const std::size_t bytes = std::min(kHalf, transfer.bytes - begin);
    std::byte* staged = memory_->data() + half * kHalf;
    // Before the first two chunks the memory is free: the lane has waited for the transfer before.
    if (begin >= 2 * kHalf) {
      check(cudaStreamWaitEvent(lane.stream, to.emptied[half].get()), "wait for pinned memory");
    }
    check(
        cudaMemcpyAsync(staged, transfer.from + begin, bytes, cudaMemcpyDeviceToHost, lane.stream),
        "copy from a GPU to the host");
    check(cudaEventRecord(lane.ready, lane.stream), "record a staged copy");
    check(cudaStreamWaitEvent(to.stream.get(), lane.ready), "wait for a staged copy");
    check(cudaMemcpyAsync(transfer.to + begin, staged, bytes, cudaMemcpyHostToDevice,
                          to.stream.get()),
          "copy from the host to a GPU");
    check(cudaEventRecord(to.emptied[half].get(), to.stream.get()), "record a staged copy");
    half = 1 - half;
  }
  if (transfer.bytes > 0) {
    // The last chunk's half: chunks of one stream end in their order.
    check(cudaStreamWaitEvent(lane.stream, to.emptied[1 - half].get()), "wait for a staged copy");
  }
}

void StagedCopy::wait() {
  for (const auto& [gpu, destination] : destinations_) {
    static_cast<void>(cudaStreamSynchronize(destination.stream.get()));
  }
}

}  // namespace doppler::cuda
