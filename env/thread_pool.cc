#include "env/thread_pool.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "graphs/error.h"

namespace doppler {

ThreadPool::ThreadPool(int n_threads) {
  if (n_threads < 0 || n_threads > kMaxThreads) {
    throw UsageError(std::to_string(n_threads) + " threads; use 0 (one a core) to " +
                     std::to_string(kMaxThreads));
  }
  const std::size_t n = n_threads == 0 ? std::max(1U, std::thread::hardware_concurrency())
                                       : static_cast<std::size_t>(n_threads);
  failures_.resize(n);
  try {
    for (std::size_t t = 1; t < n; ++t) {
      threads_.emplace_back([this, t] { serve(t); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw RunError("cannot start " + std::to_string(n) + " threads: " + error.what() +
                   "; use fewer");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
}

void ThreadPool::run(std::size_t n, const std::function<void(std::size_t, std::size_t)>& work) {
  n_ = n;
  work_ = &work;
  n_working_ = static_cast<std::uint32_t>(n_threads() - 1);
  ++round_;
  round_.notify_all();
  work_on_part(0);
  for (std::uint32_t left = n_working_; left != 0; left = n_working_) n_working_.wait(left);
  std::exception_ptr first;
  for (std::exception_ptr& failure : failures_) {
    if (failure && !first) first = failure;
    failure = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

void ThreadPool::serve(std::size_t thread) {
  for (std::uint32_t seen = 0;;) {
    round_.wait(seen);
    seen = round_;
    if (stopping_) return;
    work_on_part(thread);
    if (--n_working_ == 0) n_working_.notify_one();
  }
}

void ThreadPool::work_on_part(std::size_t thread) {
  const std::size_t n_parts = n_threads();
  const std::size_t begin = n_ * thread / n_parts;
  const std::size_t end = n_ * (thread + 1) / n_parts;
  if (begin == end) return;
  try {
    (*work_)(begin, end);
  } catch (...) {
    failures_[thread] = std::current_exception();
  }
}

}  // namespace doppler
