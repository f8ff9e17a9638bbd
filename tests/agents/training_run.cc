#include "agents/training_run.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_learner.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

// A folder for runs of the learner of the tests.
class Folder : public testing::TemporaryFolder {
 public:
  Folder() {
    static std::once_flag once;
    std::call_once(once, testing::register_test_learner);
  }
};

std::shared_ptr<const PlacementModel> chain(int n_nodes, const std::string& name) {
  GraphBuilder builder(name);
  std::vector<double> compute;
  for (int v = 0; v < n_nodes; ++v) {
    builder.add_node({.name = std::to_string(v), .outputs = {{.bytes = 1.0 + v}}});
    if (v > 1) builder.add_edge(NodeId{v - 2}, NodeId{v});
    compute.push_back(1.0 + v % 3);
  }
  builder.set_raw_compute(compute);
  return std::make_shared<const PlacementModel>(Task{.name = name,
                                                     .graph = builder.build(),
                                                     .cluster = Cluster::uniform(3),
                                                     .cost_model = CostModel::raw()});
}

TrainingTasks one_task() { return {chain(8, "eight@uniform(3)")}; }
TrainingTasks three_tasks() {
  return {chain(8, "eight@uniform(3)"), chain(5, "a/b@uniform(3)"), chain(6, "six@uniform(3)")};
}

TrainingConfig config_of(const std::string& agent, std::int64_t evaluations = 60) {
  TrainingConfig config;
  config.agent = agent;
  config.options.seed = 5;
  config.options.max_evaluations = evaluations;
  config.checkpoint_every = {.seconds = 0, .updates = 3};
  return config;
}

void finish(TrainingRun& run) {
  while (run.update()) {
  }
}

TrainingRun resumed(const std::string& path, const TrainingTasks& tasks) {
  TrainingFolder folder = TrainingFolder::open(path);
  const TrainingConfig config = folder.config();
  return TrainingRun::resume(std::move(folder), config, tasks);
}

// What must not depend on interruptions: every file but the configuration, without seconds.
Files outcome(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), folder).string();
    std::string content = read_file(entry.path().string());
    if (name == "metrics.jsonl") {
      std::istringstream lines(content);
      content.clear();
      for (std::string line; std::getline(lines, line);) {
        nlohmann::json json = nlohmann::json::parse(line);
        json.erase("seconds");
        content += json.dump() + "\n";
      }
    }
    if (name == "checkpoint.bin") content.erase(0, content.find('\n'));
    if (name != "config.json") files[name] = content;
  }
  return files;
}

Files all_files(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = read_file(entry.path().string());
  }
  return files;
}

TEST_CASE("A run leaves a configuration, metrics, a policy and the best assignment") {
  const Folder folder;
  TrainingRun run = TrainingRun::start(folder.path("run"), config_of("test-learner"), one_task());
  CHECK(run.state() == TrainingRun::State::running);
  finish(run);
  CHECK(run.state() == TrainingRun::State::over);
  const Files files = outcome(folder.path("run"));
  CHECK(files.size() == 4);
  std::istringstream lines(files.at("metrics.jsonl"));
  std::int64_t n_lines = 0;
  double best = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) {
    const auto json = nlohmann::json::parse(line);
    CHECK(json["update"] == n_lines + 1);
    CHECK(json["episodes"] == 4 * (n_lines + 1));
    CHECK(json["values"].contains("loss"));
    if (json["best_makespan"].is_number()) best = json["best_makespan"];
  }
  CHECK(n_lines == 15);
  const std::vector<TrainedResult> results = run.results();
  REQUIRE(results.size() == 1);
  CHECK(results[0].makespan == best);
  const Assignment saved = read_assignment(run.folder().assignment_path(0));
  CHECK(saved == results[0].assignment);
  CHECK(run.task(0).simulator().makespan(saved.devices) == best);
  CHECK(run.config().trained_on[0].hash == one_task()[0]->task().hash());
}

