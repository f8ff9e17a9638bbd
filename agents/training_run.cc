#include "agents/training_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

std::vector<TrainedTask> trained_on(const TrainingTasks& tasks) {
  std::vector<TrainedTask> result;
  for (const auto& model : tasks) {
    result.push_back({model->task().name, model->task().hash(), model->task().split});
  }
  return result;
}

void check_same_tasks(const TrainingConfig& started, const TrainingTasks& tasks) {
  if (tasks.size() != started.trained_on.size()) {
    throw UsageError("the run trains on " + std::to_string(started.trained_on.size()) +
                     " tasks, not on " + std::to_string(tasks.size()));
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i]->task().hash() == started.trained_on[i].hash) continue;
    throw UsageError("task '" + tasks[i]->task().name +
                     "' is not what the run was started with ('" + started.trained_on[i].name +
                     "'): its graph, cluster, costs or settings are different");
  }
}

// Trainers know contents and no files: a refusal gets the name of where the content came from.
template <class Action>
void named(const std::string& file, const Action& action) {
  try {
    action();
  } catch (const ParseError& error) {
    throw ParseError((file.empty() ? "" : file + ": ") + error.what());
  }
}

// The seconds are the run's, over all of its sessions: a trainer that ended by itself would be
// over.
TrainOptions without_seconds(TrainOptions options) {
  options.check();
  options.max_seconds = std::numeric_limits<double>::infinity();
  return options;
}

// A policy file that the agent's parameters name is the run's from now on, as one of init_from: it
// may be moved.
void take_policy(TrainingConfig& config) {
  constexpr const char* kPolicy = "policy";
  NamedCall call = NamedCall::parse(config.agent);
  const auto named =
      std::ranges::find(call.named, kPolicy, &std::pair<std::string, std::string>::first);
  if (named == call.named.end() || named->second.empty()) return;
  if (!config.init_from.empty() || !config.options.initial_policy.empty()) {
    throw UsageError("the agent starts from policy=" + named->second + " and the run from " +
                     (config.init_from.empty() ? "another policy" : config.init_from) +
                     "; give one of the two");
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(named->second, ignored)) return;  // one of the package
  config.options.initial_policy = read_file(named->second);
  config.init_from = std::filesystem::absolute(named->second).lexically_normal().string();
  call.named.erase(named);
  config.agent = Parameters(agents().at(call.name).parameters, call).canonical();
}

// null for what is not finite.
Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

TrainingRun::TrainingRun(TrainingFolder folder, std::unique_ptr<Trainer> trainer,
                         TrainingTasks tasks)
    : folder_(std::move(folder)), trainer_(std::move(trainer)), tasks_(std::move(tasks)) {}

TrainingRun TrainingRun::start(const std::string& folder, TrainingConfig config,
                               const TrainingTasks& tasks) {
  TrainingFolder::check_can_create(folder);
  config.agent = canonical_agent(config.agent);
  take_policy(config);
  config.trained_on = trained_on(tasks);
  const std::string& policy = config.options.initial_policy;
  config.initial_policy_hash = policy.empty() ? 0 : Hasher().add(policy).digest();
  std::unique_ptr<Trainer> trainer;
  named(config.init_from, [&] {
    trainer =
        make_trainer(config.agent, {.tasks = tasks, .options = without_seconds(config.options)});
  });
  TrainingRun run(TrainingFolder::create(folder, config), std::move(trainer), tasks);
  run.folder_.cut_metrics(0);
  return run;
}

TrainingRun TrainingRun::resume(TrainingFolder folder, TrainingConfig wanted,
                                const TrainingTasks& tasks) {
  const TrainingConfig started = folder.config();
  wanted.agent = canonical_agent(wanted.agent);
  check_same_run(started, wanted);
  check_same_tasks(started, tasks);
  wanted.code_version = started.code_version;
  wanted.trained_on = started.trained_on;
  wanted.initial_policy_hash = started.initial_policy_hash;
  wanted.allow_test_tasks = started.allow_test_tasks;
  wanted.options.initial_policy = started.options.initial_policy;
  const std::optional<Checkpoint> checkpoint = folder.read_checkpoint();
  if (!checkpoint && folder.has_policy()) {
    throw ParseError(folder.path() +
                     " has a policy and no checkpoint.bin to go on from: it was removed; bring it "
                     "back, or start another run with this folder as init_from");
  }
  auto trainer =
      make_trainer(wanted.agent, {.tasks = tasks, .options = without_seconds(wanted.options)});
  if (checkpoint) {
    named(folder.path(), [&] { trainer->restore(checkpoint->state); });
  }
  folder.cut_metrics(checkpoint ? checkpoint->metrics_bytes : 0);
  if (to_json(wanted) != to_json(started)) folder.set_config(wanted);
  TrainingRun run(std::move(folder), std::move(trainer), tasks);
  if (checkpoint) {
    run.over_ = run.saved_over_ = checkpoint->over;
    run.seconds_ = checkpoint->seconds;
    run.first_update_ = run.saved_updates_ = run.progress().updates;
    run.has_checkpoint_ = true;
    // It was killed while it was saved first.
    if (!run.folder_.has_policy()) run.write_results();
  }
  return run;
}

