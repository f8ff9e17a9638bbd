// The engine named "cuda".
#pragma once

#include "executor/cuda/cuda_devices.h"
#include "executor/engine.h"
#include "executor/runtime/real_engine.h"

namespace doppler {

namespace cuda {

// An engine on GPUs: what is left to choose are warm-up, repeats and seed.
runtime::RealEngineOptions real_engine_options(const CudaOptions& options);

}  // namespace cuda

// Describing it loads nothing; make() loads the module and looks for GPUs, so that it throws
// RunError where there are none.
EngineEntry cuda_engine_entry();

}  // namespace doppler
