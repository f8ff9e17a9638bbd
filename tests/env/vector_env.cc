// Many environments at once, against a loop over single ones.
#include "env/vector_env.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/thread_pool.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"
#include "tests/support/sanitizers.h"

namespace doppler {
namespace {

using testing::diamond;
using testing::Draws;
using testing::lone_node;

using Bytes = std::vector<std::byte>;

std::shared_ptr<const EnvModel> make_model(const EnvOptions& options) {
  Task noisy = diamond();
  noisy.options.noise = 0.2;
  return std::make_shared<const EnvModel>(std::vector<Task>{noisy, lone_node()}, options);
}

Bytes part_of(std::span<const std::byte> batch, std::size_t i, std::size_t n_bytes) {
  const auto part = batch.subspan(i * n_bytes, n_bytes);
  return {part.begin(), part.end()};
}

std::vector<Bytes> observations(const Env& env) {
  std::vector<Bytes> result;
  for (std::size_t a = 0; a < env.spec().observations.size(); ++a) {
    const auto bytes = env.observation(a);
    result.emplace_back(bytes.begin(), bytes.end());
  }
  return result;
}
std::vector<Bytes> observations(const VectorEnv& envs, std::size_t i, bool final = false) {
  std::vector<Bytes> result;
  for (std::size_t a = 0; a < envs.spec().observations.size(); ++a) {
    result.push_back(part_of(final ? envs.final_observation(a) : envs.observation(a), i,
                             envs.spec().observations[a].n_bytes()));
  }
  return result;
}

// Mostly legal by the mask; anything if there is no legal one.
std::vector<std::int64_t> some_action(std::span<const std::int8_t> mask, const ActionSpec& space,
                                      Draws& draws) {
  std::vector<std::int64_t> action;
  std::size_t first = 0;
  for (std::int64_t size : space.sizes) {
    const auto part = mask.subspan(first, static_cast<std::size_t>(size));
    const bool any = std::any_of(part.begin(), part.end(), [](std::int8_t x) { return x != 0; });
    std::int64_t number = draws.between(0, size - 1);
    if (any && draws.chance(0.8)) {
      while (part[static_cast<std::size_t>(number)] == 0) number = draws.between(0, size - 1);
    }
    action.push_back(number);
    first += static_cast<std::size_t>(size);
  }
  return action;
}
std::span<const std::int8_t> mask_of(const VectorEnv& envs, std::size_t i) {
  const std::size_t last = envs.spec().observations.size() - 1;
  const std::size_t n = envs.spec().action.mask_size();
  const auto bytes = envs.observation(last).subspan(i * n, n);
  return {reinterpret_cast<const std::int8_t*>(bytes.data()), n};
}

// A single environment that is reset by the rules of a vector's.
struct Single {
  Env env;
  bool finished = false;
  std::vector<Bytes> final_observations = {};
  StepResult step(Autoreset autoreset, std::span<const std::int64_t> action) {
    if (finished && autoreset == Autoreset::next_step) {
      env.reset();
      finished = false;
      return {};
    }
    const StepResult result = env.step(action);
    finished = result.terminated || result.truncated;
    if (finished && autoreset == Autoreset::same_step) {
      final_observations = observations(env);
      env.reset();
      finished = false;
    }
    return result;
  }
};

struct Setting {
  std::string mode;
  Autoreset autoreset;
  int n_threads;
};

void compare_with_loop(const Setting& setting) {
  INFO(setting.mode << " " << to_string(setting.autoreset) << " " << setting.n_threads);
  constexpr std::size_t kEnvs = 7;
  const auto model = make_model({.mode = setting.mode,
                                 .reward = Reward::dense,
                                 .features = Features::full,
                                 .on_illegal = OnIllegal::penalize});
  VectorEnv envs(model, kEnvs, {.autoreset = setting.autoreset, .n_threads = setting.n_threads});
  std::vector<Single> loop(kEnvs, Single{Env(model)});
  envs.reset(11);
  for (std::size_t i = 0; i < kEnvs; ++i) loop[i].env.reset({.seed = 11 + i});
  Draws draws(5);
  std::size_t n_ended = 0;
  const std::size_t width = model->spec().action.sizes.size();
  for (int t = 0; t < 60; ++t) {
    std::vector<std::int64_t> actions;
    for (std::size_t i = 0; i < kEnvs; ++i) {
      REQUIRE(observations(envs, i) == observations(loop[i].env));
      const auto action = some_action(mask_of(envs, i), model->spec().action, draws);
      actions.insert(actions.end(), action.begin(), action.end());
    }
    envs.step(actions);
    std::vector<std::uint8_t> ended(kEnvs, 0);
    for (std::size_t i = 0; i < kEnvs; ++i) {
      const StepResult result =
          loop[i].step(setting.autoreset, std::span(actions).subspan(i * width, width));
      REQUIRE(envs.rewards()[i] == result.reward);
      REQUIRE((envs.terminated()[i] != 0) == result.terminated);
      REQUIRE((envs.truncated()[i] != 0) == result.truncated);
      REQUIRE((envs.illegal()[i] != 0) == result.illegal);
      ended[i] = result.terminated || result.truncated ? 1 : 0;
      n_ended += ended[i];
      if (ended[i] != 0 && setting.autoreset == Autoreset::same_step) {
        REQUIRE(observations(envs, i, true) == loop[i].final_observations);
      } else if (result.terminated) {
        REQUIRE(envs.result(i) == loop[i].env.result());
      }
    }
    if (setting.autoreset == Autoreset::disabled &&
        std::any_of(ended.begin(), ended.end(), [](std::uint8_t x) { return x != 0; })) {
      std::vector<std::uint64_t> seeds(kEnvs);
      for (auto& seed : seeds) seed = draws.bits();
      const bool seeded = draws.chance(0.5);
      envs.reset(seeded ? std::span<const std::uint64_t>(seeds) : std::span<const std::uint64_t>(),
                 ended);
      for (std::size_t i = 0; i < kEnvs; ++i) {
        if (ended[i] == 0) continue;
        loop[i].env.reset({.seed = seeded ? std::optional(seeds[i]) : std::nullopt});
        loop[i].finished = false;
      }
      for (double reward : envs.rewards()) REQUIRE(reward == 0);
    }
  }
  REQUIRE(n_ended > kEnvs);
}

TEST_CASE("a vector is a loop over single environments, on any number of threads") {
  for (const std::string& mode : action_modes().names()) {
    for (const Autoreset autoreset :
         {Autoreset::next_step, Autoreset::same_step, Autoreset::disabled}) {
      for (const int n_threads : {1, 2, 5}) compare_with_loop({mode, autoreset, n_threads});
    }
  }
}

std::vector<std::string> whole_state(const VectorEnv& envs) {
  std::vector<std::string> states = envs.serialize();
  for (std::size_t a = 0; a < envs.spec().observations.size(); ++a) {
    const auto bytes = envs.observation(a);
    states.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return states;
}

TEST_CASE("an action that is refused names its environment, and nothing is stepped") {
  VectorEnv envs(make_model({.mode = "place"}), 4, {.n_threads = 2});
  CHECK_THROWS_WITH(envs.step(std::vector<std::int64_t>(4, 0)),
                    Catch::Contains("environment 0") && Catch::Contains("reset()"));
  CHECK_THROWS_AS(envs.step(std::vector<std::int64_t>(4, 0)), EpisodeError);
  envs.reset(1);
  const auto before = whole_state(envs);
  const auto refuse = [&](const std::vector<std::int64_t>& actions, const std::string& text) {
    CHECK_THROWS_WITH(envs.step(actions), Catch::Contains(text));
    CHECK_THROWS_AS(envs.step(actions), UsageError);
    CHECK(whole_state(envs) == before);
  };
  refuse({0, 0, 0}, "3 numbers as actions of 4 environments");
  refuse({0, 0, 0, 0, 0}, "5 numbers");
  refuse({0, 0, -1, 7}, "environment 2: action -1 is not legal; legal: a device from 0 to ");
  CHECK_THROWS_AS(envs.step(std::vector<std::int64_t>{0, 0, 3, 0}), IllegalActionError);
  CHECK(whole_state(envs) == before);
  CHECK_NOTHROW(envs.step(std::vector<std::int64_t>(4, 0)));
  CHECK(whole_state(envs) != before);
}

TEST_CASE("without autoreset what has ended must be reset") {
  const auto model =
      std::make_shared<const EnvModel>(std::vector<Task>{diamond()}, EnvOptions{.mode = "oneshot"});
  VectorEnv envs(model, 2, {.autoreset = Autoreset::disabled, .n_threads = 1});
  envs.reset(1);
  const std::vector<std::int64_t> actions(8, 0);
  envs.step(actions);
  CHECK(envs.terminated()[1] == 1);
  CHECK(envs.result(1).makespan == 10);
  CHECK_THROWS_WITH(envs.step(actions), Catch::Contains("environment 0"));
  envs.reset({}, std::vector<std::uint8_t>{1, 0});
  CHECK(envs.terminated()[1] == 0);
  CHECK_THROWS_WITH(envs.step(actions), Catch::Contains("environment 1"));
  envs.reset({}, std::vector<std::uint8_t>{0, 1});
  CHECK_NOTHROW(envs.step(actions));
}

TEST_CASE("a reset of the wrong length is refused") {
  VectorEnv envs(make_model({}), 3, {.n_threads = 1});
  envs.reset(1);
  const auto before = whole_state(envs);
  CHECK_THROWS_WITH(envs.reset(std::vector<std::uint64_t>{1, 2}), Catch::Contains("2 seeds for 3"));
  CHECK_THROWS_WITH(envs.reset({}, std::vector<std::uint8_t>{1}),
                    Catch::Contains("1 mask elements for 3"));
  CHECK(whole_state(envs) == before);
  envs.reset({}, std::vector<std::uint8_t>{0, 0, 0});
  CHECK(whole_state(envs) == before);
}

TEST_CASE("sizes, threads and names that cannot be are refused") {
  const auto model = make_model({});
  CHECK_THROWS_AS(VectorEnv(model, 0), UsageError);
  CHECK_THROWS_AS(VectorEnv(model, (1 << 20) + 1), UsageError);
  CHECK_THROWS_WITH(VectorEnv(model, 1, {.n_threads = -1}), Catch::Contains("-1 threads"));
  CHECK_THROWS_AS(VectorEnv(model, 1, {.n_threads = 1025}), UsageError);
  CHECK_THROWS_AS(ThreadPool(-1), UsageError);
  for (const Autoreset x : {Autoreset::next_step, Autoreset::same_step, Autoreset::disabled}) {
    CHECK(parse_autoreset(to_string(x)) == x);
  }
  CHECK_THROWS_WITH(parse_autoreset("never"), Catch::Contains("known: next_step"));
}

TEST_CASE("static arrays change with an environment's task alone, and the version tells") {
  const auto model = std::make_shared<const EnvModel>(std::vector<Task>{diamond(), lone_node()},
                                                      EnvOptions{.mode = "place", .max_nodes = 4});
  VectorEnv envs(model, 16, {.n_threads = 2});
  envs.reset(1);
  std::uint64_t version = envs.static_version();
  std::vector<std::size_t> tasks(envs.size());
  Draws draws(1);
  std::size_t n_changes = 0;
  for (int t = 0; t < 40; ++t) {
    for (std::size_t i = 0; i < envs.size(); ++i) tasks[i] = envs.env(i).task_index();
    envs.step(std::vector<std::int64_t>(envs.size(), 0));
    bool changed = false;
    for (std::size_t i = 0; i < envs.size(); ++i) changed |= tasks[i] != envs.env(i).task_index();
    CHECK((envs.static_version() != version) == changed);
    version = envs.static_version();
    n_changes += changed ? 1 : 0;
  }
  CHECK(n_changes > 0);
}

TEST_CASE("states are restored, with those that wait for their reset, or nothing is") {
  const auto model = make_model({.mode = "place"});
  VectorEnv envs(model, 5, {.n_threads = 2});
  envs.reset(3);
  Draws draws(1);
  bool waits = false;
  for (int t = 0; t < 30; ++t) {
    VectorEnv restored(model, 5, {.n_threads = 1});
    restored.restore(envs.serialize());
    REQUIRE(whole_state(restored) == whole_state(envs));
    std::vector<std::int64_t> actions;
    for (std::size_t i = 0; i < 5; ++i) {
      waits |= !envs.env(i).running();
      actions.push_back(draws.between(0, 1));
    }
    envs.step(actions);
    restored.step(actions);
    REQUIRE(whole_state(restored) == whole_state(envs));
    REQUIRE(std::ranges::equal(restored.rewards(), envs.rewards()));
    REQUIRE(std::ranges::equal(restored.terminated(), envs.terminated()));
  }
  REQUIRE(waits);

  const auto before = whole_state(envs);
  std::vector<std::string> states = envs.serialize();
  for (std::size_t i = 0; i < states[3].size(); ++i) {
    auto damaged = states;
    damaged[3][i] = static_cast<char>(damaged[3][i] ^ 1);
    REQUIRE_THROWS_AS(envs.restore(damaged), InvalidError);
  }
  auto damaged = states;
  damaged[3].pop_back();
  CHECK_THROWS_WITH(envs.restore(damaged), Catch::Contains("environment 3: "));
  damaged[3].clear();
  CHECK_THROWS_AS(envs.restore(damaged), InvalidError);
  states.pop_back();
  CHECK_THROWS_WITH(envs.restore(states), Catch::Contains("4 states for 5"));
  CHECK(whole_state(envs) == before);
}

// Threads after a fork are more than the thread sanitizer follows.
constexpr int kForkThreads = testing::kThreadSanitizer ? 1 : 4;

TEST_CASE("a vector works on after a fork, in the parent and in the child") {
  const auto model = make_model({.mode = "place"});
  const std::vector<std::int64_t> actions(32, 1);
  VectorEnv envs(model, 32, {.n_threads = kForkThreads});
  envs.reset(1);
  envs.step(actions);
  VectorEnv expected(model, 32, {.n_threads = 1});
  expected.reset(1);
  for (int t = 0; t < 10; ++t) expected.step(actions);

  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // a child that hangs is ended
    for (int t = 1; t < 10; ++t) envs.step(actions);
    const bool same = whole_state(envs) == whole_state(expected);
    {
      VectorEnv own(model, 32, {.n_threads = kForkThreads});
      own.reset(1);
      own.step(actions);
    }
    _exit(same ? 0 : 1);
  }
  for (int t = 1; t < 10; ++t) envs.step(actions);
  CHECK(whole_state(envs) == whole_state(expected));
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a child that only destroys a forked vector ends as well") {
  const auto model = make_model({.mode = "place"});
  auto envs = std::make_unique<VectorEnv>(model, 8, VectorEnvOptions{.n_threads = kForkThreads});
  envs->reset(1);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);
    envs.reset();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
}

TEST_CASE("a pool covers each element once and passes on the first failure") {
  for (const int n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    for (const std::size_t n : {0U, 1U, 2U, 7U, 100U}) {
      std::vector<int> visits(n, 0);
      pool.run(n, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      CHECK(visits == std::vector<int>(n, 1));
    }
    const auto fail = [](std::size_t begin, std::size_t) {
      throw std::runtime_error(std::to_string(begin));
    };
    CHECK_THROWS_WITH(pool.run(100, fail), "0");
    std::vector<int> visits(5, 0);
    pool.run(5, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++visits[i];
    });
    CHECK(visits == std::vector<int>(5, 1));
  }
}

}  // namespace
}  // namespace doppler
