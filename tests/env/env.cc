// What each mode observes and rewards, by hand.
#include "env/env.h"

#include <set>
#include <string>
#include <vector>

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
using testing::mask;
using testing::rewards;
using testing::seconds;
using testing::Seconds;
using testing::started;
using testing::tight_diamond;

TEST_CASE("static arrays of the diamond are as computed by hand") {
  const Env env = started(diamond(), {});
  CHECK(seconds(env, "node_features") == Seconds{1, 13, 1,  0, 4,  //
                                                 2, 7,  5,  2, 1,  //
                                                 3, 10, 6,  2, 3,  //
                                                 4, 4,  13, 4, 0});
  CHECK(array<std::int32_t>(env, "edges") == Ids{0, 1, 0, 2, 1, 3, 2, 3});
  CHECK(seconds(env, "edge_features") == Seconds{2, 2, 1, 3});
  CHECK(array<std::int8_t>(env, "node_valid") == Bits{1, 1, 1, 1});
  CHECK(array<std::int8_t>(env, "edge_valid") == Bits{1, 1, 1, 1});
  CHECK(array<std::int8_t>(env, "device_valid") == Bits{1, 1});
}

TEST_CASE("the full set tells kinds and shares of bytes too") {
  const Env env = started(diamond(), {.features = Features::full});
  const auto features = array<float>(env, "node_features");
  REQUIRE(features.size() == 4 * 7);
  // Kinds in alphabetical order: add, load, multiply.
  const std::vector<float> kinds{1, 0, 2, 0};
  const std::vector<double> bytes{2, 1, 3, 0};
  for (std::size_t v = 0; v < 4; ++v) {
    CHECK(features[v * 7 + 5] == kinds[v]);
    CHECK(features[v * 7 + 6] == static_cast<float>(bytes[v] / 6));
  }
  CHECK(env.model().kinds() == std::vector<std::string>{"add", "load", "multiply"});
}

TEST_CASE("sequential: every observation of an episode is as computed by hand") {
  Env env = started(diamond(), {});
  CHECK(env.spec().action == ActionSpec{.sizes = {6}});
  CHECK(env.spec().max_steps == 8);
  CHECK(env.selecting());
  CHECK(mask(env) == Bits{1, 0, 0, 0, 0, 0});
  CHECK(array<std::int8_t>(env, "candidates") == Bits{1, 0, 0, 0});
  CHECK(array<std::int32_t>(env, "placement") == Ids{-1, -1, -1, -1});
  CHECK(array<std::int32_t>(env, "node") == Ids{-1});
  CHECK(array<std::int8_t>(env, "phase") == Bits{0});
  CHECK(seconds(env, "device_features") == Seconds(10, 0));

  CHECK(env.step(0).reward == 0);
  CHECK(!env.selecting());
  CHECK(env.node() == NodeId{0});
  CHECK(mask(env) == Bits{0, 0, 0, 0, 1, 1});
  CHECK(array<std::int32_t>(env, "node") == Ids{0});
  CHECK(array<std::int8_t>(env, "phase") == Bits{1});
  CHECK(seconds(env, "device_features") == Seconds(10, 0));

  env.step(4);
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, -1, -1, -1});
  CHECK(array<std::int8_t>(env, "candidates") == Bits{0, 1, 1, 0});
  CHECK(mask(env) == Bits{0, 1, 1, 0, 0, 0});
  CHECK(seconds(env, "device_features") == Seconds(10, 0));

  env.step(2);
  CHECK(seconds(env, "device_features") == Seconds{1, 1, 0, 1, 1,  //
                                                   0, 0, 0, 0, 3});
  env.step(5);
  CHECK(env.legal_actions() == Actions{1});
  env.step(1);
  CHECK(seconds(env, "device_features") == Seconds{1, 1, 0, 1, 1,  //
                                                   3, 0, 0, 0, 6});
  env.step(4);
  env.step(3);
  CHECK(seconds(env, "device_features") == Seconds{3, 2, 1, 3, 9,  //
                                                   3, 3, 3, 6, 6});
  CHECK_THROWS_AS(env.result(), EpisodeError);
  const StepResult last = env.step(5);
  CHECK(last.terminated);
  CHECK(!last.truncated);
  CHECK(last.reward == -10.0 / 8);
  CHECK(env.episode_return() == -10.0 / 8);
  CHECK(env.n_steps() == 8);
  CHECK(!env.running());
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, 0, 1, 1});
  CHECK(array<std::int8_t>(env, "candidates") == Bits{0, 0, 0, 0});
  CHECK(array<std::int8_t>(env, "phase") == Bits{1});
  CHECK(array<std::int32_t>(env, "node") == Ids{-1});
  CHECK(mask(env) == Bits(6, 0));
  CHECK(seconds(env, "device_features") == Seconds(10, 0));
  CHECK(env.result().makespan == 10);
  // Critical path: a and c on 0, b on 1 from 3 to 5, d on 0 from 6 to 10.
  CHECK(env.result().ratio_to_critical_path == 1);
  CHECK(env.result().lower_bound == 8);
  CHECK(env.result().evaluations == 1);
  CHECK(env.result().assignment ==
        Assignment({DeviceId{0}, DeviceId{0}, DeviceId{1}, DeviceId{1}}));
  CHECK(env.result().failure.empty());
}

