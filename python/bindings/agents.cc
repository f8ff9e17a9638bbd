// Agents by name.
#include "agents/agent.h"

#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <mutex>

#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/registries.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// An agent that several Python threads may use: one at a time.
struct SharedAgent {
  std::string spelling;
  std::unique_ptr<Agent> agent;
  std::mutex mutex;  // of `agent`; to be taken without the interpreter's lock
};

std::unique_ptr<SharedAgent> named_agent(const py::object& name, const py::kwargs& keywords) {
  const NamedCall call = call_of(name, keywords, "agent");
  const AgentEntry& entry = agents().at(call.name);
  const Parameters parameters(entry.parameters, call);
  auto shared = std::make_unique<SharedAgent>();
  shared->spelling = parameters.canonical();
  shared->agent = entry.make(parameters);
  return shared;
}

AssignResult assign_task(SharedAgent& self, const Task& task, const py::object& seed,
                         const py::object& evaluations, const py::object& seconds) {
  AssignOptions options;
  options.seed = seed_of(seed);
  options.max_evaluations = integer_of(evaluations, "evaluations", 1);
  if (!seconds.is_none()) options.max_seconds = number_of(seconds, "seconds");
  const py::gil_scoped_release unlocked;
  const std::scoped_lock lock(self.mutex);
  return assign(*self.agent, task, options);
}

void bind_result(py::module_& module) {
  py::class_<AssignResult> bound(module, "AssignResult", "What an agent found for a task.");
  bound.def_property_readonly(
      "assignment",
      [](const py::object& self) {
        return view(std::span(self.cast<const AssignResult&>().assignment.devices), self);
      },
      "Device of each node, int32 [n_nodes], a read-only view.");
  bound.def_readonly("makespan", &AssignResult::makespan, "Seconds, by the task's settings.");
  bound.def_readonly("evaluations", &AssignResult::evaluations,
                     "Runs of the simulator that were used, the last one included.");
  bound.def_readonly("seconds", &AssignResult::seconds, "To decide, without the last evaluation.");
  bound.def("__repr__", [](const AssignResult& result) {
    return py::str("<assignment of {} nodes: makespan {} s, {} evaluations, {:.3g} s to decide>")
        .format(result.assignment.size(), result.makespan, result.evaluations, result.seconds);
  });
  bound.def(py::pickle(
      [](const py::object& self) {
        const auto& result = self.cast<const AssignResult&>();
        py::list devices;
        for (const DeviceId device : result.assignment.devices) devices.append(device.value);
        return py::make_tuple(devices, result.makespan, result.evaluations, result.seconds);
      },
      [](const py::tuple& state) {
        if (state.size() != 4) throw UsageError("the state of an AssignResult has four parts");
        AssignResult result;
        for (const py::handle device : state[0]) {
          result.assignment.devices.emplace_back(device.cast<std::int32_t>());
        }
        result.makespan = state[1].cast<double>();
        result.evaluations = state[2].cast<std::int64_t>();
        result.seconds = state[3].cast<double>();
        return result;
      }));
}

}  // namespace

void bind_agents(py::module_& module) {
  py::class_<AgentEntry, Description>(module, "AgentDescription", "Of an agent.")
      .def_readonly("family", &AgentEntry::family, "\"heuristic\", \"search\" or \"learned\".")
      .def_readonly("deterministic", &AgentEntry::deterministic, "The same for every seed.");
  bind_result(module);

  py::class_<SharedAgent> bound(module, "BuiltinAgent", R"(An agent of the library; see agent().

Several threads may share one: they take turns.)");
  bound.def_property_readonly(
      "name", [](const SharedAgent& self) { return to_python(self.spelling); },
      "Its name with the parameters that were given.");
  bound.def("assign", &assign_task, py::arg("task"), py::kw_only(), py::arg("seed") = 0,
            py::arg("evaluations") = 1, py::arg("seconds") = py::none(),
            R"(Decides an assignment for a task and measures it.

Args:
    task: a Task.
    seed: of the agent's own luck, 0 to 2**64 - 1.
    evaluations: how many runs of the simulator it may use, the last measurement included.
    seconds: how long it may search; None: no limit. Whichever limit comes first ends it.

Returns an AssignResult. Raises UsageError for limits that leave no evaluation, RunError for an
agent that broke its rules.)");
  bound.def("__repr__", [](const SharedAgent& self) {
    return py::str("<agent {}>").format(to_python(self.spelling));
  });
  bound.def("__reduce__", [](const SharedAgent& self) {
    return py::make_tuple(py::module_::import("doppler_gym._core").attr("agent"),
                          py::make_tuple(to_python(self.spelling)));
  });
  module.def(
      "agents", [] { return listing(agents()); },
      "Every agent of the library: dict of name -> AgentDescription, sorted.");
  module.def("agent", &named_agent, py::arg("name"), py::pos_only(),
             R"doc(agent(name, /, **parameters)

An agent by name, "partner-list" or "single-device(device=1)"; agents() lists them with their
parameters. Raises UsageError for an unknown name or parameter, with the nearest ones.)doc");
}

}  // namespace doppler::python
