// What every environment must keep, as a check that users can run on their own tasks and options.
#pragma once

#include <cstdint>
#include <memory>

#include "env/env_model.h"

namespace doppler {

struct CheckEnvOptions {
  std::uint64_t seed = 0;
  int n_episodes = 2;
  // Of one space, how many actions are compared with the mask at a step; the rest is sampled.
  std::int64_t max_actions = 2000;
};

// Plays random legal episodes and checks: the same seed gives the same episode; a copy and a
// restored state continue exactly; the mask says what step() accepts; every element of every
// observation is finite and inside its bounds; an illegal action leaves the state as it was;
// rewards sum to the return, and the return is what the makespan says; the makespan is that of a
// direct simulation (simulator); step() after the end is refused. Throws InvalidError that names
// the first fault, its episode and step.
void check_env(std::shared_ptr<const EnvModel> model, const CheckEnvOptions& options = {});

}  // namespace doppler
