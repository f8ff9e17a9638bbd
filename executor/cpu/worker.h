// A thread that runs commands one after another: a stream of the CPU engine.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/cpu/host_memory.h"
#include "executor/cpu/scheduling.h"
#include "executor/runtime/device_api.h"
#include "executor/runtime/operation.h"

namespace doppler::cpu {

// What the streams of a machine share in a run.
struct RunState {
  using Clock = std::chrono::steady_clock;

  HostMemory* memory = nullptr;
  const std::vector<NodeOperation>* operations = nullptr;
  runtime::Listener* listener = nullptr;
  Clock::time_point zero = {};
  std::size_t n_commands = 0;
  std::unique_ptr<std::atomic<bool>[]> has_ended = {};  // by command
  std::atomic<std::size_t> n_reporting = 0;             // threads inside Listener::completed()

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - zero).count();
  }
};

struct WorkerOptions {
  int core = -1;  // where its thread is pinned, if the system allows it; negative: anywhere
  Urgency urgency = Urgency::kernels;
  bool goes_first = false;  // before the threads of other programs, if the system allows it
};

class Worker final : public runtime::Stream {
 public:
  // Throws RunError if the system has no more threads.
  Worker(RunState& state, const WorkerOptions& options);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  runtime::Buffer allocate(DeviceId device, std::size_t bytes) override;
  void release(const runtime::Buffer& buffer) override;
  void run(const runtime::KernelCommand& command) override;
  void copy(const runtime::CopyCommand& command) override;

 private:
  struct Item {
    runtime::CommandId id = {};
    bool is_copy = false;
    NodeId node = {};
    double least_seconds = 0;
    std::vector<runtime::CommandId> after = {};
    std::vector<runtime::Buffer> inputs = {};
    std::vector<runtime::Buffer> outputs = {};
  };

  void push(Item item);
  void work(const WorkerOptions& options);
  void execute(const Item& item);
  void run_node(const Item& item) const;

  RunState& state_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace doppler::cpu
