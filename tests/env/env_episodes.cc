// Episodes: their task, luck, measurement, illegal actions, beginning and end.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "env/env.h"
#include "graphs/graph_builder.h"
#include "tests/env/diamond.h"
#include "tests/env/observed.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

using testing::Actions;
using testing::array;
using testing::Bits;
using testing::diamond;
using testing::Ids;
using testing::lone_node;
using testing::mask;
using testing::rewards;
using testing::started;
using testing::tight_diamond;

TEST_CASE("a task is drawn each episode, or given") {
  Env env(std::vector<Task>{diamond(), lone_node()}, {});
  CHECK(env.model().max_devices() == 3);
  CHECK(env.spec().action == ActionSpec{.sizes = {7}});
  std::size_t n_lone = 0;
  env.reset({.seed = 4});
  for (int episode = 0; episode < 400; ++episode, env.reset()) {
    n_lone += env.task_index();
    CHECK(array<std::int8_t>(env, "node_valid") ==
          (env.task_index() == 0 ? Bits{1, 1, 1, 1} : Bits{1, 0, 0, 0}));
    CHECK(array<std::int8_t>(env, "device_valid") ==
          (env.task_index() == 0 ? Bits{1, 1, 0} : Bits{1, 1, 1}));
  }
  // Half of 400, within five standard deviations.
  CHECK(n_lone > 150);
  CHECK(n_lone < 250);

  env.reset({.task = 1});
  CHECK(env.task().name == "lone@uniform(3)");
  env.step(0);
  CHECK(env.step(4 + 2).reward == -1);
  CHECK(env.result().makespan == 3);
  env.reset({.task = 0});
  CHECK_THROWS_AS(env.step(4), IllegalActionError);
  CHECK_THROWS_WITH(env.reset({.task = 2}), Catch::Contains("2 tasks"));
  CHECK(env.running());
}

TEST_CASE("an assignment that does not fit into memory costs the penalty") {
  for (const Reward reward : {Reward::sparse, Reward::dense}) {
    Env env = started(tight_diamond(4), {.mode = "place", .reward = reward, .memory_penalty = 7});
    double sum = 0;
    for (double x : rewards(env, {0, 0, 0, 0})) sum += x;
    CHECK(sum == Approx(-7).epsilon(1e-12));
    CHECK(std::isinf(env.result().makespan));
    CHECK_THAT(env.result().failure, Catch::Contains("device 0 is out of memory: it needs 6 of 4"));
    // On device 1 from 3 s on: a's copy of 2 bytes, c's 3, b's copy of 1.
    env.reset();
    rewards(env, {0, 1, 0, 1});
    CHECK_THAT(env.result().failure, Catch::Contains("device 1 is out of memory: it needs 6 of 4"));
  }
  Env wide = started(tight_diamond(6), {.mode = "place"});
  rewards(wide, {0, 0, 0, 0});
  CHECK(wide.result().makespan == 10);
  CHECK(wide.result().failure.empty());
}

TEST_CASE("refine leaves and enters what does not fit at the price of the penalty") {
  Env env(tight_diamond(4), {.mode = "refine", .initial = std::vector<DeviceId>(4, DeviceId{0})});
  env.reset();
  CHECK(env.episode_start_time() == 10);
  double sum = 0;
  for (double x : rewards(env, {0, 0, 0, 0})) sum += x;
  CHECK(sum == 0);
  CHECK_THAT(env.result().failure, Catch::Contains("device 0"));
}

