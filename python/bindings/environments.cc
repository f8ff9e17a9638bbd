// EnvModel and Env.
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "env/check_env.h"
#include "env/env.h"
#include "env/env_model.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/observations.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

using ModelPointer = std::shared_ptr<const EnvModel>;

// Errors that only environments raise; other ones are left to the module.
void register_exceptions() {
  const py::module_ errors = py::module_::import("doppler_gym._errors");
  static const auto* episode = new py::object(errors.attr("EpisodeError"));
  static const auto* illegal = new py::object(errors.attr("IllegalActionError"));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const EpisodeError& error) {
      PyErr_SetObject(episode->ptr(), to_python(error.what()).ptr());
    } catch (const IllegalActionError& error) {
      PyErr_SetObject(illegal->ptr(), to_python(error.what()).ptr());
    }
  });
}

std::shared_ptr<EnvModel> model_of(const py::object& tasks, const py::kwargs& keywords) {
  std::vector<Task> values;
  for (const py::handle task : tasks) {
    if (!py::isinstance<Task>(task)) {
      throw UsageError("tasks: expected Task values, got " + description_of(task));
    }
    values.push_back(task.cast<const Task&>());
  }
  EnvOptions options = env_options_of(keywords);
  const py::gil_scoped_release unlocked;
  return std::make_shared<EnvModel>(std::move(values), std::move(options));
}

py::list tasks_of(const EnvModel& model) {
  py::list tasks;
  for (const EnvTask& task : model.tasks()) tasks.append(task.placement->task());
  return tasks;
}

py::list observations_of(const EnvModel& model) {
  py::list arrays;
  for (const ArraySpec& spec : model.spec().observations) {
    py::dict array;
    array["name"] = to_python(spec.name);
    array["shape"] = py::tuple(py::cast(spec.shape));
    array["dtype"] = spec.dtype == DType::float32 ? "float32"
                     : spec.dtype == DType::int32 ? "int32"
                                                  : "int8";
    array["low"] = spec.low;
    array["high"] = spec.high;
    array["static"] = spec.is_static;
    array["summary"] = to_python(spec.summary);
    arrays.append(std::move(array));
  }
  return arrays;
}

void bind_model(py::module_& module) {
  py::class_<EnvModel, std::shared_ptr<EnvModel>> bound(
      module, "EnvModel",
      "EnvModel(tasks, **options): what of an environment never changes; AssignEnv documents the "
      "options. Immutable, shared by copies of environments.");
  bound.def(py::init(&model_of), py::arg("tasks"));
  bound.def_property_readonly("tasks", &tasks_of);
  bound.def_property_readonly("options",
                              [](const EnvModel& model) { return keywords_of(model.options()); });
  bound.def_property_readonly("observations", &observations_of,
                              "Of each array: name, shape, dtype, low, high, static, summary.");
  bound.def_property_readonly(
      "action_sizes", [](const EnvModel& model) { return py::cast(model.spec().action.sizes); },
      "Number i of an action lies in [0, action_sizes[i]).");
  bound.def_property_readonly(
      "discrete", [](const EnvModel& model) { return model.spec().action.discrete; },
      "Whether an action is one number.");
  bound.def_property_readonly(
      "max_steps", [](const EnvModel& model) { return model.spec().max_steps; },
      "Legal steps of the longest episode.");
  bound.def_property_readonly("kinds", [](const EnvModel& model) {
    py::list kinds;
    for (const std::string& kind : model.kinds()) kinds.append(to_python(kind));
    return kinds;
  });
  bound.def(
      "check",
      [](const std::shared_ptr<EnvModel>& model, const py::object& seed, int n_episodes) {
        const CheckEnvOptions options{.seed = seed_of(seed), .n_episodes = n_episodes};
        const py::gil_scoped_release unlocked;
        check_env(model, options);
      },
      py::kw_only(), py::arg("seed") = 0, py::arg("n_episodes") = 2);
  def_copy(bound);
  bound.def(py::pickle(
      [](const EnvModel& model) {
        return py::make_tuple(tasks_of(model), keywords_of(model.options()));
      },
      [](const py::tuple& state) {
        if (state.size() != 2) throw UsageError("the state of an EnvModel has two parts");
        return model_of(state[0], py::kwargs(state[1].cast<py::dict>()));
      }));
}

// An Env and what makes its observations.
class PythonEnv {
 public:
  PythonEnv(ModelPointer model, ObservationOptions options)
      : env_(model), observer_(std::move(model), options) {}
  // Lets go of the interpreter's lock while the original is not in use.
  PythonEnv(const PythonEnv& other) : env_(other.idle()), observer_(other.observer_) {}

  py::tuple reset(const py::object& seed, const py::object& task) {
    check_idle();
    ResetOptions options;
    if (!seed.is_none()) options.seed = seed_of(seed);
    if (!task.is_none()) {
      options.task = static_cast<std::size_t>(integer_of(task, "task", 0));
    }
    working([&] { env_.reset(options); });
    py::object observation = observe();
    py::dict info = new_info(observation);
    info["task"] = env_.task_index();
    return py::make_tuple(std::move(observation), std::move(info));
  }

  py::tuple step(py::handle action) {
    check_idle();
    const auto numbers = action_of(action, env_.model(), numbers_);
    StepResult result;
    if (measures_next()) {
      working([&] { result = env_.step(numbers); });
    } else {
      result = env_.step(numbers);
    }
    py::object observation = observe();
    py::dict info = new_info(observation);
    if (result.illegal) info["illegal"] = true;
    if (result.terminated) info.attr("update")(info_of(env_.result(), env_.model().max_nodes()));
    return py::make_tuple(std::move(observation), result.reward, result.terminated,
                          result.truncated, std::move(info));
  }

