// Training runs: what doppler_gym.train() drives.
#include "agents/training_run.h"

#include <pybind11/stl.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/demonstrations.h"
#include "datasets/tasks.h"
#include "graphs/error.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

constexpr std::int64_t kMostThreads = 1024;

// A run between whose updates Python code runs. Closed once Python lets go of the folder.
class SharedRun {
 public:
  explicit SharedRun(TrainingRun run) : run_(std::make_unique<TrainingRun>(std::move(run))) {}

  // Without the interpreter's lock.
  template <class Action>
  auto with_run(const Action& action) {
    const py::gil_scoped_release unlocked;
    const std::scoped_lock lock(mutex_);
    if (!run_) throw UsageError("this training run is closed");
    return action(*run_);
  }

  bool update() {
    return with_run([&](TrainingRun& run) {
      between_updates_ = false;
      const bool was_made = run.update();
      between_updates_ = true;
      return was_made;
    });
  }
  // Whether the trainer is in a state that may be saved: no update failed or was broken off.
  [[nodiscard]] bool between_updates() const { return between_updates_; }

  void close() {
    const py::gil_scoped_release unlocked;
    const std::scoped_lock lock(mutex_);
    run_.reset();
  }

 private:
  std::mutex mutex_;  // of the run
  std::unique_ptr<TrainingRun> run_;
  bool between_updates_ = true;
};

using Setter = std::function<void(TrainingConfig&, py::handle)>;

std::vector<int> stages_of(py::handle value) {
  std::vector<int> stages;
  if (!py::isinstance<py::sequence>(value) || py::isinstance<py::str>(value)) {
    throw UsageError("stages: expected a list of whole numbers, got " + description_of(value));
  }
  for (const py::handle stage : value) {
    stages.push_back(static_cast<int>(integer_of(stage, "stages", 1, 3)));
  }
  return stages;
}

CheckpointInterval interval_of(py::handle value) {
  try {
    if (!py::isinstance<py::str>(value)) {
      return {.seconds = 0, .updates = integer_of(value, "checkpoint_every", 1)};
    }
    return CheckpointInterval::parse(text_of(value, "checkpoint_every"));
  } catch (const UsageError& error) {
    const std::string message = error.what();
    throw UsageError(message.starts_with("checkpoint_every") ? message
                                                             : "checkpoint_every: " + message);
  }
}

const std::map<std::string, Setter>& setters() {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  static const std::map<std::string, Setter> all = {
      {"agent", [](TrainingConfig& c, py::handle v) { c.agent = text_of(v, "agent"); }},
      {"stages", [](TrainingConfig& c, py::handle v) { c.options.stages = stages_of(v); }},
      {"evaluations",
       [](TrainingConfig& c, py::handle v) {
         c.options.max_evaluations = integer_of(v, "evaluations", 0);
       }},
      {"engine", [](TrainingConfig& c, py::handle v) { c.options.engine = text_of(v, "engine"); }},
      {"executions",
       [](TrainingConfig& c, py::handle v) {
         c.options.max_executions = integer_of(v, "executions", 1);
       }},
      {"regret",
       [](TrainingConfig& c, py::handle v) { c.options.max_regret = number_of(v, "regret"); }},
      {"seconds",
       [](TrainingConfig& c, py::handle v) { c.options.max_seconds = number_of(v, "seconds"); }},
      {"seed",
       [](TrainingConfig& c, py::handle v) {
         c.options.seed = static_cast<std::uint64_t>(integer_of(v, "seed", 0, kLargest));
       }},
      {"threads",
       [](TrainingConfig& c, py::handle v) {
         c.options.n_threads = static_cast<int>(integer_of(v, "threads", 1, kMostThreads));
       }},
      {"device", [](TrainingConfig& c, py::handle v) { c.options.device = text_of(v, "device"); }},
      {"init_from",
       [](TrainingConfig& c, py::handle v) {
         c.init_from = std::filesystem::absolute(path_of(v)).lexically_normal().string();
       }},
      {"dataset",
       [](TrainingConfig& c, py::handle v) {
         c.dataset = std::filesystem::absolute(path_of(v)).lexically_normal().string();
       }},
      {"checkpoint_every",
       [](TrainingConfig& c, py::handle v) { c.checkpoint_every = interval_of(v); }},
      {"allow_test_tasks",
       [](TrainingConfig& c, py::handle v) {
         c.allow_test_tasks = boolean_of(v, "allow_test_tasks");
       }},
  };
  return all;
}

// None stands for what `config` says.
TrainingConfig with_options(TrainingConfig config, const py::dict& options) {
  for (const auto& [key, value] : options) {
    if (!value.is_none()) setters().at(text_of(key, "option"))(config, value);
  }
  return config;
}

// A task by name gets the run's seed, as those of the command do; another stays as it is.
std::vector<Task> tasks_of(const py::list& given, std::uint64_t seed) {
  std::vector<Task> tasks;
  for (const py::handle item : given) {
    if (py::isinstance<py::str>(item)) {
      tasks.push_back(make_task(text_of(item, "task")));
      tasks.back().options.seed = seed;
    } else if (py::isinstance<Task>(item)) {
      tasks.push_back(item.cast<const Task&>());
    } else {
      throw UsageError("task: expected a Task or its name, got " + description_of(item));
    }
  }
  return tasks;
}