double TrainingRun::seconds() const {
  if (over_) return seconds_;
  return seconds_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

TrainingRun::State TrainingRun::state() const {
  if (over_) return State::over;
  return seconds() >= config().options.max_seconds ? State::out_of_seconds : State::running;
}

bool TrainingRun::is_saved() const {
  return has_checkpoint_ && saved_updates_ == progress().updates && saved_over_ == over_;
}

bool TrainingRun::checkpoint_is_due() const {
  const CheckpointInterval& every = config().checkpoint_every;
  if (every.updates > 0) return progress().updates - saved_updates_ >= every.updates;
  return std::chrono::duration<double>(Clock::now() - saved_).count() >= every.seconds;
}

bool TrainingRun::update() {
  bool was_made = false;
  if (state() == State::running) {
    try {
      was_made = trainer_->update();
    } catch (const RunError& error) {
      throw RunError(
          "training stopped at update " + std::to_string(progress().updates + 1) + ": " +
          error.what() + "; " +
          (has_checkpoint_ ? folder_.path() + " keeps the checkpoint and the policy of update " +
                                 std::to_string(saved_updates_)
                           : folder_.path() + " has no checkpoint yet") +
          ". To continue would lead there again: start another run with other parameters, or from "
          "this policy by init_from");
    }
    if (!was_made) {
      seconds_ = seconds();
      over_ = true;
    }
  }
  if (was_made) {
    add_metrics();
    if (checkpoint_is_due()) checkpoint();
  } else if (!is_saved()) {
    checkpoint();
  }
  return was_made;
}

void TrainingRun::add_metrics() {
  const TrainProgress progress = trainer_->progress();
  Json values = Json::object();
  for (const auto& [name, value] : progress.values) values[name] = number_or_null(value);
  const Json line = {{"update", progress.updates},
                     {"stage", progress.stage},
                     {"episodes", progress.episodes},
                     {"evaluations", progress.evaluations},
                     {"executions", progress.executions},
                     {"share", progress.share},
                     {"best_makespan", number_or_null(progress.best_makespan)},
                     {"seconds", seconds()},
                     {"values", std::move(values)}};
  folder_.add_metrics(line.dump() + "\n");
}

void TrainingRun::write_results() const {
  std::vector<Assignment> assignments;
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    assignments.push_back(trainer_->best(task).assignment);
  }
  folder_.write_policy(trainer_->policy());
  folder_.write_assignments(assignments);
}

// The checkpoint comes last, so that what it says is there, but for the first: where there is a
// policy there has been a checkpoint.
void TrainingRun::checkpoint() {
  if (has_checkpoint_) write_results();
  folder_.write_checkpoint({.seconds = seconds(), .over = over_, .state = trainer_->state()});
  if (!has_checkpoint_) write_results();
  saved_ = Clock::now();
  saved_updates_ = progress().updates;
  saved_over_ = over_;
  has_checkpoint_ = true;
}

std::vector<TrainedResult> TrainingRun::results() const {
  std::vector<TrainedResult> results;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i]->task();
    Decision decision = trainer_->best(i);
    decision.check(task);
    const double makespan = task.simulator().makespan(decision.assignment.devices);
    if (decision.makespan && *decision.makespan != makespan) {
      throw RunError("the trainer claims a makespan of " + std::to_string(*decision.makespan) +
                     " s on task '" + task.name + "', the simulator gives " +
                     std::to_string(makespan) + " s");
    }
    results.push_back({.task = task.name,
                       .assignment = std::move(decision.assignment),
                       .makespan = makespan,
                       .lower_bound = task.lower_bound()});
  }
  return results;
}

}  // namespace doppler
