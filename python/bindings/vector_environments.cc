// VectorEnv.
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <utility>

#include "datasets/trajectories/env_recording.h"
#include "env/vector_env.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/observations.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// A VectorEnv and what makes its observations.
class PythonVectorEnv {
 public:
  PythonVectorEnv(const std::shared_ptr<const EnvModel>& model, std::size_t n_envs,
                  VectorEnvOptions options, ObservationOptions observation)
      : envs_(model, n_envs, options),
        observer_(model, observation, n_envs),
        final_observer_(model, {.flat = observation.flat}),
        stepped_tasks_(n_envs, 0) {}

  // `seeds`: None or [n]; `mask`: None or bool [n].
  void reset(const py::object& seeds, const py::object& mask) {
    std::vector<std::uint64_t> numbers;
    if (!seeds.is_none()) {
      for (const py::handle seed : seeds) numbers.push_back(seed_of(seed));
    }
    std::vector<std::uint8_t> chosen;
    if (!mask.is_none()) {
      for (const py::handle one : mask) chosen.push_back(boolean_of(one, "mask") ? 1 : 0);
    }
    working([&] {
      envs_.reset(numbers, chosen);
      if (recorder_) recorder_->began(numbers, chosen);
    });
  }

  void step(const py::object& actions) {
    const auto numbers = actions_of(actions, envs_.model(), envs_.size());
    working([&] {
      if (envs_.model().tasks().size() > 1) {
        for (std::size_t i = 0; i < envs_.size(); ++i) {
          stepped_tasks_[i] = envs_.env(i).task_index();
        }
      }
      const std::span all(numbers.data(), static_cast<std::size_t>(numbers.size()));
      envs_.step(all);
      if (recorder_) recorder_->stepped(all);
    });
  }
  // From the next reset of all on, every episode goes there.
  void record(std::shared_ptr<TrajectoryRecorder> recording, bool full, bool timeline) {
    check_idle();
    const auto plan = std::make_shared<const EnvRecordingPlan>(
        observer_.shared_model(), EnvRecordingOptions{.full = full, .timeline = timeline});
    recorder_ = std::make_unique<VectorEnvRecorder>(plan, *recording, envs_);
    recording_ = std::move(recording);
  }

  // Of all environments: [n, ...].
  [[nodiscard]] py::object observation() const {
    check_idle();
    return observer_.observe([this](std::size_t i) { return envs_.observation(i); },
                             envs_.static_version());
  }
  [[nodiscard]] py::object action_mask(const py::object& observation) const {
    check_idle();
    return observer_.mask_of(observation, envs_.observation(mask_index()));
  }
  [[nodiscard]] py::object action_masks() const {
    check_idle();
    const auto mask = envs_.observation(mask_index());
    const py::ssize_t shape[] = {static_cast<py::ssize_t>(envs_.size()),
                                 static_cast<py::ssize_t>(mask.size() / envs_.size())};
    py::object array = new_array(py::dtype::of<bool>(), shape);
    std::memcpy(bytes_of(array), mask.data(), mask.size());
    return array;
  }
  // `same_step`: of environment i, in the form of a single one.
  [[nodiscard]] py::object final_observation(std::size_t i) const {
    check_index(i);
    check_final();
    const auto& arrays = envs_.spec().observations;
    return final_observer_.observe(
        [&](std::size_t a) -> std::span<const std::byte> {
          // Those that are shown may be of another task already.
          if (arrays[a].is_static) {
            return envs_.model().tasks()[stepped_tasks_[i]].static_arrays[a];
          }
          const std::size_t size = arrays[a].n_bytes();
          return envs_.final_observation(a).subspan(i * size, size);
        },
        0);
  }
  [[nodiscard]] py::object final_mask(std::size_t i) const {
    check_index(i);
    check_final();
    const auto all = envs_.final_observation(mask_index());
    const std::size_t size = all.size() / envs_.size();
    return new_vector(std::span(reinterpret_cast<const std::int8_t*>(all.data()) + i * size, size));
  }
  [[nodiscard]] py::tuple schedule(std::size_t i) const {
    check_index(i);
    return schedule_of(envs_.env(i));
  }

  template <class T, class U = T>
  [[nodiscard]] py::object vector(std::span<const T> (VectorEnv::*field)() const) const {
    check_idle();
    const auto values = (envs_.*field)();
    return new_vector(std::span(reinterpret_cast<const U*>(values.data()), values.size()));
  }
  [[nodiscard]] py::dict result(std::size_t i, bool padded) const {
    check_index(i);
    const EpisodeResult& result = envs_.result(i);
    return info_of(result, padded ? envs_.model().max_nodes() : result.assignment.size());
  }
  [[nodiscard]] py::object task_indices() const {
    check_idle();
    return array_of<std::int64_t>(envs_.size(), [&](std::size_t i) {
      return static_cast<std::int64_t>(envs_.env(i).task_index());
    });
  }
  [[nodiscard]] py::object running() const {
    check_idle();
    return array_of<bool>(envs_.size(), [&](std::size_t i) { return envs_.env(i).running(); });
  }
  [[nodiscard]] py::list serialize() const {
    check_idle();
    py::list states;
    for (const std::string& state : envs_.serialize()) states.append(py::bytes(state));
    return states;
  }
  void restore(const py::object& states) {
    std::vector<std::string> values;
    for (const py::handle state : states) {
      if (!py::isinstance<py::bytes>(state)) {
        throw UsageError("states: expected bytes, got " + description_of(state));
      }
      values.push_back(state.cast<std::string>());
    }
    working([&] { envs_.restore(values); });
  }
  [[nodiscard]] std::size_t size() const { return envs_.size(); }

