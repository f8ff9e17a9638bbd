#include "python/bindings/registries.h"

#include "graphs/error.h"

namespace doppler::python {
namespace {

// A value as users write it in a spelling.
std::string spelling_of(py::handle value, const std::string& what) {
  if (py::isinstance<py::str>(value)) return text_of(value, what);
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  if (py::isinstance<py::float_>(value)) return py::repr(py::float_(number_of(value, what)));
  if (PyIndex_Check(value.ptr()) != 0) return std::to_string(integer_of(value, what));
  throw UsageError(what + ": expected a bool, int, float or str, got " + description_of(value));
}

}  // namespace

NamedCall call_of(py::handle name, const py::kwargs& keywords, const std::string& what) {
  NamedCall call = NamedCall::parse(text_of(name, what));
  for (const auto& [key, value] : keywords) {
    const std::string parameter = text_of(key, "parameter");
    call.named.emplace_back(parameter, spelling_of(value, parameter));
  }
  return call;
}

}  // namespace doppler::python
