// Training of a policy by REINFORCE (Williams, 1992) with a running mean as baseline: stage I
// imitates a teacher, stage II learns from the simulator, stage III from an engine.
#pragma once

#include <functional>
#include <memory>

#include "agents/learned/reinforce_policy.h"
#include "agents/learned/reinforce_schedule.h"
#include "agents/training.h"

namespace doppler {

// Makes a policy for some tasks, its networks on a device, their luck from the seed. Throws
// UsageError for tasks that it cannot serve together, ParseError for an initial policy that does
// not fit.
using MakeReinforcePolicy = std::function<std::unique_ptr<ReinforcePolicy>(
    const PolicyTasks& tasks, torch::Device device, std::uint64_t seed)>;

// See Trainer. In stage I an episode is no evaluation; in stage II it is one, or one and one more a
// node of a policy that refines; in stage III it is as many executions instead, one after another.
// A run is as long as the options say; where stage II has more episodes than max_evaluations
// allows, it and stage I, and their schedules, shrink to that share. An assignment that does not
// fit into memory counts as memory_penalty time scales, a failed execution as its own penalty.
// Stage III begins with an execution of what the run has come to, so that its best is never one
// that was measured worse than that.
std::unique_ptr<Trainer> make_reinforce_trainer(const MakeReinforcePolicy& make,
                                                const ReinforceOptions& options,
                                                const TrainProblem& problem);

}  // namespace doppler
