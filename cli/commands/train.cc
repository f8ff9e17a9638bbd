// doppler-gym train: an agent learns, in a folder from which it can go on.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "agents/training_run.h"
#include "cli/commands/commands.h"
#include "cli/demonstrations.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/training.h"
#include "cli/units.h"
#include "datasets/tasks.h"
#include "graphs/error.h"
#include "graphs/file.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Train an agent, in a folder from which it can go on",
    .details = R"(--out DIR gets config.json, metrics.jsonl (a line an update), policy.json,
best_assignment.json (for several tasks best_assignments/) and checkpoint.bin. Ctrl-C ends after the
update under way with a checkpoint; --resume --out DIR goes on from the last one, on one thread to
the same result as without a break. A run that goes on may change --seconds, --threads and
--checkpoint-every. --json prints an object: state (over, out_of_seconds), updates, episodes,
evaluations, executions, seconds, policy, and for each task makespan, lower_bound and assignment file.)",
    .examples = R"(doppler-gym train --agent doppler --task llama-layer@p100x4 --out run
doppler-gym train --resume --out run
doppler-gym train --agent doppler --graph model.json --cluster p100x4 --init-from run --out tuned)"};

struct TrainCommandOptions {
  TrainingOptions training;
  std::optional<std::string> config;
  std::string out;
  bool resume = false;
  bool json = false;
};

TrainingTasks models_of(std::vector<Task> tasks) {
  TrainingTasks models;
  for (Task& task : tasks) {
    models.push_back(std::make_shared<const PlacementModel>(std::move(task)));
  }
  return models;
}

TrainingRun start_run(const TrainCommandOptions& options) {
  TrainingFolder::check_can_create(options.out);
  TrainingConfig config;
  if (options.config) config = parse_training_config(read_file(*options.config), *options.config);
  config = with_options(std::move(config), options.training);
  config.code_version = DOPPLER_VERSION;
  config.trained_on.clear();
  if (config.agent.empty()) throw UsageError("no agent; give --agent NAME");
  std::vector<Task> tasks = make_training_tasks(config);
  if (!config.allow_test_tasks) {
    try {
      check_training_tasks(tasks);
    } catch (const UsageError& error) {
      throw UsageError(std::string(error.what()) + ", or give --allow-test-tasks");
    }
  }
  if (!config.init_from.empty()) config.options.initial_policy = read_policy(config.init_from);
  TrainingTasks models = models_of(std::move(tasks));
  open_dataset(config, models);
  return TrainingRun::start(options.out, std::move(config), std::move(models));
}

TrainingRun resume_run(const TrainCommandOptions& options) {
  if (options.config) {
    throw UsageError("--config and --resume exclude each other: a run goes on by its own");
  }
  TrainingFolder folder = TrainingFolder::open(options.out);
  TrainingConfig config = with_options(folder.config(), options.training);
  if (config.tasks.empty() && config.graph.empty()) {
    throw UsageError(options.out +
                     " trains on tasks that a program made; continue it in that program");
  }
  std::vector<Task> tasks = make_training_tasks(config);
  TrainingTasks models = models_of(std::move(tasks));
  open_dataset(config, models);
  return TrainingRun::resume(std::move(folder), std::move(config), std::move(models));
}

// "1 h 05 min", "3 min 20 s", "12 s".
std::string rough_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  const auto two = [](std::int64_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  if (whole >= 3600) return std::to_string(whole / 3600) + " h " + two(whole / 60 % 60) + " min";
  if (whole >= 60) return std::to_string(whole / 60) + " min " + two(whole % 60) + " s";
  return std::to_string(whole) + " s";
}

// How far a run is, for a terminal.
class TrainingProgress {
 public:
  TrainingProgress(const TrainingRun& run, const Task& task)
      : raw_(has_raw_costs(task)), first_(run.progress()), begin_(run.seconds()) {}

  void show(const TrainingRun& run) {
    if (!line_.is_due()) return;
    const TrainProgress now = run.progress();
    const double spent = run.seconds() - begin_;
    std::string text = "stage " + std::to_string(now.stage) + "  update " +
                       std::to_string(now.updates) + "  " + std::to_string(now.evaluations) +
                       " evaluations  ";
    if (now.executions > 0) text += std::to_string(now.executions) + " executions  ";
    const auto episodes = static_cast<double>(now.episodes - first_.episodes);
    if (spent > 0)
      text += fixed(episodes / spent, episodes < 100 * spent ? 1 : 0) + " episodes/s  ";
    if (std::isfinite(now.best_makespan)) {
      text += "best " + with_unit(now.best_makespan, time_unit(now.best_makespan, raw_)) + "  ";
    }
    text += fixed(100 * now.share, 1) + " %";
    const double left = seconds_left(run, now.share, spent);
    if (std::isfinite(left)) text += "  " + rough_time(left) + " left";
    line_.show(text);
  }

