#include "executor/cpu/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "graphs/error.h"

namespace doppler::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

std::size_t available_host_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::numeric_limits<std::size_t>::max();
}

HostMemory::HostMemory(std::vector<std::size_t> by_device, std::size_t total)
    : limits_(std::move(by_device)), total_(total), used_(limits_.size(), 0) {}

HostMemory::~HostMemory() { trim(); }

std::size_t HostMemory::limit(DeviceId device) const {
  return std::min(limits_[device.index()], total_);
}

void* HostMemory::allocate(DeviceId device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::size_t& used = used_[device.index()];
  if (bytes > limits_[device.index()] - used) throw RunError("its memory is full");
  if (bytes > total_ - all_used_) throw RunError("this machine's memory is full");
  void* data = nullptr;
  const auto found = free_.find(bytes);
  if (found != free_.end() && !found->second.empty()) {
    data = found->second.back();
    found->second.pop_back();
    kept_ -= bytes;
  } else {
    // What is kept takes room of this machine, too.
    if (bytes > total_ - all_used_ - std::min(kept_, total_ - all_used_)) trim_locked();
    data = ::operator new(bytes, kAlignment, std::nothrow);
    if (data == nullptr) throw RunError("this machine has no memory left");
  }
  used += bytes;
  all_used_ += bytes;
  return data;
}

void HostMemory::release(DeviceId device, void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_[device.index()] -= bytes;
  all_used_ -= bytes;
  kept_ += bytes;
  free_[bytes].push_back(data);
}

void HostMemory::trim() {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void HostMemory::trim_locked() {
  for (auto& [bytes, blocks] : free_) {
    for (void* block : blocks) ::operator delete(block, kAlignment);
  }
  free_.clear();
  kept_ = 0;
}

}  // namespace doppler::cpu
