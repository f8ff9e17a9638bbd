// Workloads, clusters and tasks by name.
#include <pybind11/stl.h>

#include "datasets/clusters.h"
#include "datasets/tasks.h"
#include "datasets/workloads.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/registries.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

void bind_descriptions(py::module_& module) {
  py::class_<ParameterSpec> parameter(module, "Parameter",
                                      "A parameter of something that is registered.");
  parameter.def_readonly("name", &ParameterSpec::name);
  parameter.def_readonly("summary", &ParameterSpec::summary, "One line.");
  parameter.def_readonly("default", &ParameterSpec::default_value, "bool, int, float or str.");
  parameter.def_readonly("minimum", &ParameterSpec::minimum, "Inclusive; None: no bound.");
  parameter.def_readonly("maximum", &ParameterSpec::maximum, "Inclusive; None: no bound.");
  parameter.def_readonly("choices", &ParameterSpec::choices,
                         "The accepted texts; empty: any, or no text.");
  parameter.def("__repr__", [](const ParameterSpec& spec) {
    return py::str("<parameter {}={!r}: {}>").format(spec.name, spec.default_value, spec.summary);
  });

  py::class_<Description> description(module, "Description",
                                      "What something that is registered says of itself.");
  description.def_readonly("name", &Description::name);
  description.def_readonly("summary", &Description::summary, "One line.");
  description.def_readonly("source", &Description::source, "Paper, data sheet, or \"own\".");
  description.def_readonly("parameters", &Description::parameters, "A list of Parameter.");
  description.def("__repr__", [](const Description& d) {
    return py::str("<{}: {}>").format(d.name, d.summary);
  });

  py::class_<WorkloadEntry, Description>(module, "WorkloadDescription", "Of a workload.");
  py::class_<ClusterEntry, Description>(module, "ClusterDescription", "Of a cluster.");
  py::class_<TaskEntry, Description>(module, "TaskDescription", "Of a task.")
      .def_property_readonly(
          "split", [](const TaskEntry& entry) { return to_string(entry.split); },
          "\"train\", \"test\" or \"none\".");
}

Graph make_graph(const py::object& name, const py::object& devices, const py::kwargs& parameters) {
  const NamedCall call = call_of(name, parameters, "workload");
  const auto n_devices = integer_of(devices, "devices", 1, kMaxDevices);
  const py::gil_scoped_release unlocked;
  const WorkloadEntry& entry = workloads().at(call.name);
  return entry.make(Parameters(entry.parameters, call), n_devices);
}

Cluster preset(const py::object& name, const py::kwargs& parameters) {
  const NamedCall call = call_of(name, parameters, "cluster");
  const ClusterEntry& entry = clusters().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

Task named_task(const py::object& name) {
  const std::string spelling = text_of(name, "task");
  const py::gil_scoped_release unlocked;
  return make_task(spelling);
}

}  // namespace

void bind_datasets(py::module_& module) {
  bind_descriptions(module);
  module.def(
      "workloads", [] { return listing(workloads()); },
      "Every workload: dict of name -> WorkloadDescription, sorted.");
  module.def(
      "clusters", [] { return listing(clusters()); },
      "Every cluster preset: dict of name -> ClusterDescription, sorted.");
  module.def(
      "tasks", [] { return listing(tasks()); },
      "Every registered task: dict of name -> TaskDescription, sorted. Any workload on any "
      "cluster is a task too.");
  module.def("workload", &make_graph, py::arg("name"), py::pos_only(), py::kw_only(),
             py::arg("devices") = 4,
             R"doc(workload(name, /, *, devices=4, **parameters) -> Graph

The graph of a workload, "llama-layer" or "chainmm(n=4096)"; workloads() lists them with their
parameters. With shards=0, the default, it is cut for so many devices. Raises UsageError for an
unknown name or parameter (with the nearest ones), or sizes that cannot be cut.)doc");
  module.attr("Cluster").attr("preset") = py::staticmethod(
      py::cpp_function(&preset, py::name("preset"), py::arg("name"), py::pos_only(),
                       R"doc(preset(name, /, **parameters) -> Cluster

A cluster by name, "p100x4" or "ring(8)"; clusters() lists them. Raises UsageError for an unknown
name or parameter, with the nearest ones.)doc"));
  module.def("task", &named_task, py::arg("name"), py::pos_only(),
             R"doc(task(name, /) -> Task

A task by name: one of tasks(), or any workload@cluster with parameters, as
"chainmm(n=4096)@uniform(4)"; the cluster may be a file. Raises UsageError with the nearest names.)doc");
}

}  // namespace doppler::python
