// A recorded data set as something to imitate.
#pragma once

#include <memory>
#include <string>

#include "agents/demonstrations.h"
#include "agents/training_run.h"

namespace doppler::cli {

// The data set at `path` for the tasks of a training run; episodes are read when they are asked
// for. Takes every action mode: the order is that in which nodes got a device, or, where several
// got one in a step, that of b-levels. Throws RunError for files that cannot be read, UsageError
// if no episode is of one of the tasks.
std::shared_ptr<const Demonstrations> open_demonstrations(
    const std::string& path, const std::vector<std::shared_ptr<const PlacementModel>>& tasks);

// The data set that a run's configuration names, if it names one, as what its stage 1 imitates.
// Errors: those of open_demonstrations().
void open_dataset(TrainingConfig& config, const TrainingTasks& tasks);

}  // namespace doppler::cli