TEST_CASE("noise and random choice take the episode's own luck, which the result tells") {
  for (const bool noisy : {true, false}) {
    Task task = diamond();
    if (noisy) {
      task.options.noise = 0.3;
    } else {
      task.options.choice = Choice::random;
    }
    Env env(task, {.mode = "oneshot"});
    std::set<std::uint64_t> seeds;
    std::vector<double> makespans;
    for (int round = 0; round < 2; ++round) {
      for (int episode = 0; episode < 10; ++episode) {
        env.reset({.seed = episode == 0 ? std::optional<std::uint64_t>(5) : std::nullopt});
        env.step(Actions{0, 0, 0, 1});
        const EpisodeResult& result = env.result();
        seeds.insert(result.engine_seed);
        makespans.push_back(result.makespan);
        Simulator simulator = task.simulator();
        CHECK(result.makespan == simulator.makespan(result.assignment.devices, result.engine_seed));
      }
    }
    CHECK(seeds.size() == 10);
    CHECK(std::vector<double>(makespans.begin(), makespans.begin() + 10) ==
          std::vector<double>(makespans.begin() + 10, makespans.end()));
    if (noisy) CHECK(std::set<double>(makespans.begin(), makespans.end()).size() == 10);
  }
  Task quiet = diamond();
  quiet.options.seed = 42;
  Env env(quiet, {.mode = "oneshot"});
  env.reset({.seed = 9});
  env.step(Actions{0, 0, 0, 1});
  CHECK(env.result().engine_seed == 42);
}

TEST_CASE("a seed starts the luck anew, none goes on, and a given task does not shift it") {
  const std::vector<Task> tasks{diamond(), lone_node(), diamond()};
  const auto drawn = [&](std::optional<std::size_t> first_task) {
    Env env(tasks, {});
    std::vector<std::size_t> result;
    env.reset({.seed = 3, .task = first_task});
    for (int i = 0; i < 30; ++i) {
      env.reset();
      result.push_back(env.task_index());
    }
    return result;
  };
  CHECK(drawn(std::nullopt) == drawn(std::nullopt));
  CHECK(drawn(std::nullopt) == drawn(1));
  Env unseeded(tasks, {});
  Env zero(tasks, {});
  unseeded.reset();
  zero.reset({.seed = 0});
  CHECK(unseeded == zero);
  std::set<std::vector<std::size_t>> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Env env(tasks, {});
    std::vector<std::size_t> sequence;
    for (int i = 0; i < 20; ++i) {
      env.reset({.seed = i == 0 ? std::optional<std::uint64_t>(seed) : std::nullopt});
      sequence.push_back(env.task_index());
    }
    different.insert(sequence);
  }
  CHECK(different.size() == 20);
}

TEST_CASE("an illegal action is refused by name and changes nothing") {
  Env env = started(diamond(), {});
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto refuse = [](Env& e, const Actions& actions) {
    const Env before = e;
    for (std::int64_t action : actions) {
      CHECK(!e.is_legal(action));
      CHECK_THROWS_AS(e.step(action), IllegalActionError);
      CHECK(e == before);
    }
  };
  refuse(env, {1, 2, 3, 4, 5, 6, -1, kLeast, kMost});
  CHECK_THROWS_WITH(env.step(5), Catch::Contains("action 5 is not legal; legal: a node is selected "
                                                 "now: nodes 0"));
  env.step(0);
  refuse(env, {0, 1, 2, 3, 6, -1, kLeast, kMost});
  CHECK_THROWS_WITH(env.step(6),
                    Catch::Contains("node 0 is placed now") && Catch::Contains("from 4 to 5"));
  for (const char* mode : {"joint", "place", "refine"}) {
    Env other = started(diamond(), {.mode = mode});
    refuse(other, {-1, kLeast, kMost, 8});
  }
  for (const bool factored : {true, false}) {
    Env other = started(diamond(), {.mode = factored ? "joint" : "oneshot", .factored = factored});
    for (std::int64_t bad : {kLeast, std::int64_t{-1}, std::int64_t{2}, kMost}) {
      Actions action(other.spec().action.sizes.size(), 0);
      action[1] = bad;
      CHECK_THROWS_AS(other.step(action), IllegalActionError);
    }
  }
  CHECK_THROWS_WITH(env.step(Actions{4, 4}),
                    Catch::Contains("2 numbers") && Catch::Contains("sequential takes 1"));
  CHECK_THROWS_AS(env.step(Actions{}), UsageError);
}