TEST_CASE("the full set tells what moves, where partners and siblings are, and what is left") {
  Env env = started(tight_diamond(10), {.features = Features::full});
  const auto row = [&](std::size_t device) {
    const auto all = array<float>(env, "device_features");
    return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(device * 10 + 5),
                              all.begin() + static_cast<std::ptrdiff_t>(device * 10 + 10));
  };
  using Row = std::vector<float>;
  for (std::int64_t action : {0, 4, 2}) env.step(action);
  CHECK(row(0) == Row{0, 0, 0, 1, 0.8F});
  CHECK(row(1) == Row{2.0F / 8, 0, 0, 1, 1});
  // c, of 3 s and 3 bytes, is both partner (of d) and sibling (by a) of b.
  for (std::int64_t action : {5, 1}) env.step(action);
  CHECK(row(0) == Row{0, 0, 0, 1, 0.8F});
  CHECK(row(1) == Row{2.0F / 8, 3.0F / 8, 3.0F / 8, 1, 0.7F});
  for (std::int64_t action : {4, 3}) env.step(action);
  CHECK(row(0) == Row{3.0F / 8, 0, 0, 1, 0.7F});
  CHECK(row(1) == Row{1.0F / 8, 0, 0, 1, 0.7F});
}

TEST_CASE("dense rewards are the growth of the partial schedule and have the same sum") {
  Env env = started(diamond(), {.reward = Reward::dense});
  CHECK(rewards(env, {0, 4, 2, 5, 1, 4, 3, 5}) ==
        std::vector<double>{0, -1.0 / 8, 0, -5.0 / 8, 0, 0, 0, -4.0 / 8});
  CHECK(env.episode_return() == -10.0 / 8);
}

TEST_CASE("the last dense reward settles what contention adds to the partial schedule") {
  // On one channel a's tensor and c's cannot overlap: a on 0; b and c on 1; d on 2.
  Task task = diamond();
  ClusterParts parts = Cluster::uniform(3).parts();
  parts.default_link->channels = DefaultLink::Channels::egress;
  task.cluster = Cluster(parts);
  Env dense = started(task, {.mode = "place", .reward = Reward::dense});
  Env sparse = started(task, {.mode = "place"});
  const Actions actions{0, 1, 1, 2};
  double sum = 0;
  for (double reward : rewards(dense, actions)) sum += reward;
  rewards(sparse, actions);
  CHECK(sum == Approx(sparse.episode_return()).epsilon(1e-12));
  CHECK(dense.result().makespan == sparse.result().makespan);
}

