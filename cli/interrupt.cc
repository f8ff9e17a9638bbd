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

std::atomic<pthread_t> waiter = 0;

// A process that is not ours alone, as Python's, has threads that do not block the signals; one
// that is given a signal passes it on.
extern "C" void pass_on(int number) { pthread_kill(waiter, number); }

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
  std::thread thread([signals] {
    int number = 0;
    do {
      if (sigwait(&signals, &number) != 0) return;
    } while (catching && caught.exchange(number) == 0);
    ending.lock();
    if (isatty(STDERR_FILENO) != 0) {
      [[maybe_unused]] const auto written = write(STDERR_FILENO, "\n", 1);
    }
    _exit(128 + number);
  });
  waiter = thread.native_handle();
  thread.detach();
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&signals, number) == 0) continue;
    struct sigaction action {};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

DelayInterrupt::DelayInterrupt() : lock_(ending) {}

CatchInterrupt::CatchInterrupt() {
  caught = 0;
  catching = true;
}

CatchInterrupt::~CatchInterrupt() { catching = false; }

int CatchInterrupt::signal() const { return caught; }

}  // namespace doppler::cli
