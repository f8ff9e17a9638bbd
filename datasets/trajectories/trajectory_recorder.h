// Episodes on their way from whoever plays them to the disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "datasets/trajectories/recording_folder.h"

namespace doppler {

struct FlushOptions {
  // The most finished episodes that are not on the disk yet. With 1, add() returns when the episode
  // is; with more, a thread writes while others play.
  std::int64_t flush_episodes = 1;
};

class TrajectoryRecorder {
 public:
  // Throws UsageError for flush_episodes below 1.
  explicit TrajectoryRecorder(RecordingFolder folder, FlushOptions options = {});
  // What is not on the disk yet is lost.
  ~TrajectoryRecorder();
  TrajectoryRecorder(const TrajectoryRecorder&) = delete;
  TrajectoryRecorder& operator=(const TrajectoryRecorder&) = delete;

  // Takes a finished episode. Thread safe. Throws RunError if an earlier one could not be written;
  // so does everything that follows.
  void add(Episode episode);
  // Everything that was added is on the disk when it returns.
  void flush();
  // flush(), and the data set is made of it.
  void build();
  // Requires that nobody adds episodes meanwhile.
  [[nodiscard]] const RecordingFolder& folder() const { return folder_; }

 private:
  void serve(const std::stop_token& stop);
  void hand_over(std::unique_lock<std::mutex>& lock);
  void check_failure() const;

  RecordingFolder folder_;
  std::size_t batch_;  // episodes of a part
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Episode> collected_;
  std::vector<Episode> handed_over_;  // what the thread writes now
  bool writing_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // only if batches are written in the background
};

}  // namespace doppler