TEST_CASE("joint: one number is a node and a device") {
  Env env = started(diamond(), {.mode = "joint", .features = Features::full});
  CHECK(env.spec().action == ActionSpec{.sizes = {8}});
  CHECK(env.spec().max_steps == 4);
  CHECK(mask(env) == Bits{1, 1, 0, 0, 0, 0, 0, 0});
  env.step(0 * 2 + 0);
  CHECK(mask(env) == Bits{0, 0, 1, 1, 1, 1, 0, 0});
  const auto pairs = array<float>(env, "pair_features");
  REQUIRE(pairs.size() == 4 * 2 * 10);
  // Of b on device 1: 3 s earliest start, 2 s to fetch a; nothing is there yet.
  CHECK(std::vector<float>(pairs.begin() + 30, pairs.begin() + 40) ==
        std::vector<float>{0, 0, 0, 0, 3.0F / 8, 2.0F / 8, 0, 0, 1, 1});
  for (std::size_t i = 0; i < 20; ++i) CHECK(pairs[i] == 0);   // a is placed
  for (std::size_t i = 60; i < 80; ++i) CHECK(pairs[i] == 0);  // d is no candidate yet
  CHECK(array<float>(env, "device_features") == std::vector<float>(20, 0));
  CHECK(array<std::int8_t>(env, "phase") == Bits{1});
  rewards(env, {2 * 2 + 1, 1 * 2 + 0});
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, 0, 1, -1});
  const StepResult last = env.step(3 * 2 + 1);
  CHECK(last.terminated);
  CHECK(last.reward == -10.0 / 8);
  CHECK(array<float>(env, "pair_features") == std::vector<float>(80, 0));
}

TEST_CASE("joint, factored: a node and a device are two numbers") {
  Env env = started(diamond(), {.mode = "joint", .factored = true});
  CHECK(env.spec().action == ActionSpec{.sizes = {4, 2}, .discrete = false});
  CHECK(mask(env) == Bits{1, 0, 0, 0, 1, 1});
  CHECK_THROWS_AS(env.legal_actions(), UsageError);
  CHECK_THROWS_AS(env.step(0), UsageError);
  CHECK_THROWS_AS(env.step(Actions{1, 0}), IllegalActionError);
  CHECK_THROWS_AS(env.step(Actions{0, 2}), IllegalActionError);
  CHECK_THROWS_AS(env.step(Actions{0, -1}), IllegalActionError);
  for (const Actions& action : {Actions{0, 0}, Actions{2, 1}, Actions{1, 0}}) env.step(action);
  CHECK(mask(env) == Bits{0, 0, 0, 1, 1, 1});
  CHECK(env.step(Actions{3, 1}).reward == -10.0 / 8);
}

TEST_CASE("place: nodes come by b-level among the candidates, or in topological order") {
  Env by_level = started(diamond(), {.mode = "place"});
  Env topological = started(diamond(), {.mode = "place", .order = PlaceOrder::topological});
  CHECK(by_level.spec().action == ActionSpec{.sizes = {2}});
  std::vector<std::int32_t> seen[2];
  for (Env* env : {&by_level, &topological}) {
    while (env->running()) {
      seen[env == &topological].push_back(env->node().value);
      CHECK(array<std::int32_t>(*env, "node") == Ids{env->node().value});
      CHECK(array<std::int8_t>(*env, "phase") == Bits{1});
      CHECK(mask(*env) == Bits{1, 1});
      env->step(env->node().value >= 2 ? 1 : 0);
    }
    CHECK(mask(*env) == Bits{0, 0});
    CHECK(env->result().makespan == 10);
  }
  CHECK(seen[0] == Ids{0, 2, 1, 3});
  CHECK(seen[1] == Ids{0, 1, 2, 3});
}

