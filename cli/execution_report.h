// An execution as the commands show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "env/task.h"
#include "executor/execution.h"
#include "graphs/assignment.h"

namespace doppler::cli {

// Without the timeline.
nlohmann::ordered_json execution_json(const Task& task, const Assignment& assignment,
                                      const Execution& execution);
// Start and end of each node and transfer; requires a recorded timeline.
nlohmann::ordered_json timeline_json(const Task& task, const Execution& execution);
std::string execution_text(const Task& task, const Assignment& assignment,
                           const Execution& execution);

}  // namespace doppler::cli
