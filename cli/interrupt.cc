#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace doppler::cli {
namespace {

// Held by whoever may not be interrupted, and for ever by the thread that ends the process.
std::mutex ending;

std::atomic<bool> catching = false;
std::atomic<int> caught = 0;  // the signal's number

}  // namespace

void end_on_interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A thread that waits, rather than a handler: it may take the lock, and no loop has to ask.
  std::thread([signals] {
    int number = 0;
    do {
      if (sigwait(&signals, &number) != 0) return;
    } while (catching && caught.exchange(number) == 0);
    ending.lock();
    if (isatty(STDERR_FILENO) != 0) {
      [[maybe_unused]] const auto written = write(STDERR_FILENO, "\n", 1);
    }
    _exit(128 + number);
  }).detach();
}

DelayInterrupt::DelayInterrupt() : lock_(ending) {}

CatchInterrupt::CatchInterrupt() {
  caught = 0;
  catching = true;
}

CatchInterrupt::~CatchInterrupt() { catching = false; }

int CatchInterrupt::signal() const { return caught; }

}  // namespace doppler::cli