TEST_CASE("A run that is continued after any update ends with the same bits") {
  for (const bool several : {false, true}) {
    const TrainingTasks tasks = several ? three_tasks() : one_task();
    const Folder folder;
    TrainingRun whole = TrainingRun::start(folder.path("whole"), config_of("test-learner"), tasks);
    finish(whole);
    const Files expected = outcome(folder.path("whole"));
    CHECK(expected.size() == (several ? 6 : 4));
    for (int n_updates = 0; n_updates <= 15; ++n_updates) {
      const std::string path = folder.path("cut" + std::to_string(n_updates));
      {
        TrainingRun cut = TrainingRun::start(path, config_of("test-learner"), tasks);
        for (int i = 0; i < n_updates; ++i) CHECK(cut.update());
      }  // ends here as if killed: nothing is saved in a destructor
      TrainingRun later = resumed(path, tasks);
      CHECK(later.first_update() == n_updates / 3 * 3);
      finish(later);
      CHECK(outcome(path) == expected);
    }
  }
}

TEST_CASE("A run that is over stays as it is when it is continued") {
  const Folder folder;
  const std::string path = folder.path("run");
  double seconds = 0;
  {
    TrainingRun run = TrainingRun::start(path, config_of("test-learner"), one_task());
    finish(run);
    seconds = run.seconds();
  }
  const Files before = all_files(path);
  TrainingRun again = resumed(path, one_task());
  CHECK(again.state() == TrainingRun::State::over);
  CHECK_FALSE(again.update());
  CHECK(again.seconds() == seconds);
  CHECK(all_files(path) == before);
}

TEST_CASE("A run whose seconds are used up goes on with more of them") {
  const Folder folder;
  TrainingConfig config = config_of("test-learner");
  TrainingRun whole = TrainingRun::start(folder.path("whole"), config, one_task());
  finish(whole);
  config.options.max_seconds = 0;
  const std::string path = folder.path("run");
  {
    TrainingRun run = TrainingRun::start(path, config, one_task());
    CHECK_FALSE(run.update());
    CHECK(run.state() == TrainingRun::State::out_of_seconds);
    CHECK(run.results().size() == 1);
    CHECK(fs::exists(run.folder().policy_path()));
    CHECK(fs::exists(run.folder().assignment_path(0)));
  }
  TrainingFolder opened = TrainingFolder::open(path);
  config = opened.config();
  config.options.max_seconds = 1000;
  TrainingRun run = TrainingRun::resume(std::move(opened), config, one_task());
  finish(run);
  CHECK(run.state() == TrainingRun::State::over);
  CHECK(run.config().options.max_seconds == 1000);
  CHECK(outcome(path) == outcome(folder.path("whole")));
}

TEST_CASE("A loss that is not finite ends the run and keeps the last good checkpoint") {
  const Folder folder;
  TrainingRun run =
      TrainingRun::start(folder.path("run"), config_of("test-learner(fault=nan,at=8)"), one_task());
  std::string message;
  Files at_checkpoint;
  for (int i = 0; message.empty() && i < 100; ++i) {
    try {
      run.update();
    } catch (const RunError& error) {
      message = error.what();
    }
    if (i == 5) at_checkpoint = all_files(folder.path("run"));
  }
  CHECK_THAT(message, Catch::Contains("update 8") && Catch::Contains("loss is nan") &&
                          Catch::Contains("of update 6"));
  Files after = all_files(folder.path("run"));
  const std::string metrics = folder.path("run") + "/metrics.jsonl";
  CHECK(after[metrics].starts_with(at_checkpoint[metrics]));
  after.erase(metrics);
  at_checkpoint.erase(metrics);
  CHECK(after == at_checkpoint);
}

TEST_CASE("A makespan that is not true is told") {
  const Folder folder;
  TrainingRun run =
      TrainingRun::start(folder.path("run"), config_of("test-learner(fault=lie)"), one_task());
  finish(run);
  CHECK_THROWS_WITH(run.results(), Catch::Contains("claims a makespan"));
}