TEST_CASE("penalized illegal actions cost 1, change nothing, and end the episode at last") {
  Env env = started(diamond(), {.on_illegal = OnIllegal::penalize});
  env.step(0);
  for (int i = 1; i <= 4; ++i) {
    const Env before = env;
    const StepResult result = env.step(1);
    CHECK(result.reward == -1);
    CHECK(result.illegal);
    CHECK(!result.terminated);
    CHECK(result.truncated == (i == 4));
    CHECK(env.n_illegal() == i);
    CHECK(env.n_steps() == 1);
    CHECK(env.episode_return() == 0);
    for (std::size_t a = 0; a + 1 < env.spec().observations.size(); ++a) {
      CHECK(std::ranges::equal(env.observation(a), before.observation(a)));
    }
  }
  CHECK(!env.running());
  CHECK(mask(env) == Bits(6, 0));
  CHECK_THROWS_AS(env.result(), EpisodeError);
  CHECK_THROWS_AS(env.step(4), EpisodeError);
  env.reset();
  CHECK(env.n_illegal() == 0);
  rewards(env, {5, 5, 5});
  rewards(env, {0, 4, 2, 5, 1, 4, 3, 5});
  CHECK(env.result().makespan == 10);
  CHECK(env.episode_return() == -10.0 / 8);
}

TEST_CASE("step before reset and after the end is refused") {
  Env env(diamond(), {.mode = "place"});
  CHECK(!env.running());
  CHECK_THROWS_WITH(env.step(0), Catch::Contains("call reset()"));
  CHECK_THROWS_AS(env.step(0), EpisodeError);
  CHECK_THROWS_AS(env.result(), EpisodeError);
  CHECK(mask(env) == Bits{0, 0});
  CHECK(array<std::int32_t>(env, "placement") == Ids(4, -1));
  CHECK(array<std::int32_t>(env, "node") == Ids{-1});
  env.reset();
  rewards(env, {0, 0, 0, 0});
  const Env before = env;
  CHECK_THROWS_WITH(env.step(0), Catch::Contains("has ended"));
  CHECK(env == before);
  CHECK(env.result().makespan == 10);
  env.reset();
  CHECK_THROWS_AS(env.result(), EpisodeError);
}

TEST_CASE("a task of one node, and one whose nodes cost nothing, have an episode") {
  for (const std::string& mode : action_modes().names()) {
    Env env = started(lone_node(), {.mode = mode});
    if (mode == "sequential") env.step(0);
    const StepResult last = env.step(mode == "sequential" ? 1 + 2 : 2);
    CHECK(last.terminated);
    CHECK(last.reward == (mode == "refine" ? 0 : -1));
    CHECK(env.result().assignment == Assignment({DeviceId{2}}));
  }
  GraphBuilder builder("free");
  builder.add_node({.name = "a"});
  builder.set_raw_compute({0});
  Task free{.name = "free", .graph = builder.build(), .cost_model = CostModel::raw()};
  Env env = started(free, {.mode = "place"});
  CHECK(env.step(0).reward == 0);
  CHECK(env.result().ratio_to_critical_path == 1);
}

TEST_CASE("an engine that fails loses the episode, and a reset begins another") {
  const auto model =
      std::make_shared<EnvModel>(std::vector<Task>{diamond()}, EnvOptions{.mode = "place"});
  Env env(model);
  env.reset();
  rewards(env, {0, 1, 0});
  // The first run of the engine finds a cluster of one device, where device 1 does not exist.
  auto& placement = const_cast<EnvTask&>(model->tasks()[0]).placement;
  const auto before = placement;
  Task smaller = diamond();
  smaller.cluster = Cluster::uniform(1);
  placement = std::make_shared<const PlacementModel>(smaller);
  CHECK_THROWS_AS(env.step(0), InvalidError);
  placement = before;
  CHECK(!env.running());
  CHECK(env.ended());
  CHECK(mask(env) == Bits{0, 0});
  CHECK_THROWS_AS(env.result(), EpisodeError);
  CHECK_THROWS_AS(env.step(0), EpisodeError);
  env.reset();
  rewards(env, {0, 0, 0, 0});
  CHECK(env.result().makespan == 10);
}

}  // namespace
}  // namespace doppler
