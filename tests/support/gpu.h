// Tests that need a GPU.
#pragma once

namespace doppler::testing {

// Whether the CUDA engine finds a GPU; where it does not, a Catch2 warning says what is skipped, by
// which ctest reports the test as skipped.
bool has_gpu();

}  // namespace doppler::testing
