// An agent plays one episode of an environment.
#pragma once

#include "agents/agent.h"
#include "env/env.h"
#include "env/step_listener.h"

namespace doppler {

// Resets `env` with options.seed, plays one episode with the agent's decisions, and returns the
// episode's assignment: that of assign() for the same seed and options on the episode's task (if
// the agent's steps are what its decide() takes, as those of registered agents are; of learned
// ones with one evaluation).
//   sequential, joint: select() and place() are asked at each step over the environment's schedule;
//     an agent without steps decides first, and its nodes are placed by decreasing b-level
//   place, refine, oneshot: the mode's own order of nodes need not be the agent's, so the agent
//     decides first, and its devices are given in that order
// The makespan is the environment's, measured with the luck of the episode; `evaluations` are the
// agent's and the environment's (1 + n_nodes in refine). Throws RunError if the agent chooses
// nodes or devices that there are not, and whatever the environment throws.
// `listener`, if there is one, is told of every step.
AssignResult assign_through_env(Agent& agent, Env& env, const AssignOptions& options = {},
                                StepListener* listener = nullptr);

}  // namespace doppler
