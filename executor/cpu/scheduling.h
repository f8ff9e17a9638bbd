// Where and before whom the CPU engine's threads run, as far as the system allows it.
#pragma once

#include <vector>

namespace doppler::cpu {

// Who goes first among the engine's own threads. Transfers go before kernels, as hardware that
// copies does not wait for the processors; who starts a run goes before both.
enum class Urgency : int { kernels = 1, transfers = 2, starting = 3 };

// Puts the calling thread before those of ordinary programs (SCHED_RR), if it may; else nothing
// changes.
void go_first(Urgency urgency);

// The same for a time: from construction to destruction, on one thread.
class GoFirst {
 public:
  explicit GoFirst(Urgency urgency);
  ~GoFirst();
  GoFirst(const GoFirst&) = delete;
  GoFirst& operator=(const GoFirst&) = delete;

 private:
  int policy_ = 0;
  int priority_ = 0;
  bool changed_ = false;
};

// Keeps the calling thread on a core, if the system allows it.
void stay_on(int core);
// Lets the calling thread's sleeps end when they should, not up to 50 microseconds later.
void wake_on_time();
// The cores on which this process may run; empty if the system does not say.
std::vector<int> usable_cores();

}  // namespace doppler::cpu
