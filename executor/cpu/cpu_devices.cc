#include "executor/cpu/cpu_devices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/cpu/host_memory.h"
#include "executor/cpu/scheduling.h"
#include "executor/cpu/worker.h"
#include "executor/runtime/operation.h"
#include "graphs/error.h"

namespace doppler::cpu {
namespace {

std::size_t in_bytes(double bytes) {
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  return bytes < static_cast<double>(kMost) ? static_cast<std::size_t>(bytes) : kMost;
}

std::vector<std::size_t> memory_limits(const Cluster& cluster, bool limit_memory) {
  std::vector<std::size_t> limits;
  for (const Device& device : cluster.parts().devices) {
    limits.push_back(in_bytes(limit_memory ? device.memory : kUnlimited));
  }
  return limits;
}

void mention_few_cores(std::size_t n_slots, std::size_t n_cores) {
  static std::once_flag once;
  std::call_once(once, [&] {
    std::fprintf(stderr,
                 "note: %zu device threads share %zu cores, so that nodes which the cluster runs "
                 "at once may take turns\n",
                 n_slots, n_cores);
  });
}

class CpuDevices final : public runtime::DeviceApi {
 public:
  CpuDevices(const Cluster& cluster, bool limit_memory, bool goes_first)
      : memory_(memory_limits(cluster, limit_memory), available_host_memory()),
        cores_(usable_cores()),
        goes_first_(goes_first) {
    state_.memory = &memory_;
    state_.operations = &operations_;
    n_slots_ = cluster.total_slots();
  }

  std::unique_ptr<runtime::Stream> make_stream(DeviceId, runtime::StreamUse use) override {
    WorkerOptions options{.goes_first = goes_first_};
    if (use == runtime::StreamUse::copies) {
      options.urgency = Urgency::transfers;
    } else if (!cores_.empty()) {
      options.core = cores_[n_kernel_streams_++ % cores_.size()];
    }
    return std::make_unique<Worker>(state_, options);
  }

  std::size_t memory(DeviceId device) override { return memory_.limit(device); }

  void load(const Graph& graph) override {
    std::vector<NodeOperation> operations = parse_operations(graph);
    operations_ = std::move(operations);
    memory_.trim();
  }

  void write(const runtime::Buffer& to, std::span<const std::byte> from) override {
    std::memcpy(to.data, from.data(), from.size());
  }
  void read(const runtime::Buffer& from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from.data, to.size());
  }

  void begin(std::size_t n_commands, runtime::Listener& listener) override {
    if (n_commands > state_.n_commands) {
      state_.has_ended = std::make_unique<std::atomic<bool>[]>(n_commands);
      state_.n_commands = n_commands;
    }
    for (std::size_t c = 0; c < n_commands; ++c) state_.has_ended[c] = false;
    state_.listener = &listener;
    if (n_slots_ > cores_.size() && !cores_.empty()) mention_few_cores(n_slots_, cores_.size());
    if (goes_first_) starting_.emplace(Urgency::starting);
    state_.zero = RunState::Clock::now();
  }

  void end() override {
    for (std::size_t n = state_.n_reporting; n > 0; n = state_.n_reporting) {
      state_.n_reporting.wait(n);
    }
    state_.listener = nullptr;
    starting_.reset();
  }

 private:
  HostMemory memory_;
  std::vector<NodeOperation> operations_;
  std::vector<int> cores_;
  std::size_t n_slots_ = 0;
  bool goes_first_;
  std::optional<GoFirst> starting_;  // the thread that begins a run also ends it
  std::size_t n_kernel_streams_ = 0;
  RunState state_;
};

}  // namespace

std::unique_ptr<runtime::DeviceApi> open_cpu_devices(const Cluster& cluster, bool limit_memory,
                                                     bool goes_first) {
  return std::make_unique<CpuDevices>(cluster, limit_memory, goes_first);
}

}  // namespace doppler::cpu