TEST_CASE("A run may begin with a policy, which its folder keeps") {
  const Folder folder;
  TrainingRun first =
      TrainingRun::start(folder.path("first"), config_of("test-learner"), one_task());
  finish(first);
  TrainingConfig config = config_of("test-learner");
  config.init_from = folder.path("first");
  config.options.initial_policy = read_policy(folder.path("first"));
  CHECK(config.options.initial_policy == read_policy(first.folder().policy_path()));
  TrainingRun whole = TrainingRun::start(folder.path("whole"), config, one_task());
  finish(whole);
  CHECK(outcome(folder.path("whole")).at("policy.json") !=
        outcome(folder.path("first")).at("policy.json"));
  {
    TrainingRun cut = TrainingRun::start(folder.path("cut"), config, one_task());
    for (int i = 0; i < 7; ++i) cut.update();
  }
  fs::remove(first.folder().policy_path());
  {
    TrainingRun later = resumed(folder.path("cut"), one_task());
    finish(later);
  }
  CHECK(outcome(folder.path("cut")) == outcome(folder.path("whole")));
  CHECK_THROWS_AS(read_policy(folder.path("first")), RunError);

  config.options.initial_policy = "{\"format\": \"other\"}";
  CHECK_THROWS_WITH(TrainingRun::start(folder.path("new"), config, one_task()),
                    Catch::Contains(config.init_from));
  CHECK_FALSE(fs::exists(folder.path("new")));
  std::ofstream(folder.path("cut") + "/initial_policy.json") << "{}";
  CHECK_THROWS_AS(resumed(folder.path("cut"), one_task()), ParseError);
}

TEST_CASE("A folder that holds something else is refused and stays as it is") {
  const Folder folder;
  const auto start = [&](const std::string& path) {
    TrainingRun::start(path, config_of("test-learner"), one_task());
  };
  fs::create_directory(folder.path("notes"));
  std::ofstream(folder.path("notes/notes.txt")) << "mine";
  CHECK_THROWS_WITH(start(folder.path("notes")), Catch::Contains("notes.txt"));
  CHECK(all_files(folder.path("notes")).size() == 1);
  std::ofstream(folder.path("file")) << "mine";
  CHECK_THROWS_AS(start(folder.path("file")), UsageError);
  CHECK_THROWS_WITH(start(folder.path("none/run")), Catch::Contains("none"));
  CHECK_THROWS_AS(TrainingFolder::open(folder.path("none")), UsageError);
  CHECK_THROWS_AS(TrainingFolder::open(folder.path("notes")), UsageError);

  fs::create_directory(folder.path("run"));
  start(folder.path("run"));
  const Files before = all_files(folder.path("run"));
  CHECK_THROWS_WITH(start(folder.path("run")), Catch::Contains("--resume"));
  CHECK(all_files(folder.path("run")) == before);

  // An agent that refuses leaves no folder.
  TrainingConfig config = config_of("test-learner");
  config.options.stages = {1, 2, 3};
  CHECK_THROWS_AS(TrainingRun::start(folder.path("new"), config, one_task()), UsageError);
  CHECK_FALSE(fs::exists(folder.path("new")));
}

TEST_CASE("What a killed process left half-written is cleared away") {
  const Folder folder;
  const std::string path = folder.path("run");
  fs::create_directory(path);
  std::ofstream(path + "/config.json.a1B2c3") << "{";
  { TrainingRun::start(path, config_of("test-learner"), three_tasks()).update(); }
  CHECK_FALSE(fs::exists(path + "/config.json.a1B2c3"));
  {
    TrainingRun run = resumed(path, three_tasks());
    finish(run);
  }
  const std::vector<std::string> leftovers = {"/checkpoint.bin.a1B2c3", "/policy.json.a1B2c3",
                                              "/best_assignments/0-eight@uniform(3).json.a1B2c3"};
  for (const std::string& name : leftovers) std::ofstream(path + name) << "{";
  std::ofstream(path + "/notes.txt") << "mine";
  resumed(path, three_tasks());
  for (const std::string& name : leftovers) CHECK_FALSE(fs::exists(path + name));
  CHECK(fs::exists(path + "/notes.txt"));
  CHECK(fs::exists(path + "/best_assignments/1-a_b@uniform(3).json"));
}

TEST_CASE("Two runs do not train in one folder") {
  const Folder folder;
  TrainingRun run = TrainingRun::start(folder.path("run"), config_of("test-learner"), one_task());
  CHECK_THROWS_WITH(TrainingFolder::open(folder.path("run")), Catch::Contains("another process"));
}

