// Threads that wait for ranges of work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace doppler {

// A fixed number of threads, the caller's included. run() may be called by one thread at a time.
class ThreadPool {
 public:
  static constexpr int kMaxThreads = 1024;

  // `n_threads` 0: one a core. Throws UsageError outside [0, 1024], RunError if the system gives no
  // more threads.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t n_threads() const { return failures_.size(); }

  // Calls work(begin, end) on consecutive parts of [0, n), one a thread, and waits for all. If some
  // throw, the exception of the first part that did is thrown here. `work` must allow it to be
  // called by several threads at once.
  void run(std::size_t n, const std::function<void(std::size_t, std::size_t)>& work);

 private:
  void serve(std::size_t thread);
  void work_on_part(std::size_t thread);

  void stop();

  std::vector<std::exception_ptr> failures_;  // by thread
  std::size_t n_ = 0;
  const std::function<void(std::size_t, std::size_t)>* work_ = nullptr;
  std::atomic<std::uint32_t> round_ = 0;      // changes when there is work, or to stop
  std::atomic<std::uint32_t> n_working_ = 0;  // threads that are not done with the round
  std::atomic<bool> stopping_ = false;
  std::vector<std::jthread> threads_;  // the last: joined before what they use is gone
};

}  // namespace doppler
