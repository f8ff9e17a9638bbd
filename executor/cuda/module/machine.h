// What the streams of one machine share: GPUs, the loaded graph, the run under way.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/cuda/cuda_devices.h"
#include "executor/cuda/module/gpu.h"
#include "executor/cuda/module/nccl_transport.h"
#include "executor/runtime/operation.h"

namespace doppler::cuda {

// The number of GPUs, at least 1. Throws RunError, one line, if CUDA sees none.
int count_gpus();

// A command of the run: events of the GPUs on which it starts and ends. Each entry is written by
// the runtime's call that submits the command, and then by the thread that reports it.
struct Command {
  Gpu* start_gpu = nullptr;
  OwnedEvent start;
  Gpu* end_gpu = nullptr;
  OwnedEvent end;  // null once it was reported
};

class Machine {
 public:
  // Throws RunError if there is no GPU, or not those that the options name.
  Machine(std::size_t n_devices, const CudaOptions& options);

  [[nodiscard]] std::size_t n_devices() const { return gpu_of_device_.size(); }
  [[nodiscard]] Gpu& gpu(DeviceId device) const { return *gpu_of_device_[device.index()]; }
  [[nodiscard]] const std::vector<std::unique_ptr<Gpu>>& gpus() const { return gpus_; }
  [[nodiscard]] const CudaOptions& options() const { return options_; }
  [[nodiscard]] bool reaches(const Gpu& from, const Gpu& to) const;
  // Connects the ranks on first use. Throws RunError.
  NcclTransport& nccl();

  // --- memory of a device, counted against its limit; one call at a time ---
  [[nodiscard]] std::size_t memory_limit(DeviceId device) const { return limits_[device.index()]; }
  // May be used by what `user` gets from now on. Throws RunError.
  runtime::Buffer allocate(DeviceId device, std::size_t bytes, cudaStream_t user);
  void release(const runtime::Buffer& buffer);

  // --- the loaded graph and the run ---
  std::vector<NodeOperation> operations;
  std::vector<Command> commands;
  runtime::Listener* listener = nullptr;
  HostClock::time_point zero = HostClock::now();

 private:
  void open_gpus(const std::vector<std::int32_t>& numbers);
  void connect_peers();

  CudaOptions options_;
  std::vector<std::unique_ptr<Gpu>> gpus_;  // those in use, by number
  std::vector<Gpu*> gpu_of_device_;
  std::map<std::pair<const Gpu*, const Gpu*>, bool> reaches_;
  std::vector<std::size_t> limits_;  // bytes, by device
  std::vector<std::size_t> in_use_;
  std::unique_ptr<NcclTransport> nccl_;
};

}  // namespace doppler::cuda
