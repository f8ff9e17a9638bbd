#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace doppler::cli {
namespace {

constexpr auto kBetweenLines = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(std::size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::advance(const std::string& doing) {
  const std::scoped_lock lock(mutex_);
  ++done_;
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < kBetweenLines) return;
  shown_ = now;
  const std::string line =
      "\r\033[K" + std::to_string(done_) + "/" + std::to_string(total_) + "  " + doing;
  std::fputs(line.c_str(), stderr);
}

}  // namespace doppler::cli
