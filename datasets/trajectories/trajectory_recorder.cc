#include "datasets/trajectories/trajectory_recorder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graphs/error.h"

namespace doppler {

TrajectoryRecorder::TrajectoryRecorder(RecordingFolder folder, FlushOptions options)
    : folder_(std::move(folder)),
      // One half is written while the other is collected.
      batch_(static_cast<std::size_t>(std::max<std::int64_t>(1, options.flush_episodes / 2))) {
  if (options.flush_episodes < 1) {
    throw UsageError("flush_episodes is " + std::to_string(options.flush_episodes) +
                     "; give 1 or more");
  }
  if (options.flush_episodes > 1) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
}

TrajectoryRecorder::~TrajectoryRecorder() = default;

void TrajectoryRecorder::check_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void TrajectoryRecorder::add(Episode episode) {
  std::unique_lock lock(mutex_);
  check_failure();
  collected_.push_back(std::move(episode));
  if (!thread_.joinable()) {
    try {
      folder_.save(collected_);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    collected_.clear();
  } else if (collected_.size() >= batch_) {
    hand_over(lock);
  }
}

void TrajectoryRecorder::hand_over(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return !writing_; });
  check_failure();
  if (collected_.empty()) return;  // another thread did it meanwhile
  handed_over_ = std::exchange(collected_, {});
  writing_ = true;
  changed_.notify_all();
}

void TrajectoryRecorder::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return writing_; })) {
    lock.unlock();
    std::exception_ptr failure;
    try {
      folder_.save(handed_over_);
    } catch (...) {
      failure = std::current_exception();
    }
    handed_over_.clear();
    lock.lock();
    if (failure) failure_ = failure;
    writing_ = false;
    changed_.notify_all();
  }
}

void TrajectoryRecorder::flush() {
  std::unique_lock lock(mutex_);
  check_failure();
  if (!thread_.joinable()) return;
  hand_over(lock);
  changed_.wait(lock, [this] { return !writing_; });
  check_failure();
}

void TrajectoryRecorder::build() {
  flush();
  const std::lock_guard lock(mutex_);
  folder_.build();
}

}  // namespace doppler