TEST_CASE("refine: each step is measured and its improvement is the reward") {
  Env env(diamond(), {.mode = "refine", .initial = std::vector<DeviceId>(4, DeviceId{0})});
  env.reset();
  CHECK(env.spec().max_steps == 4);
  CHECK(env.episode_start_time() == 10.0 / 8);
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, 0, 0, 0});
  CHECK(array<std::int32_t>(env, "node") == Ids{0});
  // Order a, c, b, d. With c alone on device 1: c from 3 to 6, d waits for its tensor until 9.
  CHECK(rewards(env, {0, 1, 0}) == std::vector<double>{0, -3.0 / 8, 0});
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, 0, 1, 0});
  const StepResult last = env.step(1);
  CHECK(last.reward == 3.0 / 8);
  CHECK(last.terminated);
  CHECK(env.result().evaluations == 1 + 4);
  CHECK(env.result().makespan == 10);
  CHECK(env.episode_return() == 0);
}

TEST_CASE("refine: the random start is the seed's") {
  const auto start = [](std::uint64_t seed) {
    Env env(diamond(), {.mode = "refine"});
    env.reset({.seed = seed});
    return array<std::int32_t>(env, "placement");
  };
  std::set<Ids> starts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CHECK(start(seed) == start(seed));
    starts.insert(start(seed));
  }
  CHECK(starts.size() == 16);
}

TEST_CASE("oneshot: one step is the whole assignment and padding is ignored") {
  Env env = started(diamond(), {.mode = "oneshot", .max_nodes = 6, .max_devices = 3});
  CHECK(env.spec().action == ActionSpec{.sizes = {3, 3, 3, 3, 3, 3}, .discrete = false});
  CHECK(env.spec().max_steps == 1);
  CHECK(mask(env) == Bits{1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1});
  CHECK_THROWS_AS(env.step(Actions{0, 0, 1, 1}), UsageError);
  CHECK_THROWS_WITH(env.step(Actions{0, 0, 1, 2, 0, 0}), Catch::Contains("from 0 to 1"));
  const StepResult last = env.step(Actions{0, 0, 1, 1, 2, 2});
  CHECK(last.terminated);
  CHECK(last.reward == -10.0 / 8);
  CHECK(array<std::int32_t>(env, "placement") == Ids{0, 0, 1, 1, -1, -1});
}

TEST_CASE("arrays are padded to the given limits") {
  Env env = started(diamond(),
                    {.features = Features::full, .max_nodes = 6, .max_edges = 5, .max_devices = 3});
  CHECK(env.spec().action == ActionSpec{.sizes = {9}});
  CHECK(env.spec().max_steps == 12);
  CHECK(array<std::int8_t>(env, "node_valid") == Bits{1, 1, 1, 1, 0, 0});
  CHECK(array<std::int8_t>(env, "edge_valid") == Bits{1, 1, 1, 1, 0});
  CHECK(array<std::int8_t>(env, "device_valid") == Bits{1, 1, 0});
  CHECK(array<std::int32_t>(env, "edges") == Ids{0, 1, 0, 2, 1, 3, 2, 3, -1, -1});
  CHECK(array<std::int8_t>(env, "candidates") == Bits{1, 0, 0, 0, 0, 0});
  const auto nodes = array<float>(env, "node_features");
  for (std::size_t i = 4 * 7; i < 6 * 7; ++i) CHECK(nodes[i] == 0);
  CHECK_THROWS_AS(env.step(4), IllegalActionError);
  env.step(0);
  CHECK(mask(env) == Bits{0, 0, 0, 0, 0, 0, 1, 1, 0});
  CHECK_THROWS_AS(env.step(8), IllegalActionError);
  rewards(env, {6, 2});
  const auto features = array<float>(env, "device_features");
  CHECK(features[1 * 10 + 4] == 3.0F / 8);
  for (std::size_t i = 2 * 10; i < 3 * 10; ++i) CHECK(features[i] == 0);
  rewards(env, {7, 1, 6, 3});
  CHECK(env.step(7).terminated);
  CHECK(env.result().makespan == 10);
}

}  // namespace
}  // namespace doppler
