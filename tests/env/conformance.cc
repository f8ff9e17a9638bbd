// check_env() over everything that is registered, and that it finds what is wrong.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "datasets/clusters.h"
#include "datasets/tasks.h"
#include "datasets/workloads.h"
#include "env/check_env.h"
#include "env/env.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

void check(const Task& task, const EnvOptions& options, std::uint64_t seed = 0) {
  INFO(task << "\n" << options);
  const auto model = std::make_shared<const EnvModel>(std::vector<Task>{task}, options);
  REQUIRE_NOTHROW(check_env(model, {.seed = seed, .n_episodes = 1}));
}

// Every mode with every reward, feature set and way with illegal actions.
std::vector<EnvOptions> all_options() {
  std::vector<EnvOptions> all;
  for (const std::string& mode : action_modes().names()) {
    for (const Reward reward : {Reward::sparse, Reward::dense}) {
      for (const Features features : {Features::paper, Features::full}) {
        for (const OnIllegal on_illegal : {OnIllegal::raise, OnIllegal::penalize}) {
          EnvOptions options{
              .mode = mode, .reward = reward, .features = features, .on_illegal = on_illegal};
          all.push_back(options);
          if (mode == "joint") {
            options.factored = true;
            all.push_back(options);
          }
          if (mode == "place") {
            options.order = PlaceOrder::topological;
            all.push_back(options);
          }
        }
      }
    }
  }
  return all;
}

bool has_parameter(const Description& entry, const std::string& name) {
  return std::any_of(entry.parameters.begin(), entry.parameters.end(),
                     [&](const ParameterSpec& parameter) { return parameter.name == name; });
}

// A registered workload, cut into as few nodes as show its structure.
std::string small_workload(const WorkloadEntry& entry) {
  std::string spelling = entry.name + "(shards=2";
  if (has_parameter(entry, "layers")) spelling += ",layers=1";
  if (entry.name == "random-dag") spelling += ",n=40";
  return spelling + ")";
}

TEST_CASE("every workload makes an environment that conforms") {
  for (const auto& [name, entry] : workloads()) {
    for (const std::string& mode : action_modes().names()) {
      // Joint masks of hundreds of pairs, step by step, take most of the time.
      if (mode == "joint" && name != "chainmm") continue;
      check(make_task(small_workload(entry) + "@uniform(3)"),
            {.mode = mode, .features = Features::full});
    }
  }
}

TEST_CASE("every cluster of up to 16 devices makes an environment that conforms") {
  for (const auto& [name, entry] : clusters()) {
    const std::string spelling = has_parameter(entry, "n") ? name + "(16)" : name;
    const Task task = make_task("random-dag(n=12,shards=1)@" + spelling);
    if (task.cluster.n_devices() > 16) continue;
    for (const Features features : {Features::paper, Features::full}) {
      for (const std::string& mode : action_modes().names()) {
        check(task, {.mode = mode, .reward = Reward::dense, .features = features});
      }
    }
  }
}

TEST_CASE("every mode, reward, feature set and way with illegal actions conforms") {
  Task task = make_task("random-dag(n=14,shards=1)@mixed");
  for (const EnvOptions& options : all_options()) check(task, options);
  task.options.noise = 0.2;
  task.options.choice = Choice::random;
  for (EnvOptions options : all_options()) {
    options.max_nodes = 17;
    options.max_edges = static_cast<std::int64_t>(task.graph.n_edges()) + 3;
    options.max_devices = 6;
    check(task, options, 1);
  }
}

TEST_CASE("every engine makes an environment that conforms") {
  const Task task = make_task("chainmm(n=8)@cpu2");
  for (const auto& [name, entry] : engines()) {
    try {
      make_engine(name);
    } catch (const Error& error) {
      WARN("skipped: " << error.what());  // hardware or a module that is not here
      continue;
    }
    for (const std::string& mode : action_modes().names()) {
      check(task, {.mode = mode, .reward = Reward::dense, .engine = name});
    }
  }
}

