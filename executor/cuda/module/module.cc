// What the module exports: a machine of GPUs behind runtime::DeviceApi.
#include <algorithm>
#include <chrono>
#include <utility>

#include "executor/cuda/cuda_devices.h"
#include "executor/cuda/module/machine.h"
#include "executor/cuda/module/stream.h"

namespace doppler::cuda {
namespace {

class Devices final : public runtime::DeviceApi {
 public:
  Devices(std::size_t n_devices, const CudaOptions& options) : machine_(n_devices, options) {
    // Ranks are connected before the first run, not in it.
    if (options.transport == Transport::nccl) machine_.nccl();
  }

  std::unique_ptr<runtime::Stream> make_stream(DeviceId device, runtime::StreamUse use) override {
    return std::make_unique<CudaStream>(machine_, activity_, device, use);
  }

  std::size_t memory(DeviceId device) override { return machine_.memory_limit(device); }

  void load(const Graph& graph) override {
    std::vector<NodeOperation> operations = parse_operations(graph);
    machine_.operations = std::move(operations);
  }

  void write(const runtime::Buffer& to, std::span<const std::byte> from) override {
    Gpu& gpu = machine_.gpu(to.device);
    const CurrentGpu current(gpu.number());
    gpu.wait_for_memory();
    check(cudaMemcpy(to.data, from.data(), from.size(), cudaMemcpyHostToDevice),
          "copy from the host to a GPU");
  }

  void read(const runtime::Buffer& from, std::span<std::byte> to) override {
    const CurrentGpu current(machine_.gpu(from.device).number());
    check(cudaMemcpy(to.data(), from.data, to.size(), cudaMemcpyDeviceToHost),
          "copy from a GPU to the host");
  }

  void begin(std::size_t n_commands, runtime::Listener& listener) override {
    if (machine_.commands.size() < n_commands) machine_.commands.resize(n_commands);
    for (const auto& gpu : machine_.gpus()) gpu->set_base();
    machine_.listener = &listener;
    machine_.zero = HostClock::now();
  }

  void end() override { activity_.wait_for_none(); }

  [[nodiscard]] double clock_error() const override {
    double largest = 0;
    for (const auto& gpu : machine_.gpus()) largest = std::max(largest, gpu->alignment_error());
    return largest;
  }

 private:
  Machine machine_;
  Activity activity_;
};

}  // namespace
}  // namespace doppler::cuda

extern "C" {

__attribute__((visibility("default"))) doppler::cuda::OpenDevices doppler_cuda_open_devices;
__attribute__((visibility("default"))) doppler::cuda::NeedGpu doppler_cuda_need_gpu;
__attribute__((visibility("default"))) doppler::cuda::BuildOf doppler_cuda_build;

doppler::runtime::DeviceApi* doppler_cuda_open_devices(std::size_t n_devices,
                                                       const doppler::cuda::CudaOptions& options) {
  return std::make_unique<doppler::cuda::Devices>(n_devices, options).release();
}

void doppler_cuda_need_gpu() { doppler::cuda::count_gpus(); }

const char* doppler_cuda_build() { return DOPPLER_BUILD_ID; }

}  // extern "C"
