#include "tests/support/gpu.h"

#include "executor/cuda/cuda_devices.h"
#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler::testing {

bool has_gpu() {
  try {
    cuda::need_gpu();
    return true;
  } catch (const RunError& error) {
    WARN("skipped: no GPU (" << error.what() << ")");
    return false;
  }
}

}  // namespace doppler::testing
