// Copies, serialized states, and what restore() refuses.
#include <cstring>
#include <string>
#include <vector>

#include "env/env.h"
#include "graphs/hash.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::diamond;
using testing::lone_node;

std::shared_ptr<const EnvModel> make_model(const EnvOptions& options) {
  Task noisy = diamond();
  noisy.options.noise = 0.2;
  return std::make_shared<const EnvModel>(std::vector<Task>{noisy, lone_node()}, options);
}

std::vector<std::int64_t> legal_action(const Env& env, testing::Draws& draws) {
  std::vector<std::int64_t> action;
  std::size_t first = 0;
  for (std::int64_t size : env.spec().action.sizes) {
    std::int64_t number = 0;
    do {
      number = draws.between(0, size - 1);
    } while (env.action_mask()[first + static_cast<std::size_t>(number)] == 0);
    action.push_back(number);
    first += static_cast<std::size_t>(size);
  }
  return action;
}

// What is seen of the rest of this episode and of two more.
struct Rest {
  std::vector<double> rewards;
  std::vector<EpisodeResult> results;
  friend bool operator==(const Rest&, const Rest&) = default;
};
Rest play_on(Env env, std::uint64_t seed) {
  testing::Draws draws(seed);
  Rest rest;
  for (int episode = 0; episode < 3; ++episode) {
    while (env.running()) rest.rewards.push_back(env.step(legal_action(env, draws)).reward);
    if (env.ended() && env.n_illegal() == 0) rest.results.push_back(env.result());
    env.reset();
  }
  return rest;
}

// Calls visit at every state of a few episodes of every mode: before the first reset, at each step,
// and after the end.
template <class Visit>
void visit_states(Visit&& visit) {
  for (const std::string& mode : action_modes().names()) {
    const auto model = make_model({.mode = mode, .reward = Reward::dense});
    INFO(mode);
    Env env(model);
    visit(env);
    testing::Draws draws(1);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      env.reset({.seed = seed});
      visit(env);
      while (env.running()) {
        env.step(legal_action(env, draws));
        visit(env);
      }
    }
  }
}

TEST_CASE("a copy is equal and continues exactly, and neither knows of the other") {
  visit_states([](const Env& env) {
    const Env copy = env;
    REQUIRE(copy == env);
    const Rest rest = play_on(copy, 7);
    REQUIRE(copy == env);
    REQUIRE(play_on(env, 7) == rest);
  });
}

TEST_CASE("a restored state is equal and continues exactly") {
  visit_states([](const Env& env) {
    Env restored(std::make_shared<const EnvModel>(
        std::vector<Task>{env.model().tasks()[0].placement->task(),
                          env.model().tasks()[1].placement->task()},
        env.options()));
    restored.restore(env.serialize());
    REQUIRE(restored == env);
    REQUIRE(restored.serialize() == env.serialize());
    REQUIRE(restored.n_steps() == env.n_steps());
    REQUIRE(restored.running() == env.running());
    REQUIRE(restored.ended() == env.ended());
    REQUIRE(restored.episode_return() == env.episode_return());
    REQUIRE(play_on(restored, 5) == play_on(env, 5));
  });
}

TEST_CASE("a state is restored over whatever the environment was doing") {
  const auto model = make_model({});
  Env source(model);
  source.reset({.seed = 3, .task = 0});
  source.step(0);
  Env target(model);
  target.reset({.seed = 8, .task = 1});
  target.restore(source.serialize());
  CHECK(target == source);
  CHECK(target.step(4).reward == source.step(4).reward);
  CHECK(target == source);
  target.restore(Env(model).serialize());
  CHECK(target == Env(model));
  CHECK(!target.ended());
}

TEST_CASE("a truncated episode stays truncated") {
  Env env(diamond(), {.on_illegal = OnIllegal::penalize});
  env.reset({.seed = 2});
  env.step(0);
  env.step(9);
  Env middle(diamond(), {.on_illegal = OnIllegal::penalize});
  middle.restore(env.serialize());
  CHECK(middle == env);
  CHECK(middle.n_illegal() == 1);
  for (int i = 0; i < 3; ++i) env.step(9);
  CHECK(env.ended());
  middle.restore(env.serialize());
  CHECK(middle == env);
  CHECK(middle.ended());
  CHECK_THROWS_AS(middle.step(4), EpisodeError);
}

TEST_CASE("environments in different states are not equal") {
  const auto model = make_model({});
  Env env(model);
  env.reset({.seed = 3, .task = 0});
  Env other = env;
  other.step(0);
  CHECK(!(env == other));
  env.step(0);
  CHECK(env == other);
  env.step(4);
  other.step(5);
  CHECK(!(env == other));
  Env late(model);
  late.reset({.seed = 3, .task = 0});
  late.reset({.task = 0});
  Env early(model);
  early.reset({.seed = 3, .task = 0});
  CHECK(!(late == early));
}

// --- what is refused ---

