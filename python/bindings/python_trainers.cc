#include "python/bindings/python_trainers.h"

#include <pybind11/stl.h>

#include <array>
#include <utility>

#include "python/bindings/convert.h"
#include "python/bindings/python_calls.h"

namespace doppler::python {
namespace {

constexpr const char* kModule = "_training";

// An object with update(), progress(), best(task), policy(), state() and restore(state).
class PythonTrainer final : public Trainer {
 public:
  PythonTrainer(std::string agent, py::object trainer, const TrainProblem& problem)
      : agent_(std::move(agent)), trainer_(std::move(trainer)), tasks_(problem.tasks) {}
  PythonTrainer(const PythonTrainer&) = delete;
  PythonTrainer& operator=(const PythonTrainer&) = delete;
  ~PythonTrainer() override {
    const py::gil_scoped_acquire locked;
    trainer_ = py::object();
  }

  bool update() override {
    const py::gil_scoped_acquire locked;
    return ask("trainer_update").cast<bool>();
  }

  [[nodiscard]] TrainProgress progress() const override {
    const py::gil_scoped_acquire locked;
    const py::tuple told = ask("trainer_progress");
    const auto numbers = told[0].cast<std::array<std::int64_t, 5>>();
    TrainProgress progress{.stage = static_cast<int>(numbers[0]),
                           .updates = numbers[1],
                           .episodes = numbers[2],
                           .evaluations = numbers[3],
                           .executions = numbers[4],
                           .share = told[1].cast<double>(),
                           .best_makespan = told[2].cast<double>()};
    for (const auto& [name, value] : told[3].cast<py::dict>()) {
      progress.values.emplace_back(name.cast<std::string>(), value.cast<double>());
    }
    return progress;
  }

  [[nodiscard]] Decision best(std::size_t task) const override {
    const py::gil_scoped_acquire locked;
    const py::tuple told = ask("trainer_best", task);
    const Task& of = tasks_[task]->task();
    Decision decision{.assignment = assignment_of(told[0], of.graph, of.cluster)};
    if (!told[1].is_none()) decision.makespan = told[1].cast<double>();
    return decision;
  }

  [[nodiscard]] std::string policy() const override {
    const py::gil_scoped_acquire locked;
    return ask("trainer_policy").cast<std::string>();
  }

  [[nodiscard]] std::string state() const override {
    const py::gil_scoped_acquire locked;
    return ask("trainer_state").cast<std::string>();
  }

  void restore(std::string_view state) override {
    const py::gil_scoped_acquire locked;
    ask("trainer_restore", py::bytes(state.data(), state.size()));
  }

 private:
  template <class... Arguments>
  py::object ask(const char* function, Arguments&&... arguments) const {
    return call_python(kModule, function, agent_, trainer_, std::forward<Arguments>(arguments)...);
  }

  std::string agent_;
  py::object trainer_;
  std::vector<std::shared_ptr<const PlacementModel>> tasks_;
};

}  // namespace

std::unique_ptr<Trainer> make_python_trainer(const PythonTrainerSource& source,
                                             const TrainProblem& problem) {
  py::list tasks;
  for (const auto& model : problem.tasks) tasks.append(model->task());
  const TrainOptions& options = problem.options;
  py::object trainer =
      call_python(kModule, "make_trainer", source.agent, source.factory, source.keywords, tasks,
                  py::make_tuple(py::tuple(py::cast(options.stages)), options.seed,
                                 options.max_evaluations, options.max_seconds, options.n_threads,
                                 options.device, options.engine, options.max_executions,
                                 options.max_regret, to_python(options.initial_policy)));
  return std::make_unique<PythonTrainer>(source.agent, std::move(trainer), problem);
}

}  // namespace doppler::python
