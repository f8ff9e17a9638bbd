#include "python/bindings/convert.h"

#include <cmath>

#include "graphs/error.h"

namespace doppler::python {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& expected, py::handle value) {
  throw UsageError(what + ": expected " + expected + ", got " + description_of(value));
}

std::string shape_text(const py::array& array) {
  return py::str(array.attr("shape")).cast<std::string>();
}

// The place of an element of a row-major array: "[3, 17]".
std::string place_of(const py::array& array, py::ssize_t element) {
  std::string text;
  for (py::ssize_t axis = array.ndim(); axis-- > 0;) {
    const py::ssize_t length = array.shape(axis);
    text = std::to_string(element % length) + (text.empty() ? "" : ", ") + text;
    element /= length;
  }
  return "[" + text + "]";
}

py::array array_of_any(py::handle value, const std::string& what) {
  py::array array = py::array::ensure(value);
  if (!array) {
    refuse(what, "numbers in a rectangle (a numpy array, or lists of equal length)", value);
  }
  return array;
}

bool is_bool(py::handle value) {
  return PyBool_Check(value.ptr()) != 0 ||
         std::string_view(Py_TYPE(value.ptr())->tp_name).starts_with("numpy.bool");
}

}  // namespace

std::string description_of(py::handle value) {
  if (py::isinstance<py::array>(value)) {
    const auto array = py::reinterpret_borrow<py::array>(value);
    return "an array of " + py::str(array.dtype()).cast<std::string>() + " with shape " +
           shape_text(array);
  }
  constexpr std::size_t kLongest = 60;
  std::string text;
  try {
    text = py::repr(value).cast<std::string>();
  } catch (const py::error_already_set&) {
    text = "a value that cannot be shown";
  }
  if (text.size() > kLongest) {
    std::size_t end = kLongest;
    // Not within a character of several bytes.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end) + "...";
  }
  return text + " (" + std::string(Py_TYPE(value.ptr())->tp_name) + ")";
}

bool boolean_of(py::handle value, const std::string& what) {
  if (!is_bool(value)) refuse(what, "True or False", value);
  return PyObject_IsTrue(value.ptr()) == 1;
}

double number_of(py::handle value, const std::string& what) {
  if (is_bool(value) || py::isinstance<py::array>(value)) refuse(what, "a number", value);
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse(what, "a number", value);
  }
  return number;
}

std::int64_t integer_of(py::handle value, const std::string& what, std::int64_t minimum,
                        std::int64_t maximum) {
  const auto index = py::reinterpret_steal<py::object>(
      is_bool(value) || py::isinstance<py::array>(value) ? nullptr : PyNumber_Index(value.ptr()));
  if (!index) {
    PyErr_Clear();
    refuse(what, "a whole number", value);
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || number < minimum || number > maximum) {
    refuse(what,
           "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum),
           value);
  }
  return number;
}

std::uint64_t seed_of(py::handle value) {
  const auto index = py::reinterpret_steal<py::object>(
      is_bool(value) || py::isinstance<py::array>(value) ? nullptr : PyNumber_Index(value.ptr()));
  if (index) {
    const unsigned long long seed = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() == nullptr) return seed;
  }
  PyErr_Clear();
  refuse("seed", "a whole number from 0 to 2**64 - 1", value);
}

std::string text_of(py::handle value, const std::string& what) {
  if (!py::isinstance<py::str>(value)) refuse(what, "a str", value);
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    refuse(what, "a str without lone surrogates", value);
  }
  return {text, static_cast<std::size_t>(size)};
}

std::string path_of(py::handle value) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(value.ptr(), &bytes) == 0) {
    PyErr_Clear();
    refuse("path", "a str, bytes or os.PathLike without null bytes", value);
  }
  return py::reinterpret_steal<py::bytes>(bytes).cast<std::string>();
}

py::array_t<double, py::array::c_style> numbers_of(py::handle value, const std::string& what) {
  const py::array array = array_of_any(value, what);
  const char kind = array.dtype().kind();
  if (kind != 'f' && kind != 'i' && kind != 'u') refuse(what, "numbers (float64)", array);
  auto result = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!result) throw py::error_already_set();
  return result;
}

py::array_t<std::int64_t, py::array::c_style> integers_of(py::handle value,
                                                          const std::string& what) {
  const py::array array = array_of_any(value, what);
  const char kind = array.dtype().kind();
  if (kind != 'i' && kind != 'u' && array.size() > 0) {
    refuse(what, "whole numbers (int64; for whole floats, convert with .astype(int))", array);
  }
  auto result = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>::ensure(array);
  if (!result) throw py::error_already_set();
  if (kind == 'u') {
    // Numbers of 2^63 and more would have become negative.
    for (py::ssize_t i = 0; i < result.size(); ++i) {
      if (result.data()[i] < 0) {
        throw UsageError(what + place_of(result, i) + " is beyond 2**63 - 1");
      }
    }
  }
  return result;
}

std::vector<DeviceId> devices_of(const py::array_t<std::int64_t, py::array::c_style>& array,
                                 std::size_t n_devices, const std::string& what) {
  const std::int64_t* values = array.data();
  std::vector<DeviceId> devices(static_cast<std::size_t>(array.size()));
  bool all_fit = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    all_fit = all_fit && static_cast<std::uint64_t>(values[i]) < n_devices;
    devices[i] = DeviceId(values[i]);
  }
  if (all_fit) return devices;
  std::size_t i = 0;
  while (static_cast<std::uint64_t>(values[i]) < n_devices) ++i;
  throw InvalidError(what + place_of(array, static_cast<py::ssize_t>(i)) + " is device " +
                     std::to_string(values[i]) + "; the cluster has devices 0 to " +
                     std::to_string(n_devices - 1));
}

Assignment assignment_of(py::handle value, const Graph& graph, const Cluster& cluster) {
  const auto array = integers_of(value, "assignment");
  if (array.ndim() != 1 || static_cast<std::size_t>(array.size()) != graph.n_nodes()) {
    throw UsageError("assignment: expected shape (" + std::to_string(graph.n_nodes()) +
                     ",), one device for each node, got shape " + shape_text(array));
  }
  return Assignment(devices_of(array, cluster.n_devices(), "assignment"));
}

py::str to_python(std::string_view text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace doppler::python
