#include "env/task.h"

#include <ostream>

#include "graphs/analysis.h"
#include "graphs/hash.h"
#include "graphs/lower_bound.h"

namespace doppler {

std::string_view to_string(Split split) {
  switch (split) {
    case Split::none:
      return "none";
    case Split::train:
      return "train";
    case Split::test:
      return "test";
  }
  return "unknown";
}

void Task::check() const {
  cost_model.check(graph, cluster);
  options.check(graph, cluster);
}

double Task::time_scale() const {
  return doppler::time_scale(graph, cluster, CostTable(graph, cluster, cost_model));
}

double Task::lower_bound() const {
  return doppler::lower_bound(graph, cluster, CostTable(graph, cluster, cost_model));
}

Simulator Task::simulator() const { return Simulator(graph, cluster, cost_model, options); }

std::uint64_t Task::hash() const {
  Hasher hasher;
  hasher.add(graph.hash()).add(cluster.hash()).add(cost_model.hash());
  hasher.add(static_cast<std::uint64_t>(options.network));
  hasher.add(static_cast<std::uint64_t>(options.choice));
  hasher.add(static_cast<std::uint64_t>(options.schedule));
  hasher.add(static_cast<std::uint64_t>(options.priorities.size()));
  for (double priority : options.priorities) hasher.add(priority);
  hasher.add(static_cast<std::uint64_t>(options.input_devices.size()));
  for (DeviceId device : options.input_devices) {
    hasher.add(static_cast<std::uint64_t>(device.value));
  }
  hasher.add(options.noise).add(options.seed);
  hasher.add(static_cast<std::uint64_t>(options.enforce_memory));
  return hasher.digest();
}

std::ostream& operator<<(std::ostream& out, const Task& task) {
  out << "task " << (task.name.empty() ? "(unnamed)" : task.name) << ": " << task.graph << "; "
      << task.cluster << "; " << task.cost_model << "; " << task.options;
  if (task.split != Split::none) out << "; split " << to_string(task.split);
  return out;
}

}  // namespace doppler
