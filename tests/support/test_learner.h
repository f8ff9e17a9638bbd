// An agent that learns, small and deterministic, for tests of the training tool.
//
// It keeps a table of device weights a node and task. An update samples `batch` assignments of one
// task from it, measures them, and moves the table toward the best assignment so far.
#pragma once

#include <string>

#include "agents/agent.h"

namespace doppler::testing {

// Registers `test-learner(episodes, batch, pause, fault, at)`: `episodes` for a run without a limit
// of evaluations; `pause` seconds asleep in each update; at update number `at` the `fault` "nan"
// (RunError), "hang" (for ever) or "lie" (a makespan that is not true) happens. Stage 1 samples
// without measuring, stage 2 measures, stage 3 is refused. The untrained agent, everything on one
// device, lies with seed 1 only.
void register_test_learner();

}  // namespace doppler::testing
