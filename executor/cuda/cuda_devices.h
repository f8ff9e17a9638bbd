// The CUDA engine's machine, from the outside: what it is told, and how its module is loaded. No
// CUDA header is needed here, and nothing but the module links CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "executor/runtime/device_api.h"

namespace doppler::cuda {

// How products of float32 matrices are computed; sums are always float32. Tensors of float16 and
// bfloat16 are multiplied as they are.
enum class Precision : std::uint8_t {
  float32,  // CUDA cores: full float32
  tf32,     // tensor cores: factors rounded to 10 bits of fraction
  bfloat16  // tensor cores: factors rounded to 7 bits of fraction
};

// How data move between GPUs. Between devices of one GPU it is always a device copy.
enum class Transport : std::uint8_t {
  peer,    // by peer copies; staged where two GPUs cannot reach each other
  staged,  // through pinned host memory
  nccl     // NCCL's send and receive, one rank a GPU
};

std::string_view to_string(Precision precision);
std::string_view to_string(Transport transport);

// A regular value.
struct CudaOptions {
  // The GPU of each device, as CUDA numbers them; several devices may share one. Empty: device d is
  // on GPU d modulo the number of GPUs.
  std::vector<std::int32_t> gpus = {};
  Precision precision = Precision::float32;
  Transport transport = Transport::peer;
  // For tests on one GPU: its devices exchange data as if they were on several. A rank of NCCL then
  // sends to itself.
  bool transports_within_gpu = false;
  // Bytes of each device that its blocks may take; empty: its share of the GPU's free memory.
  std::vector<double> memory = {};

  friend bool operator==(const CudaOptions&, const CudaOptions&) = default;
};

// Loads the module on first use, from beside this program or library, and opens the GPUs. Throws
// RunError, one line, if there is no module, no GPU or no such GPU, UsageError if `gpus` names
// another number of devices.
//
// Instants come from the GPUs' events. Each GPU has a base event, bracketed by the host's clock
// when a run begins; clock_error() is half of the widest bracket. After an error that CUDA cannot
// recover from (a kernel's bad address) the process has to be started again.
std::unique_ptr<runtime::DeviceApi> open_cuda_devices(std::size_t n_devices,
                                                      const CudaOptions& options);

// Throws RunError, one line, if there is no module or no GPU. Loads the module.
void need_gpu();

// What the module exports under C names, found by dlsym(). They throw as above.
using OpenDevices = runtime::DeviceApi*(std::size_t n_devices, const CudaOptions& options);
using NeedGpu = void();
using BuildOf = const char*();
inline constexpr const char* kOpenDevicesName = "doppler_cuda_open_devices";
inline constexpr const char* kNeedGpuName = "doppler_cuda_need_gpu";
inline constexpr const char* kBuildName = "doppler_cuda_build";

}  // namespace doppler::cuda