TEST_CASE("A checkpoint that is damaged anywhere is refused and nothing is overwritten") {
  const Folder folder;
  const std::string path = folder.path("run");
  {
    TrainingRun run = TrainingRun::start(path, config_of("test-learner"), one_task());
    for (int i = 0; i < 4; ++i) run.update();
  }
  const std::string file = path + "/checkpoint.bin";
  const std::string good = read_file(file);
  const auto refused = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
    const Files before = all_files(path);
    CHECK_THROWS_AS(resumed(path, one_task()), ParseError);
    CHECK(all_files(path) == before);
  };
  const std::size_t header = good.find('\n');
  for (std::size_t i = 0; i < good.size(); i += i < header ? 1 : 37) {
    std::string damaged = good;
    damaged[i] = damaged[i] == '7' ? '8' : '7';
    INFO(i);
    refused(damaged);
  }
  refused("");
  refused(good.substr(0, good.size() / 2));
  refused(good + "x");
  std::ofstream(file, std::ios::binary) << good;
  CHECK_NOTHROW(resumed(path, one_task()));
  fs::resize_file(path + "/metrics.jsonl", 10);
  CHECK_THROWS_WITH(resumed(path, one_task()), Catch::Contains("10 bytes"));
}

TEST_CASE("Metrics whose lines were changed are refused and stay as they are") {
  const Folder folder;
  const std::string path = folder.path("run");
  {
    TrainingRun run = TrainingRun::start(path, config_of("test-learner"), one_task());
    for (int i = 0; i < 6; ++i) run.update();
    run.checkpoint();
    for (int i = 0; i < 3; ++i) run.update();
  }
  const std::string file = path + "/metrics.jsonl";
  std::string lines = read_file(file);
  lines.erase(0, lines.find('\n') + 1);
  lines += std::string(1000, ' ') + "\n";
  write_file(file, lines);
  CHECK_THROWS_WITH(resumed(path, one_task()), Catch::Contains("was changed"));
  CHECK(read_file(file) == lines);
}

TEST_CASE("A policy without a checkpoint is not written over, a checkpoint without a policy is") {
  const Folder folder;
  const std::string path = folder.path("run");
  {
    TrainingRun run = TrainingRun::start(path, config_of("test-learner"), three_tasks());
    for (int i = 0; i < 4; ++i) run.update();
    run.checkpoint();
  }
  const Files whole = all_files(path);
  // Killed in its first save, after the checkpoint.
  fs::remove(path + "/policy.json");
  fs::remove_all(path + "/best_assignments");
  resumed(path, three_tasks());
  CHECK(all_files(path) == whole);
  // Somebody removed it.
  fs::remove(path + "/checkpoint.bin");
  const Files before = all_files(path);
  CHECK_THROWS_WITH(resumed(path, three_tasks()), Catch::Contains("no checkpoint.bin"));
  CHECK(all_files(path) == before);
}

TEST_CASE("A run goes on with its own configuration and tasks only") {
  const Folder folder;
  const std::string path = folder.path("run");
  {
    TrainingRun run = TrainingRun::start(path, config_of("test-learner"), one_task());
    for (int i = 0; i < 4; ++i) run.update();
  }
  CHECK_THROWS_WITH(resumed(path, {chain(8, "ate")}), Catch::Contains("'ate'"));
  CHECK_THROWS_AS(resumed(path, three_tasks()), UsageError);
  const std::string file = path + "/config.json";
  const std::string good = read_file(file);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string content = good;
    REQUIRE(content.find(from) != std::string::npos);
    content.replace(content.find(from), from.size(), to);
    std::ofstream(file) << content;
  };
  with("\"seed\": 5", "\"seed\": 6");
  CHECK_THROWS_WITH(resumed(path, one_task()), Catch::Contains("another configuration"));
  with("\"version\": 1", "\"version\": 2");
  CHECK_THROWS_WITH(resumed(path, one_task()), Catch::Contains("version 2"));
  with("\"seed\": 5", "\"seed\": 5,");
  CHECK_THROWS_AS(resumed(path, one_task()), ParseError);
  with("\"threads\": 1", "\"threads\": 2");
  CHECK_NOTHROW(resumed(path, one_task()));
}

}  // namespace
}  // namespace doppler
