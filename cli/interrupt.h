// Ctrl-C at any moment, without a half-written file.
#pragma once

#include <mutex>
#include <string>

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

// While one lives, the first interrupt is noted and does nothing else, for a loop that ends by
// itself; a second one ends the process as ever. One at a time.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

  // The number of the signal that came; 0: none.
  [[nodiscard]] int signal() const;
};

// Thrown by a command that ended itself after an interrupt: the exit code is 128 + signal.
struct Interrupted {
  int signal = 0;
  std::string message;
};

}  // namespace doppler::cli