TEST_CASE("random tasks with every corner conform") {
  const auto options = all_options();
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const testing::RandomCase drawn = testing::random_case(seed, {.max_nodes = 12});
    if (drawn.graph.n_nodes() == 0) continue;
    check({.name = "case " + std::to_string(seed),
           .graph = drawn.graph,
           .cluster = drawn.cluster,
           .cost_model = drawn.cost_model,
           .options = drawn.options},
          options[seed % options.size()], seed);
  }
}

TEST_CASE("several tasks and tight memory conform") {
  for (const EnvOptions& options : all_options()) {
    const auto model = std::make_shared<const EnvModel>(
        std::vector<Task>{testing::diamond(), testing::lone_node(), testing::tight_diamond(4)},
        options);
    REQUIRE_NOTHROW(check_env(model, {.n_episodes = 8}));
  }
}

// --- what check_env() must find: each part of a model is spoilt in turn ---

std::shared_ptr<EnvModel> spoilt_model(const EnvOptions& options = {}) {
  return std::make_shared<EnvModel>(std::vector<Task>{testing::diamond()}, options);
}
// The models here are not const objects; only their accessors are.
template <class T>
T& spoil(const T& part) {
  return const_cast<T&>(part);
}
ArraySpec& array(EnvModel& model, const std::string& name) {
  return spoil(model.spec()).observations[model.spec().index(name)];
}
EnvTask& task_of(EnvModel& model) { return spoil(model.tasks()[0]); }

TEST_CASE("check_env finds observations outside their space, or not finite") {
  const auto bound = spoilt_model();
  REQUIRE_NOTHROW(check_env(bound));
  array(*bound, "device_features").high = 0.1;
  CHECK_THROWS_WITH(check_env(bound), Catch::Contains("device_features holds") &&
                                          Catch::Contains("outside") &&
                                          Catch::Contains("episode 0, step 3"));
  const auto ids = spoilt_model({.mode = "place"});
  array(*ids, "placement").low = 0;
  CHECK_THROWS_WITH(check_env(ids), Catch::Contains("placement holds -1"));
  const auto bits = spoilt_model();
  array(*bits, "candidates").high = 0;
  CHECK_THROWS_WITH(check_env(bits), Catch::Contains("candidates holds 1"));
  for (const float x :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0F}) {
    const auto values = spoilt_model();
    auto& bytes = task_of(*values).static_arrays[0];
    std::copy_n(reinterpret_cast<const std::byte*>(&x), sizeof x, bytes.begin());
    CHECK_THROWS_WITH(check_env(values), Catch::Contains("node_features holds"));
  }
}

TEST_CASE("check_env finds shapes and lengths that are not those of the spec") {
  const auto size = spoilt_model();
  task_of(*size).static_arrays[1].pop_back();
  CHECK_THROWS_WITH(check_env(size), Catch::Contains("edges has the wrong size"));
  const auto steps = spoilt_model();
  spoil(steps->spec()).max_steps = 3;
  CHECK_THROWS_WITH(check_env(steps), Catch::Contains("longer than the spec says"));
}

TEST_CASE("check_env finds a mask that is not the action space's") {
  const auto mask = spoilt_model({.mode = "place"});
  spoil(mask->spec()).action.sizes[0] = 3;
  CHECK_THROWS_WITH(check_env(mask), Catch::Contains("the mask has the wrong size"));
}

TEST_CASE("check_env finds rewards and makespans that are not what they say") {
  const auto times = spoilt_model({.mode = "place"});
  Env env(times);
  env.reset();
  for (std::int64_t device : {0, 1, 1, 0}) env.step(device);
  // The engine at work does not wait at barriers; whoever looks now is told that it does.
  Task other = testing::diamond();
  other.options.schedule = Schedule::bulk_synchronous;
  task_of(*times).placement = std::make_shared<const PlacementModel>(other);
  CHECK_THROWS_WITH(check_env(times, {.n_episodes = 20}),
                    Catch::Contains("the makespan is not that of a direct simulation"));

  const auto penalty = spoilt_model({.reward = Reward::dense});
  task_of(*penalty).placement = std::make_shared<const PlacementModel>(testing::tight_diamond(1));
  spoil(penalty->options()).memory_penalty = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(check_env(penalty), Catch::Contains("the reward is not finite"));
}

}  // namespace
}  // namespace doppler
