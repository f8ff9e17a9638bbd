// Ctrl-C at any moment, without a half-written file.
#pragma once

#include <mutex>

namespace doppler::cli {

// From now on SIGINT, SIGTERM and SIGHUP end the process at once with 128 + the signal's number,
// unless it was started with the signal ignored. A file being written (DelayInterrupt) is finished
// first. Call before any thread is started, once a process.
void end_on_interrupt();

// While one lives, an interrupt waits.
class DelayInterrupt {
 public:
  DelayInterrupt();

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace doppler::cli