// The names by which the command makes the same tasks; nothing if it cannot.
std::vector<std::string> spellings_of(const std::vector<Task>& tasks, std::uint64_t seed) {
  std::vector<std::string> spellings;
  for (const Task& task : tasks) {
    try {
      Task named = make_task(task.name);
      named.options.seed = seed;
      if (named.hash() != task.hash()) return {};
    } catch (const Error&) {
      return {};
    }
    spellings.push_back(task.name);
  }
  return spellings;
}

TrainingTasks models_of(std::vector<Task> tasks) {
  TrainingTasks models;
  for (Task& task : tasks) {
    models.push_back(std::make_shared<const PlacementModel>(std::move(task)));
  }
  return models;
}

std::unique_ptr<SharedRun> start_training(const py::object& folder, const py::list& tasks,
                                          const py::dict& options) {
  const std::string path = path_of(folder);
  TrainingFolder::check_can_create(path);
  TrainingConfig config = with_options({}, options);
  config.code_version = DOPPLER_VERSION;
  std::vector<Task> made = tasks_of(tasks, config.options.seed);
  config.tasks = spellings_of(made, config.options.seed);
  if (!config.allow_test_tasks) {
    try {
      check_training_tasks(made);
    } catch (const UsageError& error) {
      throw UsageError(std::string(error.what()) + ", or give allow_test_tasks=True");
    }
  }
  if (!config.init_from.empty()) config.options.initial_policy = read_policy(config.init_from);
  const py::gil_scoped_release unlocked;
  TrainingTasks models = models_of(std::move(made));
  cli::open_dataset(config, models);
  return std::make_unique<SharedRun>(
      TrainingRun::start(path, std::move(config), std::move(models)));
}

std::unique_ptr<SharedRun> resume_training(const py::object& path, const py::list& tasks,
                                           const py::dict& options) {
  TrainingFolder folder = TrainingFolder::open(path_of(path));
  TrainingConfig config = with_options(folder.config(), options);
  std::vector<Task> made;
  if (!tasks.empty()) {
    made = tasks_of(tasks, config.options.seed);
  } else {
    if (config.tasks.empty() || !config.settings.empty()) {
      throw UsageError(folder.path() + " trains on " +
                       (config.tasks.empty() ? "tasks that have no name here"
                                             : "tasks with settings of the command's") +
                       "; give them again by task=...");
    }
    made = tasks_of(py::cast(config.tasks), config.options.seed);
  }
  const py::gil_scoped_release unlocked;
  TrainingTasks models = models_of(std::move(made));
  cli::open_dataset(config, models);
  return std::make_unique<SharedRun>(
      TrainingRun::resume(std::move(folder), std::move(config), std::move(models)));
}

py::dict progress_of(SharedRun& self) {
  const auto [progress, seconds] =
      self.with_run([](TrainingRun& run) { return std::make_pair(run.progress(), run.seconds()); });
  py::dict values;
  for (const auto& [name, value] : progress.values) values[to_python(name)] = value;
  using py::literals::operator""_a;
  return py::dict("stage"_a = progress.stage, "updates"_a = progress.updates,
                  "episodes"_a = progress.episodes, "evaluations"_a = progress.evaluations,
                  "executions"_a = progress.executions, "share"_a = progress.share,
                  "best_makespan"_a = progress.best_makespan, "seconds"_a = seconds,
                  "values"_a = values);
}

py::list results_of(SharedRun& self) {
  struct Result {
    TrainedResult trained;
    std::string path;
  };
  const std::vector<Result> results = self.with_run([](TrainingRun& run) {
    std::vector<Result> all;
    for (TrainedResult& trained : run.results()) {
      all.push_back({std::move(trained), run.folder().assignment_path(all.size())});
    }
    return all;
  });
  py::list list;
  for (const Result& result : results) {
    const auto& devices = result.trained.assignment.devices;
    list.append(py::make_tuple(
        to_python(result.trained.task),
        array_of<std::int32_t>(devices.size(), [&](std::size_t v) { return devices[v].value; }),
        result.trained.makespan, result.trained.lower_bound, to_python(result.path)));
  }
  return list;
}

const char* state_of(SharedRun& self) {
  return self.with_run([](TrainingRun& run) {
    switch (run.state()) {
      case TrainingRun::State::running:
        return "running";
      case TrainingRun::State::over:
        return "over";
      case TrainingRun::State::out_of_seconds:
        return "out_of_seconds";
    }
    return "running";
  });
}

}  // namespace

void bind_training(py::module_& module) {
  py::class_<SharedRun>(module, "TrainingRun", "See doppler_gym.train().")
      .def("update", &SharedRun::update)
      .def("checkpoint",
           [](SharedRun& self) { self.with_run([](TrainingRun& run) { run.checkpoint(); }); })
      .def("progress", &progress_of)
      .def("results", &results_of)
      .def("close", &SharedRun::close)
      .def_property_readonly("state", &state_of)
      .def_property_readonly("between_updates", &SharedRun::between_updates);
  module.def("start_training", &start_training, py::arg("folder"), py::arg("tasks"),
             py::arg("options"));
  module.def("resume_training", &resume_training, py::arg("folder"), py::arg("tasks"),
             py::arg("options"));
}

}  // namespace doppler::python
