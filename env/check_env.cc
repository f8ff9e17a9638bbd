#include "env/check_env.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "graphs/error.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

using Action = std::vector<std::int64_t>;

// One check of one environment: where it is, and its own luck.
class Check {
 public:
  Check(std::shared_ptr<const EnvModel> model, const CheckEnvOptions& options)
      : model_(std::move(model)),
        options_(options),
        is_simulated_(NamedCall::parse(model_->options().engine).name == "simulator") {}

  void run() {
    for (episode_ = 0; episode_ < options_.n_episodes; ++episode_) play();
  }

 private:
  void require(bool holds, const std::string& fault) const {
    if (holds) return;
    throw InvalidError("the environment is at fault in episode " + std::to_string(episode_) +
                       ", step " + std::to_string(step_) + ": " + fault);
  }

  std::uint64_t below(std::uint64_t n) {
    return mix64(options_.seed + 0x9e3779b97f4a7c15ULL * ++n_draws_) % n;
  }

  void check_observation(const Env& env) const {
    const auto& arrays = env.spec().observations;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const ArraySpec& array = arrays[i];
      require(env.observation(i).size() == array.n_bytes(), array.name + " has the wrong size");
      const auto check = [&](auto values) {
        for (const auto x : values) {
          const auto value = static_cast<double>(x);
          require(std::isfinite(value) && value >= array.low && value <= array.high,
                  array.name + " holds " + std::to_string(value) + ", outside [" +
                      std::to_string(array.low) + ", " + std::to_string(array.high) + "]");
        }
      };
      if (array.dtype == DType::float32) check(env.observation_as<float>(i));
      if (array.dtype == DType::int32) check(env.observation_as<std::int32_t>(i));
      if (array.dtype == DType::int8) check(env.observation_as<std::int8_t>(i));
    }
  }

  // The mask's verdict on an action: every number legal in its own part.
  static bool masked(const Env& env, const Action& action) {
    const auto mask = env.action_mask();
    std::size_t first = 0;
    for (std::size_t i = 0; i < action.size(); ++i) {
      if (mask[first + static_cast<std::size_t>(action[i])] == 0) return false;
      first += static_cast<std::size_t>(env.spec().action.sizes[i]);
    }
    return true;
  }

  Action random_action(const Env& env) {
    Action action;
    for (std::int64_t size : env.spec().action.sizes) {
      action.push_back(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(size))));
    }
    return action;
  }

  // Each number legal by the mask, uniformly.
  Action legal_action(const Env& env) {
    Action action;
    const auto mask = env.action_mask();
    std::size_t first = 0;
    std::vector<std::int64_t> legal;
    for (std::int64_t size : env.spec().action.sizes) {
      legal.clear();
      for (std::int64_t i = 0; i < size; ++i) {
        if (mask[first + static_cast<std::size_t>(i)] != 0) legal.push_back(i);
      }
      require(!legal.empty(), "no action is legal, but the episode goes on");
      action.push_back(legal[below(legal.size())]);
      first += static_cast<std::size_t>(size);
    }
    return action;
  }

  void check_mask(const Env& env) {
    const ActionSpec& space = env.spec().action;
    require(env.action_mask().size() == space.mask_size(), "the mask has the wrong size");
    if (space.discrete && space.sizes[0] <= options_.max_actions) {
      for (std::int64_t i = 0; i < space.sizes[0]; ++i) check_verdict(env, {i});
    } else {
      for (int i = 0; i < 20; ++i) check_verdict(env, random_action(env));
    }
  }

  void check_verdict(const Env& env, const Action& action) const {
    require(env.is_legal(action) == masked(env, action),
            "mask and step() disagree on action " + std::to_string(action[0]));
  }

  // Some action that is not legal, if one is found, changes nothing but the count of such actions.
  void check_illegal(const Env& env) {
    Action action = random_action(env);
    for (int i = 0; i < 5 && env.is_legal(action); ++i) action = random_action(env);
    if (env.is_legal(action)) action[0] = env.spec().action.sizes[0];
    if (env.is_legal(action)) return;
    Env copy = env;
    if (env.options().on_illegal == OnIllegal::raise) {
      bool refused = false;
      try {
        copy.step(action);
      } catch (const IllegalActionError&) {
        refused = true;
      }
      require(refused, "an illegal action is accepted");
      require(copy == env, "an illegal action changes the state");
      return;
    }
    const StepResult result = copy.step(action);
    require(result.illegal && result.reward == -1, "an illegal action is not penalised by 1");
    for (std::size_t i = 0; i < env.spec().observations.size(); ++i) {
      if (result.truncated && i + 1 == env.spec().observations.size()) continue;  // the mask
      require(std::ranges::equal(copy.observation(i), env.observation(i)),
              "an illegal action changes " + env.spec().observations[i].name);
    }
  }

  // Real engines measure another time in each run; then only what is observed must be the same.
  void check_twin(const Env& env, const Env& twin, bool same_reward) const {
    const char* const fault = "a copy, restored or run from the same seed, continues differently";
    if (is_simulated_) {
      require(same_reward && env == twin, fault);
      return;
    }
    for (std::size_t i = 0; i < env.spec().observations.size(); ++i) {
      require(std::ranges::equal(env.observation(i), twin.observation(i)), fault);
    }
  }

  void play() {
    step_ = 0;
    const std::uint64_t seed = below(1'000'000);
    Env env(model_);
    env.reset({.seed = seed});
    Env twin(model_);
    twin.reset({.seed = seed});
    check_twin(env, twin, true);
    const double first_time = env.options().mode == "refine" ? env.episode_start_time() : 0;
    double sum = 0;
    while (env.running()) {
      check_observation(env);
      check_mask(env);
      check_illegal(env);
      const Action action = legal_action(env);
      if (below(8) == 0) {
        Env restored(model_);
        restored.restore(env.serialize());
        require(restored == env, "a restored state differs");
        twin = restored;
      }
      const StepResult result = env.step(action);
      const StepResult same = twin.step(action);
      check_twin(env, twin, result.reward == same.reward);
      require(std::isfinite(result.reward), "the reward is not finite");
      sum += result.reward;
      ++step_;
      require(step_ <= env.spec().max_steps, "the episode is longer than the spec says");
    }
    check_observation(env);
    check_end(env, sum, first_time);
  }

  void check_end(Env& env, double sum, double first_time) {
    const EpisodeResult& result = env.result();
    const double scale = env.task().time_scale();
    const double time =
        std::isinf(result.makespan) ? env.options().memory_penalty : result.makespan / scale;
    const double expected = first_time - time;
    require(std::abs(sum - expected) <= 1e-9 * std::max(1.0, std::abs(expected)),
            "rewards sum to " + std::to_string(sum) + ", the makespan says " +
                std::to_string(expected));
    require(env.episode_return() == sum, "the return is not the sum of the rewards");
    if (is_simulated_) {
      Simulator simulator = env.task().simulator();
      const double direct = simulator.makespan(result.assignment.devices, result.engine_seed);
      require(direct == result.makespan, "the makespan is not that of a direct simulation");
    }
    bool refused = false;
    const Env before = env;
    try {
      env.step(Action(env.spec().action.sizes.size(), 0));
    } catch (const EpisodeError&) {
      refused = true;
    }
    require(refused && env == before, "step() after the end is accepted");
  }

  std::shared_ptr<const EnvModel> model_;
  CheckEnvOptions options_;
  bool is_simulated_;
  std::uint64_t n_draws_ = 0;
  int episode_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace

void check_env(std::shared_ptr<const EnvModel> model, const CheckEnvOptions& options) {
  Check(std::move(model), options).run();
}

}  // namespace doppler
