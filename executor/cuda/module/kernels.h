// One launch for each kind of step, asynchronous on a stream.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <vector>

#include "executor/cuda/cuda_devices.h"
#include "executor/runtime/steps.h"

namespace doppler::cuda {

// Where a step runs, and the memory of each buffer of its operation.
struct Launch {
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;  // set to the stream
  Precision precision = Precision::float32;
  int n_processors = 1;
  std::vector<void*> buffers = {};

  [[nodiscard]] void* of(const steps::Access& access) const {
    return buffers[static_cast<std::size_t>(access.buffer)];
  }
};

// Throw RunError if the launch fails.
void launch(const steps::Pointwise& step, const Launch& at);
void launch(const steps::Join& step, const Launch& at);
void launch(const steps::Reduce& step, const Launch& at);
void launch(const steps::Multiply& step, const Launch& at);
void launch(const steps::Rotate& step, const Launch& at);
void launch(const steps::Route& step, const Launch& at);
void launch(const steps::Causal& step, const Launch& at);

}  // namespace doppler::cuda
