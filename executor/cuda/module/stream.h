// A stream of the runtime: a CUDA stream, and a thread that sleeps until each of its commands has
// ended and then tells the runtime.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "executor/cuda/module/kernels.h"
#include "executor/cuda/module/machine.h"
#include "executor/cuda/module/staged_copy.h"
#include "executor/runtime/device_api.h"

namespace doppler::cuda {

// Counts streams at work, so that a run's end can wait for all of them.
class Activity {
 public:
  void add();
  void remove();
  void wait_for_none();

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t n_ = 0;
};

class CudaStream final : public runtime::Stream {
 public:
  // `machine` and `activity` outlive it. Throws RunError.
  CudaStream(Machine& machine, Activity& activity, DeviceId device, runtime::StreamUse use);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  runtime::Buffer allocate(DeviceId device, std::size_t bytes) override;
  void release(const runtime::Buffer& buffer) override;
  void run(const runtime::KernelCommand& command) override;
  void copy(const runtime::CopyCommand& command) override;

 private:
  struct Pending {
    runtime::CommandId id;
    std::string failure;
  };

  void wait_for(std::span<const runtime::CommandId> after);
  void launch_steps(const runtime::KernelCommand& command);
  void transfer(const runtime::CopyCommand& command, Command& events);
  void submit(runtime::CommandId id, std::string failure);
  void report_all();
  [[nodiscard]] runtime::Completion completion(const Pending& pending);

  Machine& machine_;
  Activity& activity_;
  Gpu& gpu_;
  OwnedStream stream_;
  OwnedEvent ready_;  // untimed
  OwnedBlas blas_;    // of streams for kernels
  StagedCopy staged_;
  std::mutex mutex_;  // of the two below
  std::condition_variable changed_;
  std::deque<Pending> pending_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace doppler::cuda
