// Tasks by name: `workload@cluster` with parameters, and the published graphs.
//
// Splits, which agents may learn on what:
//   none   the paper's four workloads on its machines, and its published graphs. For agents that
//          search or learn on the very task that they are judged on, as the paper does.
//   train  what an agent that is judged on others may learn on, beside anything unregistered.
//   test   what generalisation is judged on. Training on it is refused (check_training_tasks).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "env/task.h"
#include "graphs/registry.h"

namespace doppler {

// A registered task: one that suites, splits and documentation speak of.
struct TaskEntry : Description {
  Split split = Split::none;
  std::function<Task()> make;
};

const Registry<TaskEntry>& tasks();

// A registered name, or any `workload(...)@cluster(...)`, where the cluster may be a file. The
// workload gets one shard a device unless it says otherwise, and smaller sizes where the devices
// are processor cores (WorkloadEntry::core_sizes), which the name then tells; memory is enforced if
// the cluster says so; the network is `channel`. Its name is the canonical spelling. Throws
// UsageError with the nearest names.
Task make_task(std::string_view spelling);

// Throws UsageError that names the first of `training_tasks` which is of the test split, by
// whatever spelling: a task that equals a test task counts as that task.
void check_training_tasks(const std::vector<std::string>& training_tasks);
// The same for tasks that are made already. The graph of a test task on that task's cluster counts
// as it, whatever the settings of the engine.
void check_training_tasks(std::span<const Task> training_tasks);

}  // namespace doppler
