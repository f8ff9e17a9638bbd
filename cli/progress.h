// One line on a terminal that says how far a long run is; nothing anywhere else.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

namespace doppler::cli {

// Writes to standard error if that is a terminal. Thread safe. The line is erased at the end.
class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One more step is done; `doing` is shown beside the count.
  void advance(const std::string& doing);

 private:
  std::mutex mutex_;
  std::size_t total_;
  std::size_t done_ = 0;
  bool terminal_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace doppler::cli
