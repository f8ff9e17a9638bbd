#include "executor/cpu/scheduling.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

namespace doppler::cpu {

void go_first(Urgency urgency) {
  sched_param parameters{};
  parameters.sched_priority = static_cast<int>(urgency);
  static_cast<void>(pthread_setschedparam(pthread_self(), SCHED_RR, &parameters));
}

GoFirst::GoFirst(Urgency urgency) {
  sched_param before{};
  if (pthread_getschedparam(pthread_self(), &policy_, &before) != 0) return;
  priority_ = before.sched_priority;
  go_first(urgency);
  changed_ = true;
}

GoFirst::~GoFirst() {
  if (!changed_) return;
  sched_param before{};
  before.sched_priority = priority_;
  static_cast<void>(pthread_setschedparam(pthread_self(), policy_, &before));
}

void stay_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof cores, &cores));
}

void wake_on_time() { static_cast<void>(prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL)); }

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace doppler::cpu
