// What a training run promises, for the agents that learn.
#include <filesystem>

#include "agents/training_run.h"
#include "datasets/tasks.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

TrainingTasks tasks_of(const std::string& task) {
  return {std::make_shared<const PlacementModel>(make_task(task))};
}

TrainingConfig config_of(const std::string& agent, TrainOptions options) {
  TrainingConfig config;
  config.agent = agent;
  config.options = std::move(options);
  return config;
}

TrainingRun resumed(const std::string& path, const TrainingTasks& tasks, double max_seconds) {
  TrainingFolder folder = TrainingFolder::open(path);
  TrainingConfig config = folder.config();
  config.options.max_seconds = max_seconds;
  return TrainingRun::resume(std::move(folder), config, tasks);
}

constexpr const char* kSmall = "chainmm(n=256)@cpu2";

TEST_CASE("A run whose seconds are used is not over, and goes on with more") {
  const testing::TemporaryFolder folder;
  const TrainingTasks tasks = tasks_of(kSmall);
  for (const char* agent : {"doppler", "doppler-sel", "doppler(preset=paper)", "gdp", "joint",
                            "placeto", "placeto(preset=one-pass)"}) {
    CAPTURE(agent);
    const std::string path = folder.path(agent);
    std::int64_t n_before = 0;
    {
      TrainingRun run = TrainingRun::start(
          path, config_of(agent, {.max_evaluations = 100'000'000, .max_seconds = 0.1}), tasks);
      while (run.update()) {
      }
      CHECK(run.state() == TrainingRun::State::out_of_seconds);
      n_before = run.progress().updates;
      CHECK(run.progress().share < 1);
    }
    TrainingRun run = resumed(path, tasks, 1000);
    CHECK(run.state() == TrainingRun::State::running);
    CHECK(run.update());
    CHECK(run.progress().updates == n_before + 1);
  }
}

TEST_CASE("A policy that parameters name is the run's own") {
  const testing::TemporaryFolder folder;
  const TrainingTasks tasks = tasks_of(kSmall);
  for (const std::string agent : {"doppler", "gdp"}) {
    CAPTURE(agent);
    const std::string first = folder.path(agent + "-first");
    {
      TrainingRun run =
          TrainingRun::start(first, config_of(agent, {.stages = {2}, .max_evaluations = 8}), tasks);
      while (run.update()) {
      }
    }
    const std::string policy = folder.path(agent + ".json");
    fs::rename(first + "/policy.json", policy);
    const std::string spelling = agent + "(policy=" + policy + ")";
    const std::string second = folder.path(agent + "-second");
    TrainingConfig config = config_of(spelling, {.stages = {2}, .max_evaluations = 12});
    {
      TrainingRun run = TrainingRun::start(second, config, tasks);
      CHECK(run.config().agent == agent);
      CHECK(run.config().init_from == policy);
      CHECK(run.config().options.initial_policy == read_file(policy));
      run.update();
      run.checkpoint();
    }
    config.init_from = policy;
    config.options.initial_policy = read_file(policy);
    CHECK_THROWS_WITH(TrainingRun::start(folder.path("both"), config, tasks),
                      Catch::Contains("one of the two"));
    fs::remove(policy);
    TrainingRun run = resumed(second, tasks, 1000);
    while (run.update()) {
    }
    CHECK(run.state() == TrainingRun::State::over);
  }
}

TEST_CASE("What a run cannot do is told before there is a folder") {
  const testing::TemporaryFolder folder;
  const TrainingTasks tasks = tasks_of(kSmall);
  const auto refused = [&](const std::string& agent, const TrainOptions& options,
                           const std::string& word) {
    CAPTURE(agent, word);
    CHECK_THROWS_WITH(TrainingRun::start(folder.path("run"), config_of(agent, options), tasks),
                      Catch::Contains(word));
    CHECK(folder.names().empty());
  };
  const std::string engine = "simulator(slow_device=9)";
  for (const char* agent : {"doppler", "gdp", "joint", "doppler(preset=paper)"}) {
    refused(agent, {.stages = {3}, .max_evaluations = 9, .engine = engine, .max_executions = 4},
            "slow_device");
  }
  refused("placeto", {.stages = {2}, .max_evaluations = 20}, "an episode takes 21 evaluations");
  refused("gdp",
          {.stages = {1, 2, 3}, .max_evaluations = 9, .engine = "simulator", .max_executions = 1},
          "stage 3 takes 2 executions");
}

}  // namespace
}  // namespace doppler
