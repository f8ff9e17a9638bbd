// Task, and what an analysis of it gives.
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <memory>

#include "env/task.h"
#include "graphs/analysis.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/options.h"
#include "python/bindings/rooms.h"
#include "python/bindings/simulator.h"

namespace doppler::python {
namespace {

Split parse_split(const std::string& text) {
  for (const Split split : {Split::none, Split::train, Split::test}) {
    if (text == to_string(split)) return split;
  }
  throw UsageError("unknown split '" + text + "'; known: none train test");
}

// Everything of a task as keywords of its constructor, in what pickle can hold.
py::tuple state_of(const Task& task) {
  py::dict keywords;
  keywords["name"] = to_python(task.name);
  keywords["cost_model"] = task.cost_model;
  keywords["network"] = to_python(to_string(task.options.network));
  keywords["policy"] = to_python(to_string(task.options.choice));
  keywords["schedule"] = to_python(to_string(task.options.schedule));
  if (!task.options.priorities.empty()) keywords["priorities"] = task.options.priorities;
  if (!task.options.input_devices.empty()) {
    py::list devices;
    for (const DeviceId device : task.options.input_devices) devices.append(device.value);
    keywords["input_devices"] = devices;
  }
  keywords["noise"] = task.options.noise;
  keywords["seed"] = task.options.seed;
  keywords["enforce_memory"] = task.options.enforce_memory;
  return py::make_tuple(task.graph, task.cluster, keywords, to_python(to_string(task.split)));
}

Task task_of_state(const py::tuple& state) {
  if (state.size() != 4) throw UsageError("the state of a Task has four parts");
  Task task = task_of(state[0].cast<const Graph&>(), state[1].cast<const Cluster&>(),
                      py::kwargs(state[2].cast<py::dict>()), true);
  task.split = parse_split(text_of(state[3], "split"));
  return task;
}

void bind_task(py::module_& module) {
  py::class_<Task> bound(module, "Task", R"(Task(graph, cluster, *, name="", cost_model=None,
network="channel", policy="fifo", schedule="work_conserving", priorities=None, input_devices=None,
noise=0.0, seed=0, enforce_memory=None)

A graph to place on a cluster, with everything that fixes what a makespan means; an immutable value.

Args:
    graph, cluster: the parts.
    name: for messages and tables.
    cost_model: a CostModel; None: the graph's raw costs if it has any, else analytical.
    network: "independent" (transfers do not contend), "channel" (a transfer holds its channel
        alone, first requested first) or "fair" (max-min fair shares of the channel's capacity).
    policy: which of the ready nodes of a device starts first: "fifo" (earliest ready),
        "priority" (highest first) or "random" (a key drawn from seed and node).
    schedule: "work_conserving", or "bulk_synchronous" (level by level, with barriers).
    priorities: for policy "priority", float [n_nodes]; None: the b-level.
    input_devices: where each graph input lies at 0, integers [n_inputs]; None: everywhere.
    noise: s >= 0; each duration is multiplied by exp(s z - s**2 / 2), z standard normal.
    seed: of noise and policy "random", 0 to 2**64 - 1; the same luck for every assignment.
    enforce_memory: an assignment that needs more memory than a device has takes inf seconds;
        None: as the cluster says (on for machines, off for raw clusters).

Raises:
    UsageError: an unknown argument, or a value of the wrong type.
    InvalidError: parts that do not fit each other.)");
  bound.def(py::init([](const Graph& graph, const Cluster& cluster, const py::kwargs& options) {
              return task_of(graph, cluster, options, true);
            }),
            py::arg("graph"), py::arg("cluster"));
  bound.def_property_readonly("name", [](const Task& task) { return to_python(task.name); });
  bound.def_property_readonly("graph", [](const Task& task) { return task.graph; });
  bound.def_property_readonly("cluster", [](const Task& task) { return task.cluster; });
  bound.def_property_readonly("cost_model", [](const Task& task) { return task.cost_model; });
  bound.def_property_readonly("network",
                              [](const Task& task) { return to_string(task.options.network); });
  bound.def_property_readonly("policy",
                              [](const Task& task) { return to_string(task.options.choice); });
  bound.def_property_readonly("schedule",
                              [](const Task& task) { return to_string(task.options.schedule); });
  bound.def_property_readonly("noise", [](const Task& task) { return task.options.noise; });
  bound.def_property_readonly("seed", [](const Task& task) { return task.options.seed; });
  bound.def_property_readonly("enforce_memory",
                              [](const Task& task) { return task.options.enforce_memory; });
  bound.def_property_readonly(
      "priorities",
      [](const py::object& self) -> py::object {
        const auto& priorities = self.cast<const Task&>().options.priorities;
        if (priorities.empty()) return py::none();
        return field_view(
            priorities, [](const double& p) -> auto& { return p; }, self);
      },
      "For policy \"priority\", float64 [n_nodes]; None: the b-level.");
  bound.def_property_readonly(
      "input_devices",
      [](const py::object& self) -> py::object {
        const auto& devices = self.cast<const Task&>().options.input_devices;
        if (devices.empty()) return py::none();
        return view(std::span(devices), self);
      },
      "Device of each graph input, int32 [n_inputs]; None: everywhere.");
  bound.def_property_readonly(
      "split", [](const Task& task) { return to_string(task.split); },
      "\"train\" or \"test\" for tasks that generalisation is trained or judged on, else "
      "\"none\".");
  bound.def_property_readonly(
      "time_scale",
      [](const Task& task) {
        const py::gil_scoped_release unlocked;
        return task.time_scale();
      },
      "max(sum of mean compute / total slots, longest path without transfers), seconds; 1 if that "
      "is 0. What observations and rewards are divided by.");
  bound.def(
      "simulator",
      [](const Task& task) {
        const py::gil_scoped_release unlocked;
        return std::make_unique<SharedSimulator>(task);
      },
      "A Simulator with the task's settings.");
  bound.def(
      "simulate",
      [](const Task& task, const py::object& assignment, const py::object& seed) {
        const Assignment devices = assignment_of(assignment, task.graph, task.cluster);
        const std::uint64_t luck = seed.is_none() ? task.options.seed : seed_of(seed);
        const py::gil_scoped_release unlocked;
        return task.simulator().run(devices, luck);
      },
      py::arg("assignment"), py::kw_only(), py::arg("seed") = py::none(),
      "The Execution of an assignment, integers [n_nodes]; seed: the task's own without.");
  def_copy(bound);
  bound.def(py::self == py::self);
  bound.def("__hash__", [](const Task& task) {
    const py::gil_scoped_release unlocked;
    return task.hash();
  });
  bound.def("__repr__", [](const Task& task) { return py::str("<{}>").format(printed(task)); });
  bound.def(py::pickle(&state_of, &task_of_state));
}

void bind_analysis(py::module_& module) {
  py::class_<Levels> levels(module, "Levels", R"(b- and t-levels of a task's nodes.

With c(v) the mean compute time of v over the devices and t(e) the mean time to send the tensor of
edge e between two devices: b(v) = c(v) + max over edges (v, w) of t(v, w) + b(w), t(v) = c(v) + max
over edges (p, v) of t(p) + t(p, v).)");
  const auto real = [](std::vector<double> Levels::*field) {
    return [field](const py::object& self) {
      return field_view(
          self.cast<const Levels&>().*field, [](const double& x) -> auto& { return x; }, self);
    };
  };
  const auto whole = [](std::vector<std::int32_t> Levels::*field) {
    return [field](const py::object& self) {
      return field_view(
          self.cast<const Levels&>().*field, [](const std::int32_t& x) -> auto& { return x; },
          self);
    };
  };
  levels.def_property_readonly("b_level", real(&Levels::b_level), "Seconds, float64 [n_nodes].");
  levels.def_property_readonly("t_level", real(&Levels::t_level), "Seconds, float64 [n_nodes].");
  levels.def_property_readonly("b_next", whole(&Levels::b_next),
                               "The successor that attains the b-level, -1 at the end; int32.");
  levels.def_property_readonly("t_next", whole(&Levels::t_next),
                               "The predecessor that attains the t-level, -1 at the end; int32.");

  py::class_<CriticalPath> path(module, "CriticalPath", "The longest path of a task's graph.");
  path.def_readonly("seconds", &CriticalPath::seconds, "Its length: the largest b-level.");
  path.def_property_readonly(
      "nodes",
      [](const py::object& self) {
        return view(std::span(self.cast<const CriticalPath&>().nodes), self);
      },
      "Its nodes from a source to a sink, int32.");
  path.def("__repr__", [](const CriticalPath& p) {
    return py::str("<critical path: {} s, {} nodes>").format(p.seconds, p.nodes.size());
  });

  const auto options_of = [](const py::object& compute_only) {
    return LevelOptions{.compute_only = boolean_of(compute_only, "compute_only")};
  };
  module.def(
      "levels",
      [options_of](const Task& task, const py::object& compute_only) {
        const LevelOptions options = options_of(compute_only);
        const py::gil_scoped_release unlocked;
        return doppler::levels(task.graph, CostTable(task.graph, task.cluster, task.cost_model),
                               options);
      },
      py::arg("task"), py::kw_only(), py::arg("compute_only") = false,
      "The Levels of a task; compute_only leaves transfers out.");
  module.def(
      "critical_path",
      [options_of](const Task& task, const py::object& compute_only) {
        const LevelOptions options = options_of(compute_only);
        const py::gil_scoped_release unlocked;
        return doppler::critical_path(
            task.graph, CostTable(task.graph, task.cluster, task.cost_model), options);
      },
      py::arg("task"), py::kw_only(), py::arg("compute_only") = false,
      "The CriticalPath of a task, ties to smaller nodes; compute_only leaves transfers out.");
  module.def(
      "lower_bound",
      [](const Task& task) {
        const py::gil_scoped_release unlocked;
        return task.lower_bound();
      },
      py::arg("task"),
      "Seconds that no assignment of the task can beat in the simulator without noise.");
}

}  // namespace

void bind_env(py::module_& module) {
  bind_task(module);
  bind_analysis(module);
}

}  // namespace doppler::python
