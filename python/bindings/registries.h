// Registered things as Python sees them: their descriptions, and names with parameters.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "graphs/registry.h"
#include "python/bindings/convert.h"

namespace doppler::python {

// `name` may hold parameters, "random-dag(n=100)"; keywords add to them. Values are bool, int,
// float or str. Throws UsageError; `what` names the argument.
NamedCall call_of(py::handle name, const py::kwargs& keywords, const std::string& what);

// dict of name -> description, sorted. Registries live as long as the process.
template <class Entry>
py::dict listing(const Registry<Entry>& registry) {
  py::dict result;
  for (const auto& [name, entry] : registry) {
    result[to_python(name)] = py::cast(&entry, py::return_value_policy::reference);
  }
  return result;
}

}  // namespace doppler::python
