// Every return code of CUDA and cuBLAS goes through check(); NCCL's through one of its own.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <string>

#include "graphs/error.h"

namespace doppler::cuda {

// Throw RunError "what: reason" unless the call went well. `what` says what was tried.
inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // The runtime remembers the last error; the next check must not meet it again.
  static_cast<void>(cudaGetLastError());
  throw RunError(std::string(what) + ": " + cudaGetErrorString(status) + " (" +
                 cudaGetErrorName(status) + ")");
}

inline void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RunError(std::string(what) + ": " + cublasGetStatusString(status) + " (" +
                 cublasGetStatusName(status) + ")");
}

}  // namespace doppler::cuda
