// CUDA's objects with an owner. Their destruction cannot fail in a way that anybody could mend, so
// that its return codes are let go.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "executor/cuda/module/check.h"

namespace doppler::cuda {

// Makes a GPU the calling thread's current one, and gives back the one before.
class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) {
    check(cudaGetDevice(&before_), "ask for the current GPU");
    if (before_ != gpu) check(cudaSetDevice(gpu), "choose a GPU");
    is_changed_ = before_ != gpu;
  }
  ~CurrentGpu() {
    if (is_changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int before_ = 0;
  bool is_changed_ = false;
};

struct Destroy {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  void operator()(cudaMemPool_t pool) const { static_cast<void>(cudaMemPoolDestroy(pool)); }
  void operator()(cublasHandle_t handle) const { static_cast<void>(cublasDestroy(handle)); }
};

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

using OwnedStream = Owned<cudaStream_t>;
using OwnedEvent = Owned<cudaEvent_t>;
using OwnedPool = Owned<cudaMemPool_t>;
using OwnedBlas = Owned<cublasHandle_t>;

// All on the current GPU.
inline OwnedStream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream");
  return OwnedStream(stream);
}

// `timed`: its instant can be asked for, and a thread that waits for it sleeps.
inline OwnedEvent make_event(bool timed) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timed ? cudaEventBlockingSync : cudaEventDisableTiming),
        "create an event");
  return OwnedEvent(event);
}

// Host memory that a GPU's copy engine reads and writes directly.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) {
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable), "pin host memory");
  }
  ~PinnedMemory() { static_cast<void>(cudaFreeHost(data_)); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace doppler::cuda