 private:
  void check_idle() const {
    if (busy_) {
      throw UsageError("another thread is using this vector of environments; give each its own");
    }
  }
  void check_index(std::size_t i) const {
    check_idle();
    if (i >= envs_.size()) {
      throw UsageError("environment " + std::to_string(i) + " of " + std::to_string(envs_.size()) +
                       ", numbered from 0");
    }
  }
  void check_final() const {
    if (envs_.options().autoreset == Autoreset::same_step) return;
    throw UsageError("final observations are of autoreset mode same_step alone");
  }
  template <class Work>
  void working(const Work& work) {
    check_idle();
    struct Busy {
      bool& flag;
      explicit Busy(bool& its_flag) : flag(its_flag) { flag = true; }
      ~Busy() { flag = false; }
    } const busy(busy_);
    const py::gil_scoped_release unlocked;
    work();
  }
  [[nodiscard]] std::size_t mask_index() const { return envs_.spec().observations.size() - 1; }

  VectorEnv envs_;
  Observer observer_;
  Observer final_observer_;
  std::vector<std::size_t> stepped_tasks_;  // of each environment, before the last step
  std::shared_ptr<TrajectoryRecorder> recording_;
  std::unique_ptr<VectorEnvRecorder> recorder_;
  bool busy_ = false;
};

}  // namespace

void bind_vector_environments(py::module_& module) {
  using Envs = PythonVectorEnv;
  py::class_<Envs> bound(
      module, "VectorEnv",
      "VectorEnv(model, n_envs, *, autoreset, threads=0, flat=False, share_static=False): the "
      "environments behind AssignVectorEnv.");
  bound.def(py::init([](const std::shared_ptr<EnvModel>& model, const py::object& n_envs,
                        const py::object& autoreset, const py::object& threads,
                        const py::object& flat, const py::object& share_static) {
              const VectorEnvOptions options{
                  .autoreset = parse_autoreset(text_of(autoreset, "autoreset")),
                  .n_threads = static_cast<int>(integer_of(threads, "threads", 0, 1024))};
              return std::make_unique<Envs>(
                  model, static_cast<std::size_t>(integer_of(n_envs, "num_envs", 1, 1 << 20)),
                  options,
                  ObservationOptions{.flat = boolean_of(flat, "flat"),
                                     .share_static = boolean_of(share_static, "share_static")});
            }),
            py::arg("model").none(false), py::arg("n_envs"), py::kw_only(), py::arg("autoreset"),
            py::arg("threads") = 0, py::arg("flat") = false, py::arg("share_static") = false);
  bound.def("reset", &Envs::reset, py::arg("seeds") = py::none(), py::arg("mask") = py::none());
  bound.def("step", &Envs::step, py::arg("actions"));
  bound.def("record", &Envs::record, py::arg("recording"), py::arg("full"), py::arg("timeline"));
  bound.def("observation", &Envs::observation, "[n_envs, ...]; static arrays are read-only.");
  bound.def("action_mask", &Envs::action_mask, py::arg("observation"), "int8 [n_envs, mask_size].");
  bound.def("action_masks", &Envs::action_masks, "bool [n_envs, mask_size].");
  bound.def("schedule", &Envs::schedule, py::arg("index"));
  bound.def("final_observation", &Envs::final_observation, py::arg("index"));
  bound.def("final_mask", &Envs::final_mask, py::arg("index"));
  bound.def("rewards", [](const Envs& self) { return self.vector<double>(&VectorEnv::rewards); });
  bound.def("terminated", [](const Envs& self) {
    return self.vector<std::uint8_t, bool>(&VectorEnv::terminated);
  });
  bound.def("truncated", [](const Envs& self) {
    return self.vector<std::uint8_t, bool>(&VectorEnv::truncated);
  });
  bound.def("illegal",
            [](const Envs& self) { return self.vector<std::uint8_t, bool>(&VectorEnv::illegal); });
  bound.def("result", &Envs::result, py::arg("index"), py::arg("padded") = true);
  bound.def("task_indices", &Envs::task_indices);
  bound.def("running", &Envs::running);
  bound.def("serialize", &Envs::serialize);
  bound.def("restore", &Envs::restore, py::arg("states"));
  bound.def("__len__", &Envs::size);
}

}  // namespace doppler::python
