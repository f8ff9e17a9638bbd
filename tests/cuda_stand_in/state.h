// What the parts of the stand-in share. Private to tests/cuda_stand_in.
#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/stand_in.h"

// CUDA's types are only declared in its headers.
struct CUstream_st {
  explicit CUstream_st(int gpu_number) : gpu(gpu_number), thread([this] { work(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    thread.join();
  }
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  void push(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return tasks.empty(); });
  }
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stops || !tasks.empty(); });
        if (tasks.empty()) return;
        task = tasks.front();
      }
      task();
      {
        const std::lock_guard lock(mutex);
        tasks.pop_front();
      }
      changed.notify_all();
    }
  }

  const int gpu;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool stops = false;
  std::thread thread;
};

namespace doppler::stand_in {

struct State {
  std::mutex mutex;
  Machine machine;
  long calls = 0;
  long alive = 0;
  Traffic traffic;
  std::vector<std::string> faults;
  std::optional<std::thread::id> nccl_thread;
};

State& state();
void fault(const std::string& what);
// Counts a call; whether it is the one that fails.
bool fails();
void count_alive(long change);
void count(long Traffic::*what);

}  // namespace doppler::stand_in
