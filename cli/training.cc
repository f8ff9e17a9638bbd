#include "cli/training.h"

#include <filesystem>
#include <utility>

#include "cli/settings.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// A cluster's name, or its file.
std::string absolute_cluster(const std::string& cluster) {
  return cluster.ends_with(".json") ? absolute(cluster) : cluster;
}

std::vector<int> stages_of(const std::vector<std::string>& texts) {
  std::vector<int> stages;
  for (const std::string& text : texts) {
    std::int64_t stage = 0;
    into(stage, 1, 3)("--stages", {text});
    stages.push_back(static_cast<int>(stage));
  }
  return stages;
}

CheckpointInterval interval_of(const std::string& text) {
  try {
    return CheckpointInterval::parse(text);
  } catch (const UsageError& error) {
    throw UsageError(std::string("--checkpoint-every: ") + error.what());
  }
}

}  // namespace

void add_training_options(Command& command, TrainingOptions& options) {
  command.option({"--agent", "NAME", "Who learns, with parameters where wanted"},
                 into(options.agent));
  command.option({"--stages", "1,2", "1: imitation, 2: simulator, 3: real engine. Default 1,2"},
                 into(options.stages));
  command.option({"--evaluations", "N",
                  "The most runs of the simulator, all tasks and stages together; 0: as many as "
                  "the agent's parameters say. Default 10000"},
                 into(options.evaluations, 0));
  command.option({"--engine", "NAME",
                  "Stage 3: the engine that is learnt on, with parameters: cpu, cuda, "
                  "'simulator(bandwidth=0.25,noise=0.1)'. Default cpu"},
                 into(options.engine));
  command.option({"--executions", "N", "Stage 3: the most runs of that engine. Default 500"},
                 into(options.executions, 1));
  command.option({"--regret", "SHARE",
                  "Stage 3: what exploring may cost in all, as a share of the time of --executions "
                  "runs of the first assignment. Default 0.1"},
                 into(options.regret, 0.0));
  command.option({"--seconds", "S", "The most seconds, of all sessions. Default: no limit"},
                 into(options.seconds, 0.0));
  command.option({"--seed", "N", "Of all luck. Default 0"}, into(options.seed, 0));
  command.option({"--threads", "N", "Of rollouts and evaluations. Default 1"},
                 into(options.threads, 1, 1024));
  command.option({"--device", "NAME", "Where gradients are computed: cpu or cuda. Default cpu"},
                 into(options.device));
  command.option({"--init-from", "FILE",
                  "A policy file, or the folder of a run, to start from instead of from nothing"},
                 into(options.init_from));
  command.option({"--dataset", "DIR",
                  "Stage 1 imitates this recorded data set instead of the agent's own teacher"},
                 into(options.dataset));
  command.option({"--checkpoint-every", "N",
                  "Save after so many seconds, as in 60s, or updates, as in 100. Default 30s"},
                 into(options.checkpoint_every));
  command.group("Problem");
  command.option({"--task,--tasks", "A,B",
                  "A registered task or any workload@cluster, or several to learn from in turns"},
                 into(options.tasks));
  command.option({"--graph", "FILE", "A graph file of any readable format, instead of a task"},
                 into(options.graph));
  command.option(
      {"--cluster", "NAME",
       "With --graph: a preset with parameters, 'uniform(4)', or a cluster file (.json)"},
      into(options.cluster));
  command.flag("--allow-test-tasks",
               "Train also on tasks of the test split, which generalisation is judged on; the "
               "configuration keeps that it was so",
               options.allow_test_tasks);
  add_setting_options(command, options.settings);
}

TrainingConfig with_options(TrainingConfig config, const TrainingOptions& options) {
  if (!options.tasks.empty() && options.graph) {
    throw UsageError("--task and --graph exclude each other; give one");
  }
  if (!options.tasks.empty() && options.cluster) {
    throw UsageError("--cluster goes with --graph; a task names its own: workload@" +
                     *options.cluster);
  }
  TrainOptions& train = config.options;
  if (!options.tasks.empty()) {
    config.tasks = options.tasks;
    config.graph.clear();
    config.cluster.clear();
  }
  if (options.graph) {
    config.tasks.clear();
    config.graph = *options.graph;
  }
  if (options.cluster) config.cluster = *options.cluster;
  if (config.graph == "-") {
    throw UsageError(
        "--graph - cannot be trained on, for a run that goes on reads the graph "
        "again; name a file");
  }
  if (!config.graph.empty()) config.graph = absolute(config.graph);
  config.cluster = absolute_cluster(config.cluster);
  if (options.agent) config.agent = *options.agent;
  if (!options.stages.empty()) train.stages = stages_of(options.stages);
  if (options.evaluations) train.max_evaluations = *options.evaluations;
  if (options.engine) train.engine = *options.engine;
  if (options.executions) train.max_executions = *options.executions;
  if (options.regret) train.max_regret = *options.regret;
  if (options.seconds) train.max_seconds = *options.seconds;
  if (options.seed) train.seed = static_cast<std::uint64_t>(*options.seed);
  if (options.threads) train.n_threads = static_cast<int>(*options.threads);
  if (options.device) train.device = *options.device;
  if (options.init_from) config.init_from = *options.init_from;
  if (!config.init_from.empty()) config.init_from = absolute(config.init_from);
  if (options.dataset) config.dataset = absolute(*options.dataset);
  if (options.checkpoint_every) config.checkpoint_every = interval_of(*options.checkpoint_every);
  if (options.allow_test_tasks) config.allow_test_tasks = true;
  put_settings(options.settings, config.settings);
  return config;
}

std::vector<Task> make_training_tasks(const TrainingConfig& config) {
  const SettingOptions settings = settings_of(config.settings);
  if (!config.tasks.empty() && !config.graph.empty()) {
    throw UsageError("the configuration names tasks and a graph; keep one of them");
  }
  std::vector<Task> tasks;
  for (const std::string& task : config.tasks) {
    tasks.push_back(make_problem_of_task(task, settings));
  }
  if (!config.graph.empty()) {
    if (config.cluster.empty()) {
      throw UsageError("--graph needs --cluster, such as --cluster 'uniform(4)' or p100x4");
    }
    tasks.push_back(make_problem_of_graph(config.graph, config.cluster, settings));
  }
  if (tasks.empty()) {
    throw UsageError("no problem; give --task NAME, or --graph FILE and --cluster NAME");
  }
  for (Task& task : tasks) task.options.seed = config.options.seed;
  return tasks;
}

}  // namespace doppler::cli
