// The memory of the CPU engine's devices: blocks of the host's memory, counted by device.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "graphs/ids.h"

namespace doppler::cpu {

// Bytes that programs can still get on this machine; SIZE_MAX if it does not say.
std::size_t available_host_memory();

// Blocks that were given back are kept for the next that ask for the same size, so that a run
// touches no fresh pages once another like it has been made. Thread safe.
class HostMemory {
 public:
  // Bytes that the blocks of each device, and of all of them together, may take.
  HostMemory(std::vector<std::size_t> by_device, std::size_t total);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] std::size_t limit(DeviceId device) const;
  // Aligned to 64 bytes. Throws RunError if a limit is reached or the system refuses.
  void* allocate(DeviceId device, std::size_t bytes);
  void release(DeviceId device, void* data, std::size_t bytes);
  // Gives all kept blocks back to the system.
  void trim();

 private:
  void trim_locked();

  std::vector<std::size_t> limits_;
  std::size_t total_;
  std::mutex mutex_;
  std::vector<std::size_t> used_;  // by device
  std::size_t all_used_ = 0;
  std::size_t kept_ = 0;
  std::map<std::size_t, std::vector<void*>> free_;  // by size
};

}  // namespace doppler::cpu
