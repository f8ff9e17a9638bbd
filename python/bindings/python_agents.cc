// Agents that are written in Python, in the library's registry.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "env/task.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/python_calls.h"
#include "python/bindings/python_trainers.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// An object with act(observation, info).
class PythonAgent final : public Agent {
 public:
  PythonAgent(std::string name, py::object agent)
      : name_(std::move(name)), agent_(std::move(agent)) {}
  PythonAgent(const PythonAgent&) = delete;
  PythonAgent& operator=(const PythonAgent&) = delete;
  ~PythonAgent() override {
    const py::gil_scoped_acquire locked;
    agent_ = py::object();
  }

  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    const py::gil_scoped_acquire locked;
    const Task& task = model->task();
    const py::tuple decided = call_python("_agents", "decide", name_, agent_, task, options.seed,
                                          options.max_evaluations, options.max_seconds);
    return {.assignment = assignment_of(decided[0], task.graph, task.cluster),
            .makespan = decided[1].cast<double>(),
            .evaluations = decided[2].cast<std::int64_t>()};
  }

 private:
  std::string name_;
  py::object agent_;
};

ParameterValue value_of(py::handle value, const std::string& what) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return integer_of(value, what);
  if (py::isinstance<py::float_>(value)) return number_of(value, what);
  return text_of(value, what);
}

std::unique_ptr<Agent> make(const std::string& name, const py::object& factory,
                            const Parameters& parameters,
                            const std::vector<ParameterSpec>& schema) {
  const py::gil_scoped_acquire locked;
  return std::make_unique<PythonAgent>(
      name, call_python("_agents", "make", name, factory, keywords_of(parameters, schema)));
}

void register_python_agent(const py::object& name, const py::object& summary,
                           const py::object& source, const py::list& parameters,
                           py::object factory) {
  AgentEntry entry;
  entry.name = text_of(name, "name");
  entry.summary = text_of(summary, "summary");
  entry.source = text_of(source, "source");
  entry.family = "python";
  entry.deterministic = py::bool_(py::getattr(factory, "deterministic", py::bool_(false)));
  if (NamedCall::parse(entry.name).name != entry.name) {
    throw UsageError("name: expected letters, digits and \"_-.+\", got " + description_of(name));
  }
  for (const py::handle item : parameters) {
    const auto parameter = py::reinterpret_borrow<py::tuple>(item);
    const std::string parameter_name = text_of(parameter[0], "parameter");
    entry.parameters.push_back({.name = parameter_name,
                                .summary = "of the Python agent",
                                .default_value = value_of(parameter[1], parameter_name)});
  }
  // Never let go of: the registry outlives the interpreter.
  const auto* kept = new py::object(std::move(factory));
  entry.make = [kept, name = entry.name, schema = entry.parameters](const Parameters& given) {
    return make(name, *kept, given, schema);
  };
  if (py::hasattr(*kept, "trainer")) {
    entry.train = [kept, name = entry.name, schema = entry.parameters](
                      const Parameters& given, const TrainProblem& problem) {
      const py::gil_scoped_acquire locked;
      return make_python_trainer({name, kept->attr("trainer"), keywords_of(given, schema)},
                                 problem);
    };
  }
  register_agent(std::move(entry));
}

}  // namespace

void bind_python_agents(py::module_& module) {
  register_python_errors();
  module.def("register_agent", &register_python_agent, py::arg("name"), py::arg("summary"),
             py::arg("source"), py::arg("parameters"), py::arg("factory"),
             "See doppler_gym.register_agent; `parameters` is a list of (name, default).");
}

}  // namespace doppler::python
