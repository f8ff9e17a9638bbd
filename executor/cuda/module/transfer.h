// A copy between GPUs, or between devices of one.
#pragma once

#include <cstddef>

#include "executor/cuda/module/gpu.h"

namespace doppler::cuda {

struct Transfer {
  Gpu* from_gpu = nullptr;
  const std::byte* from = nullptr;
  Gpu* to_gpu = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

// The stream in whose order a transfer takes its turn, and an untimed event of the same GPU.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t ready = nullptr;
};

}  // namespace doppler::cuda