  [[nodiscard]] py::object action_masks() const {
    const auto mask = idle().action_mask();
    return new_vector(std::span(reinterpret_cast<const bool*>(mask.data()), mask.size()));
  }
  void restore(const py::bytes& state) {
    check_idle();
    const std::string_view bytes = state;
    working([&] { env_.restore(bytes); });
  }
  [[nodiscard]] py::bytes serialize() const { return py::bytes(idle().serialize()); }

  // Throws UsageError while another thread is inside.
  [[nodiscard]] const Env& idle() const {
    check_idle();
    return env_;
  }
  [[nodiscard]] const Observer& observer() const { return observer_; }

 private:
  void check_idle() const {
    if (busy_) {
      throw UsageError(
          "another thread is using this environment; give each thread its own, by clone()");
    }
  }
  // Runs without the interpreter's lock; meanwhile the environment is not to be used.
  template <class Work>
  void working(const Work& work) {
    struct Busy {
      bool& flag;
      explicit Busy(bool& its_flag) : flag(its_flag) { flag = true; }
      ~Busy() { flag = false; }
    } const busy(busy_);
    const py::gil_scoped_release unlocked;
    work();
  }
  // Whether the next step may run the engine. Other steps are shorter than letting go of the lock.
  [[nodiscard]] bool measures_next() const {
    const auto& mode = env_.options().mode;
    return env_.schedule().n_placed() + 1 >= env_.schedule().model().n_nodes() ||
           mode == "refine" || mode == "oneshot";
  }
  [[nodiscard]] py::object observe() const {
    return observer_.observe([this](std::size_t i) { return env_.observation(i); },
                             env_.task_index());
  }
  [[nodiscard]] py::dict new_info(const py::object& observation) const {
    static const auto* key = new py::str("action_mask");
    py::dict info;
    info[*key] = observer_.mask_of(observation, std::as_bytes(env_.action_mask()));
    return info;
  }

  Env env_;
  Observer observer_;
  std::vector<std::int64_t> numbers_;
  bool busy_ = false;
};

void bind_env_class(py::module_& module) {
  py::class_<PythonEnv> bound(
      module, "Env",
      "Env(model, *, flat=False, share_static=False): the environment behind AssignEnv.");
  bound.def(py::init([](const std::shared_ptr<EnvModel>& model, const py::object& flat,
                        const py::object& share_static) {
              return PythonEnv(model, {.flat = boolean_of(flat, "flat"),
                                       .share_static = boolean_of(share_static, "share_static")});
            }),
            py::arg("model").none(false), py::kw_only(), py::arg("flat") = false,
            py::arg("share_static") = false);
  bound.def("reset", &PythonEnv::reset, py::arg("seed") = py::none(), py::arg("task") = py::none(),
            "(observation, info).");
  bound.def("step", &PythonEnv::step, py::arg("action"),
            "(observation, reward, terminated, truncated, info).");
  bound.def("action_masks", &PythonEnv::action_masks, "bool [mask_size], a new array.");
  bound.def("clone", [](const PythonEnv& self) { return PythonEnv(self); });
  bound.def("serialize", &PythonEnv::serialize);
  bound.def("restore", &PythonEnv::restore, py::arg("state"));
  bound.def(
      "schedule", [](const PythonEnv& self) { return schedule_of(self.idle()); },
      "(task, devices, starts, ends) of the partial schedule, [n_nodes]; -1: not placed.");
  bound.def("result", [](const PythonEnv& self) {
    const EpisodeResult& result = self.idle().result();
    return info_of(result, result.assignment.size());
  });
  bound.def_property_readonly("running",
                              [](const PythonEnv& self) { return self.idle().running(); });
  bound.def_property_readonly("terminated", [](const PythonEnv& self) {
    return !self.idle().running() && self.idle().schedule().complete();
  });
  bound.def_property_readonly("task_index",
                              [](const PythonEnv& self) { return self.idle().task_index(); });
  bound.def_property_readonly("task", [](const PythonEnv& self) { return self.idle().task(); });
  bound.def_property_readonly("episode_return",
                              [](const PythonEnv& self) { return self.idle().episode_return(); });
  bound.def_property_readonly(
      "episode_start_time", [](const PythonEnv& self) { return self.idle().episode_start_time(); });
  bound.def("__copy__", [](const PythonEnv& self) { return PythonEnv(self); });
  bound.def(
      "__deepcopy__", [](const PythonEnv& self, const py::object&) { return PythonEnv(self); },
      py::arg("memo"));
  bound.def("__eq__", [](const PythonEnv& self, const py::object& other) {
    return py::isinstance<PythonEnv>(other) && self.idle() == other.cast<const PythonEnv&>().idle();
  });
  bound.attr("__hash__") = py::none();
  bound.def(py::pickle(
      [](const PythonEnv& self) {
        const Observer& observer = self.observer();
        return py::make_tuple(std::const_pointer_cast<EnvModel>(observer.shared_model()),
                              observer.options().flat, observer.options().share_static,
                              self.serialize());
      },
      [](const py::tuple& state) {
        if (state.size() != 4) throw UsageError("the state of an Env has four parts");
        auto env =
            std::make_unique<PythonEnv>(state[0].cast<std::shared_ptr<EnvModel>>(),
                                        ObservationOptions{.flat = state[1].cast<bool>(),
                                                           .share_static = state[2].cast<bool>()});
        env->restore(state[3].cast<py::bytes>());
        return env;
      }));
}

}  // namespace

void bind_environments(py::module_& module) {
  register_exceptions();
  bind_model(module);
  bind_env_class(module);
}

}  // namespace doppler::python
