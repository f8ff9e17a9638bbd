// Agents that are written in Python, in the library's registry.
#include <pybind11/stl.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "env/task.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// An error of the library with the Python exception that it came from, which Python callers get.
template <class Base>
class OfPython final : public Base {
 public:
  explicit OfPython(const py::error_already_set& original)
      : Base(py::str(original.value()).cast<std::string>()), original_(original) {}
  void raise() const { PyErr_SetObject(original_.type().ptr(), original_.value().ptr()); }

 private:
  py::error_already_set original_;
};

// Calls a function of doppler_gym._agents; what it raises of the package's errors is thrown as the
// library's, so that the command tells it like any other.
template <class... Arguments>
py::object call(const char* function, Arguments&&... arguments) {
  try {
    return py::module_::import("doppler_gym._agents")
        .attr(function)(std::forward<Arguments>(arguments)...);
  } catch (const py::error_already_set& error) {
    const py::module_ errors = py::module_::import("doppler_gym._errors");
    if (error.matches(errors.attr("UsageError"))) throw OfPython<UsageError>(error);
    if (error.matches(errors.attr("RunError"))) throw OfPython<RunError>(error);
    throw;
  }
}

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
    const py::tuple decided = call("decide", name_, agent_, task, options.seed,
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
  py::dict keywords;
  for (const ParameterSpec& spec : schema) {
    std::visit(
        [&](const auto& default_value) {
          using T = std::decay_t<decltype(default_value)>;
          keywords[to_python(spec.name)] = parameters.get<T>(spec.name);
        },
        spec.default_value);
  }
  return std::make_unique<PythonAgent>(name, call("make", name, factory, keywords));
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
  register_agent(std::move(entry));
}

}  // namespace

void bind_python_agents(py::module_& module) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const OfPython<UsageError>& error) {
      error.raise();
    } catch (const OfPython<RunError>& error) {
      error.raise();
    }
  });
  module.def("register_agent", &register_python_agent, py::arg("name"), py::arg("summary"),
             py::arg("source"), py::arg("parameters"), py::arg("factory"),
             "See doppler_gym.register_agent; `parameters` is a list of (name, default).");
}

}  // namespace doppler::python
