#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

namespace doppler::cli {
namespace {

constexpr auto kBetweenLines = std::chrono::milliseconds(100);

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

bool ProgressLine::is_due() const {
  return terminal_ && std::chrono::steady_clock::now() - shown_ >= kBetweenLines;
}

void ProgressLine::show(const std::string& text) {
  if (!is_due()) return;
  shown_ = std::chrono::steady_clock::now();
  std::fputs(("\r\033[K" + text).c_str(), stderr);
}

void Progress::advance(const std::string& doing) {
  const std::scoped_lock lock(mutex_);
  ++done_;
  if (!line_.is_due()) return;
  line_.show(std::to_string(done_) + "/" + std::to_string(total_) + "  " + doing);
}

}  // namespace doppler::cli
