// DOPPLER's two policies with message passing anew in each step, told of the placement so far: what
// its authors compare message passing once an episode with.
#pragma once

#include <memory>

#include "agents/learned/paper_policy.h"

namespace doppler {

// Requires a network with MessagePassingTime::step. Message passing takes nearly all of the time:
// an episode costs about as many times more as the graph has nodes. The gradient goes step by step,
// so that memory does not grow with the steps.
std::unique_ptr<ReinforcePolicy> make_paper_step_policy(PaperNetwork network,
                                                        const PolicyTasks& tasks,
                                                        torch::Device device);

}  // namespace doppler
