// Observations and actions of environments as numpy has them; and options of environments.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/env.h"
#include "env/env_model.h"
#include "python/bindings/convert.h"

namespace doppler::python {

struct ObservationOptions {
  bool flat = false;          // one float32 array: every array of the dict, one after the other
  bool share_static = false;  // static arrays are one read-only object an episode, not copies
};

// A new array without a value; contiguous, row-major.
py::object new_array(const py::dtype& type, std::span<const py::ssize_t> shape);
std::byte* bytes_of(const py::object& array);
// A new array of one dimension.
template <class T>
py::object new_vector(std::span<const T> values) {
  const auto size = static_cast<py::ssize_t>(values.size());
  py::object array = new_array(py::dtype::of<T>(), std::span(&size, 1));
  if (!values.empty()) std::memcpy(bytes_of(array), values.data(), values.size_bytes());
  return array;
}

// Makes what Python sees of the environments of one model. Needs the interpreter's lock.
class Observer {
 public:
  // `n_envs`: arrays with that many rows, of a VectorEnv; 0: of one Env.
  Observer(std::shared_ptr<const EnvModel> model, ObservationOptions options,
           std::size_t n_envs = 0);

  // dict of name -> array, or one array if flat; dynamic arrays are new ones. `read(i)` gives the
  // bytes of array number i of the spec; `version` tells when static ones may have changed.
  template <class Read>
  py::object observe(const Read& read, std::uint64_t version) const;
  // The action mask of that observation; a new array if flat.
  [[nodiscard]] py::object mask_of(const py::object& observation,
                                   std::span<const std::byte> mask) const;

  [[nodiscard]] const EnvModel& model() const { return *model_; }
  [[nodiscard]] const std::shared_ptr<const EnvModel>& shared_model() const { return model_; }
  [[nodiscard]] const ObservationOptions& options() const { return options_; }

 private:
  struct Array {
    py::object key;
    py::dtype type;
    DType element = DType::float32;
    std::vector<py::ssize_t> shape;
    std::size_t n_elements = 0;  // of one environment
    bool is_static = false;
    mutable py::object shared;  // share_static: the one object
  };
  [[nodiscard]] std::size_t n_rows() const { return n_envs_ == 0 ? 1 : n_envs_; }
  [[nodiscard]] py::object new_flat(float*& values) const;
  static void append_as_float(const Array& array, std::span<const std::byte> bytes,
                              std::size_t n_rows, std::size_t stride, float* first);

  std::shared_ptr<const EnvModel> model_;
  ObservationOptions options_;
  std::size_t n_envs_;
  std::vector<Array> arrays_;
  std::size_t n_flat_ = 0;  // elements of one environment
  py::dict keys_;           // in the order of the spec
  mutable std::uint64_t shared_version_ = ~std::uint64_t{0};
};

template <class Read>
py::object Observer::observe(const Read& read, std::uint64_t version) const {
  if (options_.flat) {
    float* values = nullptr;
    py::object array = new_flat(values);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      append_as_float(arrays_[i], read(i), n_rows(), n_flat_, values);
      values += arrays_[i].n_elements;
    }
    return array;
  }
  const bool renew = version != shared_version_;
  // A copy has its keys in place already, which is quicker than to put them in.
  py::object result = py::reinterpret_steal<py::object>(PyDict_Copy(keys_.ptr()));
  if (!result) throw py::error_already_set();
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Array& array = arrays_[i];
    const bool share = array.is_static && options_.share_static;
    py::object value;
    if (share && !renew) {
      value = array.shared;
    } else {
      value = new_array(array.type, array.shape);
      const auto bytes = read(i);
      std::memcpy(bytes_of(value), bytes.data(), bytes.size());
      if (share) {
        value.attr("setflags")(py::arg("write") = false);
        array.shared = value;
      }
    }
    if (PyDict_SetItem(result.ptr(), array.key.ptr(), value.ptr()) != 0) {
      throw py::error_already_set();
    }
  }
  if (options_.share_static) shared_version_ = version;
  return result;
}

// One action in the form of the action space: whole numbers within their ranges. `scratch` holds
// several numbers. Throws UsageError that says what the space takes.
std::span<const std::int64_t> action_of(py::handle action, const EnvModel& model,
                                        std::vector<std::int64_t>& scratch);
// Actions of n environments, [n] or [n, numbers of an action].
py::array_t<std::int64_t, py::array::c_style> actions_of(py::handle actions, const EnvModel& model,
                                                         std::size_t n_envs);

// What is known at the end of an episode, as items of info.
py::dict info_of(const EpisodeResult& result, std::size_t max_nodes);

// (task, devices, starts, ends) of the partial schedule, [n_nodes]; -1, 0, 0: not placed.
py::tuple schedule_of(const Env& env);

EnvOptions env_options_of(const py::kwargs& keywords);
py::dict keywords_of(const EnvOptions& options);

}  // namespace doppler::python
