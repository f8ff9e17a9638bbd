#include "executor/cuda/module/gpu.h"

#include <cstdint>
#include <limits>
#include <string>

namespace doppler::cuda {
namespace {

// Of so many tries the one that the host bracketed most closely counts.
constexpr int kBaseTries = 8;

double in_seconds(HostClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

OwnedPool make_pool(int gpu) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = gpu;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "create a memory pool");
  OwnedPool owned(pool);
  // Memory stays in the pool from run to run, and no stream is made to wait for another's.
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
        "keep a pool's memory");
  int no = 0;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &no),
        "keep streams apart");
  return owned;
}

}  // namespace

Gpu::Gpu(int number) : number_(number) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), "ask what a GPU is");
  n_processors_ = properties.multiProcessorCount;
  if (properties.memoryPoolsSupported == 0) {
    throw RunError("GPU " + std::to_string(number) + " (" + properties.name +
                   ") has no stream-ordered memory; its driver is too old");
  }
  const CurrentGpu current(number);
  std::size_t total = 0;
  check(cudaMemGetInfo(&free_memory_, &total), "ask for a GPU's free memory");
  memory_stream_ = make_stream();
  allocated_ = make_event(false);
  base_ = make_event(true);
  pool_ = make_pool(number);
}

void* Gpu::allocate(std::size_t bytes, cudaStream_t user) {
  void* data = nullptr;
  check(cudaMallocFromPoolAsync(&data, bytes, pool_.get(), memory_stream_.get()),
        "allocate memory of a GPU");
  try {
    check(cudaEventRecord(allocated_.get(), memory_stream_.get()), "record an allocation");
    check(cudaStreamWaitEvent(user, allocated_.get()), "wait for an allocation");
  } catch (...) {
    release(data);
    throw;
  }
  return data;
}

void Gpu::release(void* data) { static_cast<void>(cudaFreeAsync(data, memory_stream_.get())); }

void Gpu::wait_for_memory() const {
  check(cudaStreamSynchronize(memory_stream_.get()), "wait for an allocation");
}

void Gpu::give_access(int other_gpu) {
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = other_gpu;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check(cudaMemPoolSetAccess(pool_.get(), &access, 1), "give a GPU access to another's memory");
}

OwnedEvent Gpu::take_event() {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      OwnedEvent event = std::move(events_.back());
      events_.pop_back();
      return event;
    }
  }
  return make_event(true);
}

void Gpu::give_back(OwnedEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

void Gpu::set_base() {
  const CurrentGpu current(number_);
  alignment_error_ = std::numeric_limits<double>::infinity();
  OwnedEvent candidate = take_event();
  for (int i = 0; i < kBaseTries; ++i) {
    check(cudaStreamSynchronize(memory_stream_.get()), "wait for an idle GPU");
    const auto before = HostClock::now();
    check(cudaEventRecord(candidate.get(), memory_stream_.get()), "record the base event");
    check(cudaEventSynchronize(candidate.get()), "wait for the base event");
    const auto after = HostClock::now();
    const double error = in_seconds(after - before) / 2;
    if (error >= alignment_error_) continue;
    alignment_error_ = error;
    base_time_ = before + (after - before) / 2;
    std::swap(base_, candidate);
  }
  give_back(std::move(candidate));
}

double Gpu::seconds(cudaEvent_t event, HostClock::time_point zero) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, base_.get(), event), "ask for an event's instant");
  return in_seconds(base_time_ - zero) + static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace doppler::cuda
