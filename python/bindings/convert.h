// What users hand over, checked and turned into values; and views of values as arrays.
//
// Every function throws UsageError that begins with `what`, the name of the argument.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "graphs/assignment.h"
#include "graphs/cluster.h"
#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler::python {

namespace py = pybind11;

// --- scalars: Python's and numpy's; a bool is no number ---
bool boolean_of(py::handle value, const std::string& what);
double number_of(py::handle value, const std::string& what);
std::int64_t integer_of(py::handle value, const std::string& what,
                        std::int64_t minimum = std::numeric_limits<std::int64_t>::min(),
                        std::int64_t maximum = std::numeric_limits<std::int64_t>::max());
std::uint64_t seed_of(py::handle value);  // 0 to 2^64 - 1
std::string text_of(py::handle value, const std::string& what);
std::string path_of(py::handle value);  // str, bytes or os.PathLike

// "a float64 array of shape (3, 2)", "a list": what was given, for messages.
std::string description_of(py::handle value);

// --- arrays: anything that numpy makes an array of; other byte orders and strides are fine ---
// float64; integers are converted. NaN passes: what may be NaN is for the reader to say.
py::array_t<double, py::array::c_style> numbers_of(py::handle value, const std::string& what);
// int64; floating point is refused, except for an array without elements.
py::array_t<std::int64_t, py::array::c_style> integers_of(py::handle value,
                                                          const std::string& what);

// The devices of an array of whole numbers of any shape, row-major; each is one of the cluster's.
std::vector<DeviceId> devices_of(const py::array_t<std::int64_t, py::array::c_style>& array,
                                 std::size_t n_devices, const std::string& what);
// One device a node: [n_nodes].
Assignment assignment_of(py::handle value, const Graph& graph, const Cluster& cluster);

// --- views: read-only arrays without a copy, which keep `owner` alive ---
template <class T>
py::array view(const T* first, std::vector<py::ssize_t> shape, std::vector<py::ssize_t> strides,
               py::handle owner) {
  if (first == nullptr) return py::array(py::dtype::of<T>(), shape);
  py::array result(py::dtype::of<T>(), std::move(shape), std::move(strides), first, owner);
  result.attr("setflags")(py::arg("write") = false);
  return result;
}

// Of consecutive ids.
template <class Tag>
py::array view(std::span<const Id<Tag>> ids, py::handle owner) {
  const std::int32_t* first = ids.empty() ? nullptr : &ids.front().value;
  return view(first, {static_cast<py::ssize_t>(ids.size())}, {sizeof(Id<Tag>)}, owner);
}

// Of one field of consecutive values; `field` gives a reference to it.
template <class Element, class Field>
py::array field_view(const std::vector<Element>& values, const Field& field, py::handle owner) {
  const auto* first = values.empty() ? nullptr : &field(values.front());
  return view(first, {static_cast<py::ssize_t>(values.size())}, {sizeof(Element)}, owner);
}

// A new array [n] of what `value(i)` gives.
template <class T, class Value>
py::array_t<T> array_of(std::size_t n, const Value& value) {
  py::array_t<T> result(static_cast<py::ssize_t>(n));
  T* out = result.mutable_data();
  for (std::size_t i = 0; i < n; ++i) out[i] = value(i);
  return result;
}

// A new list of texts; bytes that are no UTF-8 are shown as escapes.
py::str to_python(std::string_view text);

template <class T>
py::str printed(const T& value) {
  std::ostringstream out;
  out << value;
  return to_python(out.str());
}

// Immutable values: a copy is the value itself.
template <class Class>
void def_copy(Class& bound) {
  bound.def("__copy__", [](py::object self) { return self; });
  bound.def(
      "__deepcopy__", [](py::object self, const py::object& /*memo*/) { return self; },
      py::arg("memo"));
}

}  // namespace doppler::python