// Throws InvalidError and leaves the environment as it was.
void check_refused(Env& env, std::string_view bytes) {
  const Env before = env;
  REQUIRE_THROWS_AS(env.restore(bytes), InvalidError);
  REQUIRE(env == before);
  REQUIRE(env.serialize() == before.serialize());
}

// A state in the middle of an episode and one at its end.
std::vector<std::string> some_states(const std::shared_ptr<const EnvModel>& model) {
  std::vector<std::string> states;
  Env env(model);
  env.reset({.seed = 1, .task = 0});
  testing::Draws draws(1);
  env.step(legal_action(env, draws));
  states.push_back(env.serialize());
  while (env.running()) env.step(legal_action(env, draws));
  states.push_back(env.serialize());
  return states;
}

TEST_CASE("a state with any byte changed, missing or added is refused") {
  for (const char* mode : {"sequential", "refine", "oneshot"}) {
    const auto model = make_model({.mode = mode});
    Env env(model);
    env.reset({.seed = 5, .task = 0});
    for (const std::string& state : some_states(model)) {
      for (std::size_t i = 0; i < state.size(); ++i) {
        for (const int change : {1, 0x80, 0xff}) {
          std::string damaged = state;
          damaged[i] = static_cast<char>(damaged[i] ^ change);
          check_refused(env, damaged);
        }
        check_refused(env, std::string_view(state).substr(0, i));
      }
      check_refused(env, state + '\0');
      check_refused(env, state + state);
      check_refused(env, ' ' + state);
    }
  }
}

// A state whose checksum is that of its content, as one who means harm would write it.
std::string signed_state(std::string state) {
  state.resize(state.size() - sizeof(std::uint64_t));
  const std::uint64_t sum = Hasher().add(std::string_view(state)).digest();
  state.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return state;
}

TEST_CASE("a state that is wrong under a right checksum is refused or restored, never a crash") {
  for (const char* mode : {"sequential", "refine", "oneshot"}) {
    const auto model = make_model({.mode = mode});
    Env env(model);
    env.reset({.seed = 5, .task = 0});
    const Env before = env;
    std::size_t n_refused = 0;
    for (const std::string& state : some_states(model)) {
      REQUIRE(signed_state(state) == state);
      for (std::size_t i = 0; i + sizeof(std::uint64_t) < state.size(); ++i) {
        for (const int change : {1, 0x80, 0xff}) {
          std::string changed = state;
          changed[i] = static_cast<char>(changed[i] ^ change);
          try {
            env.restore(signed_state(changed));
            play_on(env, 1);
            env = before;
          } catch (const InvalidError&) {
            ++n_refused;
          }
          REQUIRE(env == before);
        }
      }
    }
    CHECK(n_refused > 0);
  }
}

TEST_CASE("a state of other tasks, options or limits is refused by saying so") {
  const auto state_of = [](const std::vector<Task>& tasks, const EnvOptions& options) {
    Env env(tasks, options);
    env.reset({.seed = 1});
    return env.serialize();
  };
  const std::vector<Task> tasks{diamond()};
  Env env(tasks, {.mode = "refine"});
  env.reset();
  Task dearer = diamond();
  dearer.options.network = Network::fair;
  std::vector<std::string> others{state_of({dearer}, {.mode = "refine"}),
                                  state_of({diamond(), lone_node()}, {.mode = "refine"}),
                                  state_of({lone_node()}, {.mode = "refine"})};
  for (const EnvOptions& options : std::vector<EnvOptions>{
           {.mode = "place"},
           {.mode = "refine", .reward = Reward::dense},
           {.mode = "refine", .features = Features::full},
           {.mode = "refine", .order = PlaceOrder::topological},
           {.mode = "refine", .on_illegal = OnIllegal::penalize},
           {.mode = "refine", .max_nodes = 5},
           {.mode = "refine", .max_edges = 5},
           {.mode = "refine", .max_devices = 5},
           {.mode = "refine", .memory_penalty = 11},
           {.mode = "refine", .initial = std::vector<DeviceId>(4, DeviceId{0})}}) {
    others.push_back(state_of(tasks, options));
  }
  for (const std::string& other : others) {
    CHECK_THROWS_WITH(env.restore(other), Catch::Contains("of another environment"));
    check_refused(env, other);
  }
  Task renamed = diamond();
  renamed.name = "the same by another name";
  CHECK_NOTHROW(env.restore(state_of({renamed}, {.mode = "refine"})));
}

TEST_CASE("a state of another version, and what is no state, is refused by saying so") {
  Env env(diamond(), {});
  env.reset();
  std::string older = env.serialize();
  older[4] = 0;
  CHECK_THROWS_WITH(env.restore(signed_state(older)),
                    Catch::Contains("version 0") && Catch::Contains("reads version 1"));
  check_refused(env, signed_state(older));
  for (const char* text : {"", "D", "DGES", "DGES\1", "no state at all, but of some length"}) {
    check_refused(env, text);
  }
  CHECK_THROWS_WITH(env.restore("xyz"), Catch::Contains("no serialized state"));
}

}  // namespace
}  // namespace doppler
