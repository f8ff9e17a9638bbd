// An execution as a Chrome trace (the JSON that chrome://tracing and ui.perfetto.dev open).
//
// One process a device with a thread a slot, and one process for the channels, where a channel
// whose transfers overlap gets several threads. Flow arrows lead from a producer to the transfer
// and on to each reader. Times are microseconds; makespans beyond 1,000 s (raw costs) are shown
// shorter by a power of ten, which `otherData.seconds_per_second_shown` tells. Format: "Trace Event
// Format", Google, 2016.
#pragma once

#include <string>

#include "env/task.h"
#include "executor/execution.h"

namespace doppler::cli {

// Requires a recorded timeline of the task's graph on its cluster and a finite makespan.
std::string chrome_trace(const Task& task, const Execution& execution);

}  // namespace doppler::cli