 private:
  [[nodiscard]] double seconds_left(const TrainingRun& run, double share, double spent) const {
    const double limit = run.config().options.max_seconds - run.seconds();
    if (share <= first_.share) return limit;
    return std::min(limit, spent * (1 - share) / (share - first_.share));
  }

  bool raw_;
  TrainProgress first_;
  double begin_;
  ProgressLine line_;
};

std::string quoted_for_shell(const std::string& text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/@,=";
  if (text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Updates until the run ends or an interrupt comes.
void run_updates(TrainingRun& run, const Task& task) {
  const CatchInterrupt interrupt;
  TrainingProgress progress(run, task);
  while (run.update()) {
    progress.show(run);
    if (interrupt.signal() == 0) continue;
    run.checkpoint();
    throw Interrupted{interrupt.signal(), "stopped after update " +
                                              std::to_string(run.progress().updates) +
                                              "; to go on: doppler-gym train --resume --out " +
                                              quoted_for_shell(run.folder().path())};
  }
}

Json result_json(const TrainingRun& run, bool was_over) {
  const TrainProgress progress = run.progress();
  Json tasks = Json::array();
  const std::vector<TrainedResult> results = run.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    tasks.push_back({{"task", results[i].task},
                     {"makespan", results[i].makespan},
                     {"lower_bound", results[i].lower_bound},
                     {"assignment", run.folder().assignment_path(i)}});
  }
  return {{"agent", run.config().agent},
          {"state", run.state() == TrainingRun::State::over ? "over" : "out_of_seconds"},
          {"was_over", was_over},
          {"updates", progress.updates},
          {"episodes", progress.episodes},
          {"evaluations", progress.evaluations},
          {"executions", progress.executions},
          {"seconds", run.seconds()},
          {"policy", run.folder().policy_path()},
          {"tasks", std::move(tasks)}};
}

std::string result_text(const TrainingRun& run, const std::vector<bool>& raw, bool was_over) {
  const TrainProgress progress = run.progress();
  std::string text = run.config().agent;
  if (was_over) {
    text += " had finished before; nothing was left to do\n";
  } else if (run.state() == TrainingRun::State::over) {
    text += " has finished\n";
  } else {
    text += " has used its seconds; --resume with a larger --seconds goes on\n";
  }
  text +=
      "trained      " + std::to_string(progress.updates) + " updates, " +
      std::to_string(progress.episodes) + " episodes, " + std::to_string(progress.evaluations) +
      " evaluations" +
      (progress.executions > 0 ? ", " + std::to_string(progress.executions) + " executions" : "") +
      " in " + seconds_text(run.seconds()) + "\n";
  const std::vector<TrainedResult> results = run.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Unit unit = time_unit(results[i].makespan, raw[i]);
    text += results[i].task + "\n  makespan     " + with_unit(results[i].makespan, unit) +
            "\n  lower bound  " + with_unit(results[i].lower_bound, unit) + "\n  assignment   " +
            run.folder().assignment_path(i) + "\n";
  }
  return text + "policy       " + run.folder().policy_path() + "\n";
}

void train(const TrainCommandOptions& options) {
  TrainingRun run = options.resume ? resume_run(options) : start_run(options);
  const bool was_over = run.state() == TrainingRun::State::over;
  run_updates(run, run.task(0));
  std::vector<bool> raw;
  for (std::size_t i = 0; i < run.config().trained_on.size(); ++i) {
    raw.push_back(has_raw_costs(run.task(i)));
  }
  print(options.json ? json_text(result_json(run, was_over)) : result_text(run, raw, was_over));
}

}  // namespace

void add_train(Command& program) {
  Command command = program.add("train", kHelp);
  auto options = std::make_shared<TrainCommandOptions>();
  command.option({"--out", "DIR", "The run's folder: new or empty, or with --resume one of a run"},
                 into(options->out), true);
  command.flag("--resume", "Go on from the last checkpoint in --out", options->resume);
  command.option(
      {"--config", "FILE", "A configuration with the fields of config.json; options go before it"},
      into(options->config));
  command.flag("--json", "Print an object", options->json);
  add_training_options(command, options->training);
  command.run([options] { train(*options); });
}

}  // namespace doppler::cli
