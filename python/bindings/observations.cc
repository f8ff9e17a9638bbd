#include "python/bindings/observations.h"

#include <cstring>
#include <functional>
#include <map>

#include "graphs/error.h"

namespace doppler::python {
namespace {

py::dtype dtype_of(DType type) {
  switch (type) {
    case DType::int32:
      return py::dtype::of<std::int32_t>();
    case DType::int8:
      return py::dtype::of<std::int8_t>();
    default:
      return py::dtype::of<float>();
  }
}

template <class T>
void convert_rows(std::span<const std::byte> bytes, std::size_t n_rows, std::size_t width,
                  std::size_t stride, float* first) {
  const T* from = reinterpret_cast<const T*>(bytes.data());
  for (std::size_t row = 0; row < n_rows; ++row, first += stride, from += width) {
    for (std::size_t i = 0; i < width; ++i) first[i] = static_cast<float>(from[i]);
  }
}

std::string space_text(const ActionSpec& action) {
  if (action.discrete) return "one whole number from 0 to " + std::to_string(action.sizes[0] - 1);
  return std::to_string(action.sizes.size()) + " whole numbers, each from 0 to its size - 1";
}

// Throws for the first number outside its range.
void check_range(std::span<const std::int64_t> action, const EnvModel& model,
                 const std::string& what) {
  const ActionSpec& space = model.spec().action;
  for (std::size_t i = 0; i < action.size(); ++i) {
    const std::int64_t size = space.sizes[i % space.sizes.size()];
    if (action[i] >= 0 && action[i] < size) continue;
    std::string where = what;
    if (action.size() > 1) where += "[" + std::to_string(i / space.sizes.size());
    if (action.size() > 1 && space.sizes.size() > 1 && action.size() > space.sizes.size()) {
      where += ", " + std::to_string(i % space.sizes.size());
    }
    if (action.size() > 1) where += "]";
    throw UsageError(where + " is " + std::to_string(action[i]) + "; mode " + model.options().mode +
                     " takes 0 to " + std::to_string(size - 1) + " there");
  }
}

using Setter = std::function<void(EnvOptions&, py::handle)>;

const std::map<std::string, Setter>& setters() {
  const auto limit = [](std::int64_t EnvOptions::*field, const char* name) {
    return [field, name](EnvOptions& options, py::handle value) {
      options.*field = value.is_none() ? 0 : integer_of(value, name, 1);
    };
  };
  static const std::map<std::string, Setter> all = {
      {"mode", [](EnvOptions& o, py::handle v) { o.mode = text_of(v, "mode"); }},
      {"reward",
       [](EnvOptions& o, py::handle v) { o.reward = parse_reward(text_of(v, "reward")); }},
      {"features",
       [](EnvOptions& o, py::handle v) { o.features = parse_features(text_of(v, "features")); }},
      {"order",
       [](EnvOptions& o, py::handle v) { o.order = parse_place_order(text_of(v, "order")); }},
      {"on_illegal",
       [](EnvOptions& o, py::handle v) {
         o.on_illegal = parse_on_illegal(text_of(v, "on_illegal"));
       }},
      {"engine", [](EnvOptions& o, py::handle v) { o.engine = text_of(v, "engine"); }},
      {"factored", [](EnvOptions& o, py::handle v) { o.factored = boolean_of(v, "factored"); }},
      {"max_nodes", limit(&EnvOptions::max_nodes, "max_nodes")},
      {"max_edges", limit(&EnvOptions::max_edges, "max_edges")},
      {"max_devices", limit(&EnvOptions::max_devices, "max_devices")},
      {"memory_penalty",
       [](EnvOptions& o, py::handle v) { o.memory_penalty = number_of(v, "memory_penalty"); }},
      {"initial",
       [](EnvOptions& o, py::handle v) {
         o.initial.clear();
         if (v.is_none()) return;
         const auto array = integers_of(v, "initial");
         if (array.ndim() != 1 || array.size() == 0) {
           throw UsageError("initial: expected shape (n_nodes,), one device for each node, got " +
                            description_of(array));
         }
         // Which devices there are is for the tasks to say; an id is a 32 bit number.
         o.initial = devices_of(array, std::size_t{1} << 31U, "initial");
       }},
  };
  return all;
}

}  // namespace

py::object new_array(const py::dtype& type, std::span<const py::ssize_t> shape) {
  const auto& numpy = py::detail::npy_api::get();
  PyObject* made = numpy.PyArray_NewFromDescr_(
      numpy.PyArray_Type_, py::dtype(type).release().ptr(), static_cast<int>(shape.size()),
      const_cast<py::ssize_t*>(shape.data()), nullptr, nullptr, 0, nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

std::byte* bytes_of(const py::object& array) {
  return reinterpret_cast<std::byte*>(py::detail::array_proxy(array.ptr())->data);
}

Observer::Observer(std::shared_ptr<const EnvModel> model, ObservationOptions options,
                   std::size_t n_envs)
    : model_(std::move(model)), options_(options), n_envs_(n_envs) {
  for (const ArraySpec& spec : model_->spec().observations) {
    PyObject* key = to_python(spec.name).release().ptr();
    PyUnicode_InternInPlace(&key);
    Array array{.key = py::reinterpret_steal<py::object>(key),
                .type = dtype_of(spec.dtype),
                .element = spec.dtype,
                .shape = {spec.shape.begin(), spec.shape.end()},
                .n_elements = spec.n_elements(),
                .is_static = spec.is_static,
                .shared = py::none()};
    if (n_envs_ > 0) array.shape.insert(array.shape.begin(), static_cast<py::ssize_t>(n_envs_));
    n_flat_ += array.n_elements;
    keys_[array.key] = py::none();
    arrays_.push_back(std::move(array));
  }
}

py::object Observer::new_flat(float*& values) const {
  const py::ssize_t shape[] = {static_cast<py::ssize_t>(n_envs_),
                               static_cast<py::ssize_t>(n_flat_)};
  py::object array =
      new_array(py::dtype::of<float>(), n_envs_ == 0 ? std::span(shape).subspan(1) : shape);
  values = reinterpret_cast<float*>(bytes_of(array));
  return array;
}

void Observer::append_as_float(const Array& array, std::span<const std::byte> bytes,
                               std::size_t n_rows, std::size_t stride, float* first) {
  switch (array.element) {
    case DType::int32:
      return convert_rows<std::int32_t>(bytes, n_rows, array.n_elements, stride, first);
    case DType::int8:
      return convert_rows<std::int8_t>(bytes, n_rows, array.n_elements, stride, first);
    default:
      return convert_rows<float>(bytes, n_rows, array.n_elements, stride, first);
  }
}

py::object Observer::mask_of(const py::object& observation, std::span<const std::byte> mask) const {
  const Array& array = arrays_.back();
  if (!options_.flat) {
    PyObject* found = PyDict_GetItemWithError(observation.ptr(), array.key.ptr());
    if (found == nullptr) throw py::error_already_set();
    return py::reinterpret_borrow<py::object>(found);
  }
  py::object result = new_array(array.type, array.shape);
  std::memcpy(bytes_of(result), mask.data(), mask.size());
  return result;
}

std::span<const std::int64_t> action_of(py::handle action, const EnvModel& model,
                                        std::vector<std::int64_t>& scratch) {
  const ActionSpec& space = model.spec().action;
  scratch.resize(space.sizes.size());
  if (!space.discrete) {
    const auto array = integers_of(action, "action");
    if (array.ndim() != 1 || static_cast<std::size_t>(array.size()) != space.sizes.size()) {
      throw UsageError("action: mode " + model.options().mode + " takes " + space_text(space) +
                       ", got " + description_of(action));
    }
    std::copy_n(array.data(), scratch.size(), scratch.begin());
  } else if (PyLong_CheckExact(action.ptr()) != 0) {
    int overflow = 0;
    scratch[0] = PyLong_AsLongLongAndOverflow(action.ptr(), &overflow);
    if (overflow != 0) {
      throw UsageError("action is " + description_of(action) + "; mode " + model.options().mode +
                       " takes " + space_text(space));
    }
  } else if (py::isinstance<py::array>(action)) {
    // Of no dimension, as vectors of environments hand actions on.
    const auto array = py::reinterpret_borrow<py::array>(action);
    if (array.ndim() != 0 || (array.dtype().kind() != 'i' && array.dtype().kind() != 'u')) {
      throw UsageError("action: mode " + model.options().mode + " takes " + space_text(space) +
                       ", got " + description_of(action));
    }
    scratch[0] = *integers_of(action, "action").data();
  } else {
    scratch[0] = integer_of(action, "action");
  }
  check_range(scratch, model, "action");
  return scratch;
}

py::array_t<std::int64_t, py::array::c_style> actions_of(py::handle actions, const EnvModel& model,
                                                         std::size_t n_envs) {
  const ActionSpec& space = model.spec().action;
  auto array = integers_of(actions, "actions");
  const bool fits = space.discrete ? array.ndim() == 1 && std::size_t(array.shape(0)) == n_envs
                                   : array.ndim() == 2 && std::size_t(array.shape(0)) == n_envs &&
                                         std::size_t(array.shape(1)) == space.sizes.size();
  if (!fits) {
    const std::string shape =
        std::to_string(n_envs) + ", " + (space.discrete ? "" : std::to_string(space.sizes.size()));
    throw UsageError("actions: expected whole numbers of shape (" + shape + "), got " +
                     description_of(array));
  }
  check_range(std::span(array.data(), static_cast<std::size_t>(array.size())), model, "actions");
  return array;
}

py::dict info_of(const EpisodeResult& result, std::size_t max_nodes) {
  const auto size = static_cast<py::ssize_t>(max_nodes);
  py::object assignment = new_array(py::dtype::of<std::int32_t>(), std::span(&size, 1));
  auto* devices = reinterpret_cast<std::int32_t*>(bytes_of(assignment));
  for (std::size_t v = 0; v < max_nodes; ++v) {
    devices[v] = v < result.assignment.size() ? result.assignment.devices[v].value : -1;
  }
  py::dict info;
  info["makespan"] = result.makespan;
  info["ratio_to_critical_path"] = result.ratio_to_critical_path;
  info["lower_bound"] = result.lower_bound;
  info["assignment"] = std::move(assignment);
  info["evaluations"] = result.evaluations;
  // A scalar of numpy: vectors of environments make an int64 of an int, which is too small.
  static const auto* uint64 = new py::object(py::module_::import("numpy").attr("uint64"));
  info["engine_seed"] = (*uint64)(result.engine_seed);
  if (!result.failure.empty()) info["failure"] = to_python(result.failure);
  return info;
}

py::tuple schedule_of(const Env& env) {
  const std::size_t n = env.task().graph.n_nodes();
  const auto node = [](std::size_t v) { return NodeId{static_cast<std::int64_t>(v)}; };
  const PartialSchedule& schedule = env.schedule();
  return py::make_tuple(
      env.task(),
      array_of<std::int32_t>(n, [&](std::size_t v) { return schedule.device(node(v)).value; }),
      array_of<double>(n, [&](std::size_t v) { return schedule.start(node(v)); }),
      array_of<double>(n, [&](std::size_t v) { return schedule.end(node(v)); }));
}

EnvOptions env_options_of(const py::kwargs& keywords) {
  EnvOptions options{.on_illegal = OnIllegal::penalize};
  for (const auto& [key, value] : keywords) {
    const std::string name = text_of(key, "keyword");
    const auto found = setters().find(name);
    if (found == setters().end()) {
      std::vector<std::string> known;
      for (const auto& [known_name, setter] : setters()) known.push_back(known_name);
      throw_unknown_name("argument", name, known);
    }
    found->second(options, value);
  }
  return options;
}

py::dict keywords_of(const EnvOptions& options) {
  py::dict keywords;
  keywords["mode"] = to_python(options.mode);
  keywords["reward"] = to_python(to_string(options.reward));
  keywords["features"] = to_python(to_string(options.features));
  keywords["order"] = to_python(to_string(options.order));
  keywords["on_illegal"] = to_python(to_string(options.on_illegal));
  keywords["engine"] = to_python(options.engine);
  keywords["factored"] = options.factored;
  const auto limit = [](std::int64_t value) -> py::object {
    if (value == 0) return py::none();
    return py::int_(value);
  };
  keywords["max_nodes"] = limit(options.max_nodes);
  keywords["max_edges"] = limit(options.max_edges);
  keywords["max_devices"] = limit(options.max_devices);
  keywords["memory_penalty"] = options.memory_penalty;
  keywords["initial"] = py::none();
  if (!options.initial.empty()) {
    keywords["initial"] = array_of<std::int32_t>(
        options.initial.size(), [&](std::size_t v) { return options.initial[v].value; });
  }
  return keywords;
}

}  // namespace doppler::python
