// A Simulator that several Python threads may use: one at a time.
#pragma once

#include <mutex>

#include "env/task.h"
#include "executor/simulator/simulator.h"

namespace doppler::python {

struct SharedSimulator {
  explicit SharedSimulator(Task its_task)
      : task(std::move(its_task)), simulator(task.simulator()) {}

  const Task task;
  std::mutex mutex;  // of `simulator`; to be taken without the interpreter's lock
  Simulator simulator;
};

}  // namespace doppler::python
