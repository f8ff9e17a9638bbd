#include "python/bindings/options.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graphs/error.h"
#include "graphs/registry.h"
#include "python/bindings/convert.h"

namespace doppler::python {
namespace {

using Setter = std::function<void(Task&, py::handle)>;

std::vector<double> priorities_of(py::handle value) {
  if (value.is_none()) return {};
  const auto array = numbers_of(value, "priorities");
  if (array.ndim() != 1) {
    throw UsageError("priorities: expected shape (n_nodes,), got " + description_of(array));
  }
  return {array.data(), array.data() + array.size()};
}

std::vector<DeviceId> input_devices_of(py::handle value, const Cluster& cluster) {
  if (value.is_none()) return {};
  const auto array = integers_of(value, "input_devices");
  if (array.ndim() != 1) {
    throw UsageError("input_devices: expected shape (n_inputs,), got " + description_of(array));
  }
  return devices_of(array, cluster.n_devices(), "input_devices");
}

CostModel cost_model_of(py::handle value, const Graph& graph) {
  if (value.is_none()) return CostModel::of(graph);
  if (!py::isinstance<CostModel>(value)) {
    throw UsageError("cost_model: expected a CostModel or None, got " + description_of(value));
  }
  return value.cast<const CostModel&>();
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> all = {
      {"cost_model",
       [](Task& task, py::handle v) { task.cost_model = cost_model_of(v, task.graph); }},
      {"network",
       [](Task& task, py::handle v) {
         task.options.network = parse_network(text_of(v, "network"));
       }},
      {"policy",
       [](Task& task, py::handle v) { task.options.choice = parse_choice(text_of(v, "policy")); }},
      {"schedule",
       [](Task& task, py::handle v) {
         task.options.schedule = parse_schedule(text_of(v, "schedule"));
       }},
      {"priorities", [](Task& task, py::handle v) { task.options.priorities = priorities_of(v); }},
      {"input_devices",
       [](Task& task, py::handle v) {
         task.options.input_devices = input_devices_of(v, task.cluster);
       }},
      {"noise", [](Task& task, py::handle v) { task.options.noise = number_of(v, "noise"); }},
      {"seed", [](Task& task, py::handle v) { task.options.seed = seed_of(v); }},
      {"enforce_memory",
       [](Task& task, py::handle v) {
         if (!v.is_none()) task.options.enforce_memory = boolean_of(v, "enforce_memory");
       }},
  };
  return all;
}

}  // namespace

Task task_of(const Graph& graph, const Cluster& cluster, const py::kwargs& keywords, bool named) {
  Task task{.graph = graph, .cluster = cluster, .cost_model = CostModel::of(graph)};
  task.options.enforce_memory = cluster.parts().enforce_memory;
  for (const auto& [key, value] : keywords) {
    const std::string name = text_of(key, "keyword");
    const auto found = setters().find(name);
    if (found != setters().end()) {
      found->second(task, value);
    } else if (named && name == "name") {
      task.name = text_of(value, "name");
    } else {
      std::vector<std::string> known;
      for (const auto& [known_name, setter] : setters()) known.push_back(known_name);
      if (named) known.emplace_back("name");
      throw_unknown_name("argument", name, known);
    }
  }
  task.check();
  return task;
}

}  // namespace doppler::python
