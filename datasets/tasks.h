// Tasks by name: `workload@cluster` with parameters, and the published graphs.
#pragma once

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

// A registered name, or any `workload(...)@cluster(...)`; throws UsageError with the nearest names.
Task make_task(std::string_view spelling);

// Throws UsageError if a task named in `training_tasks` is of the test split.
void check_training_tasks(const std::vector<std::string>& training_tasks);

}  // namespace doppler
