#include "agents/training_config.h"

#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

TrainingConfig whole_config() {
  TrainingConfig config;
  config.agent = "learner(depth=2)";
  config.tasks = {"chainmm@p100x4", "ffnn@p100x4"};
  config.settings = {{"noise", 0.25}, {"enforce_memory", false}, {"network", std::string("fair")}};
  config.options.stages = {2};
  config.options.seed = 7;
  config.options.max_evaluations = 123;
  config.options.max_seconds = 4.5;
  config.options.n_threads = 3;
  config.options.device = "cuda";
  config.init_from = "/somewhere/policy.json";
  config.checkpoint_every = {.seconds = 0, .updates = 9};
  config.allow_test_tasks = true;
  config.code_version = "0.1.0";
  config.trained_on = {{"chainmm@p100x4", 0x123456789abcdef0, Split::none},
                       {"ffnn@p100x4", 1, Split::test}};
  config.initial_policy_hash = 0xfedcba9876543210;
  return config;
}

TEST_CASE("A configuration that was written reads back equal") {
  const TrainingConfig config = whole_config();
  const TrainingConfig read = parse_run_config(to_json(config), "config.json");
  CHECK(to_json(read) == to_json(config));
  CHECK(read.settings == config.settings);
  CHECK(read.options.max_seconds == 4.5);
  CHECK(read.options.n_threads == 3);
  CHECK(read.trained_on == config.trained_on);
  CHECK(read.initial_policy_hash == config.initial_policy_hash);
  CHECK(read.identity() == config.identity());
}

TEST_CASE("A user's configuration may leave out what has a default") {
  const TrainingConfig config = parse_training_config(R"({"agent": "a", "seed": 3})", "f");
  CHECK(config.agent == "a");
  CHECK(config.options.seed == 3);
  CHECK(config.options.stages == std::vector<int>{1, 2});
  CHECK(config.options.max_evaluations == TrainOptions{}.max_evaluations);
  CHECK(config.options.max_seconds == std::numeric_limits<double>::infinity());
  CHECK(config.checkpoint_every == CheckpointInterval{});
}

TEST_CASE("A configuration that is not understood is refused with its place") {
  const auto message = [](const char* text) {
    try {
      parse_training_config(text, "f.json");
    } catch (const ParseError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message(R"({"sede": 1})"),
             Catch::Contains("f.json: /sede") && Catch::Contains("seed"));
  CHECK_THAT(message(R"({"seed": -1})"), Catch::Contains("/seed"));
  CHECK_THAT(message(R"({"seed": 1, "seed": 2})"), Catch::Contains("twice"));
  CHECK_THAT(message(R"({"stages": [4]})"), Catch::Contains("/stages/0"));
  CHECK_THAT(message(R"({"tasks": "a"})"), Catch::Contains("/tasks"));
  CHECK_THAT(message(R"({"checkpoint_every": "soon"})"), Catch::Contains("/checkpoint_every"));
  CHECK_THAT(message(R"({"settings": {"noise": null}})"), Catch::Contains("/settings/noise"));
  CHECK_THAT(message(R"({"format": "doppler-training", "version": 2})"),
             Catch::Contains("version 2"));
  CHECK_THAT(message(R"({"format": "doppler-graph", "version": 1})"),
             Catch::Contains("doppler-graph"));
  CHECK_THROWS_AS(parse_run_config(R"({"agent": "a"})", "f"), ParseError);
  CHECK_THROWS_AS(parse_run_config(R"({"format": "doppler-training", "version": 1})", "f"),
                  ParseError);
}

TEST_CASE("An interval between checkpoints is seconds or updates") {
  CHECK(CheckpointInterval::parse("30s") == CheckpointInterval{.seconds = 30, .updates = 0});
  CHECK(CheckpointInterval::parse("0.5s") == CheckpointInterval{.seconds = 0.5, .updates = 0});
  CHECK(CheckpointInterval::parse("12") == CheckpointInterval{.seconds = 0, .updates = 12});
  for (const char* text : {"30s", "0.5s", "12"}) {
    CHECK(CheckpointInterval::parse(text).to_string() == text);
  }
  for (const char* text : {"", "s", "0", "0s", "-1", "-1s", "1.5", "nans", "1 s", "5m"}) {
    CHECK_THROWS_AS(CheckpointInterval::parse(text), UsageError);
  }
}

TEST_CASE("A run that goes on may change its limits of time and threads alone") {
  const TrainingConfig started = whole_config();
  TrainingConfig wanted = started;
  wanted.options.max_seconds = 100;
  wanted.options.n_threads = 1;
  wanted.checkpoint_every = {};
  CHECK_NOTHROW(check_same_run(started, wanted));
  CHECK(wanted.identity() == started.identity());
  const auto refused = [&](auto change, const char* field) {
    TrainingConfig other = started;
    change(other);
    CHECK_THROWS_WITH(check_same_run(started, other), Catch::Contains(field));
  };
  refused([](TrainingConfig& c) { c.agent = "learner"; }, "agent");
  refused([](TrainingConfig& c) { c.tasks = {"ffnn@p100x4"}; }, "tasks");
  refused([](TrainingConfig& c) { c.graph = "g.json"; }, "graph");
  refused([](TrainingConfig& c) { c.cluster = "p100x4"; }, "cluster");
  refused([](TrainingConfig& c) { c.settings["noise"] = 0.5; }, "settings");
  refused([](TrainingConfig& c) { c.options.stages = {1, 2}; }, "stages");
  refused([](TrainingConfig& c) { c.options.seed = 8; }, "seed");
  refused([](TrainingConfig& c) { c.options.max_evaluations = 8; }, "evaluations");
  refused([](TrainingConfig& c) { c.options.device = "cpu"; }, "device");
  refused([](TrainingConfig& c) { c.init_from = ""; }, "init_from");
}

}  // namespace
}  // namespace doppler
