// Calls from the library into the package's Python, and what they raise.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/registry.h"

namespace doppler::python {

namespace py = pybind11;

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

// So that Python callers get what was raised.
void register_python_errors();

// Throws the package's errors as the library's; returns for others.
void throw_as_ours(const py::error_already_set& error);

// Calls a function of a module of doppler_gym; what it raises of the package's errors is thrown as
// the library's, so that the command tells it like any other. Requires the interpreter's lock.
template <class... Arguments>
py::object call_python(const char* module, const char* function, Arguments&&... arguments) {
  try {
    return py::module_::import((std::string("doppler_gym.") + module).c_str())
        .attr(function)(std::forward<Arguments>(arguments)...);
  } catch (const py::error_already_set& error) {
    throw_as_ours(error);
    throw;
  }
}

// The parameters of an agent as keyword arguments. Requires the interpreter's lock.
py::dict keywords_of(const Parameters& parameters, const std::vector<ParameterSpec>& schema);

}  // namespace doppler::python
