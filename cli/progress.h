// One line on a terminal that says how far a long run is; nothing anywhere else.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

namespace doppler::cli {

// Writes to standard error if that is a terminal. For one thread. The line is erased at the end.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether show() would write now: there is a terminal, and the last line is 0.1 s old.
  [[nodiscard]] bool is_due() const;
  void show(const std::string& text);

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point shown_;
};

// How many of a number of steps are done. Thread safe.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}

  // One more step is done; `doing` is shown beside the count.
  void advance(const std::string& doing);

 private:
  std::mutex mutex_;
  ProgressLine line_;
  std::size_t total_;
  std::size_t done_ = 0;
};

}  // namespace doppler::cli
