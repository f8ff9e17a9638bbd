#include "env/vector_env.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "graphs/enum_names.h"
#include "graphs/error.h"

namespace doppler {
namespace {

constexpr std::size_t kMaxEnvs = std::size_t{1} << 20;
constexpr EnumName<Autoreset> kAutoresets[] = {{Autoreset::next_step, "next_step"},
                                               {Autoreset::same_step, "same_step"},
                                               {Autoreset::disabled, "disabled"}};

}  // namespace

std::string_view to_string(Autoreset autoreset) {
  return enum_name<Autoreset>(kAutoresets, autoreset);
}
Autoreset parse_autoreset(std::string_view name) {
  return parse_enum<Autoreset>(kAutoresets, "autoreset mode", name);
}

VectorEnv::VectorEnv(std::shared_ptr<const EnvModel> model, std::size_t n_envs,
                     VectorEnvOptions options)
    : model_(std::move(model)), options_(options) {
  if (n_envs == 0 || n_envs > kMaxEnvs) {
    throw UsageError(std::to_string(n_envs) + " environments; use 1 to " +
                     std::to_string(kMaxEnvs));
  }
  if (options_.n_threads < 0 || options_.n_threads > ThreadPool::kMaxThreads) {
    throw UsageError(std::to_string(options_.n_threads) + " threads; use 0 (one a core) to " +
                     std::to_string(ThreadPool::kMaxThreads));
  }
  envs_.assign(n_envs, Env(model_));
  finished_.assign(n_envs, 0);
  for (const ArraySpec& array : spec().observations) {
    arrays_.emplace_back(n_envs * array.n_bytes());
    // Static arrays of a single task are what they were before the reset.
    const bool kept = options.autoreset == Autoreset::same_step &&
                      (!array.is_static || model_->tasks().size() > 1);
    final_arrays_.emplace_back(kept ? n_envs * array.n_bytes() : 0);
  }
  shown_task_.assign(n_envs, model_->tasks().size());
  rewards_.assign(n_envs, 0);
  terminated_.assign(n_envs, 0);
  truncated_.assign(n_envs, 0);
  illegal_.assign(n_envs, 0);
  results_.resize(n_envs);
}

VectorEnv::~VectorEnv() {
  // The threads of a parent process do not exist here and cannot be waited for.
  if (pool_process_ != getpid()) static_cast<void>(pool_.release());
}

void VectorEnv::for_all(const std::function<void(std::size_t)>& work) {
  if (pool_process_ != getpid()) {
    static_cast<void>(pool_.release());
    pool_ = std::make_unique<ThreadPool>(options_.n_threads);
    pool_process_ = getpid();
  }
  pool_->run(envs_.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) work(i);
  });
}

void VectorEnv::reset(std::uint64_t seed) {
  std::vector<std::uint64_t> seeds(size());
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = seed + i;
  reset(seeds);
}

void VectorEnv::reset(std::span<const std::uint64_t> seeds, std::span<const std::uint8_t> mask) {
  const auto check = [&](std::size_t given, const char* what) {
    if (given == 0 || given == size()) return;
    throw UsageError(std::to_string(given) + " " + what + " for " + std::to_string(size()) +
                     " environments; give one each, or none");
  };
  check(seeds.size(), "seeds");
  check(mask.size(), "mask elements");
  for_all([&](std::size_t i) {
    rewards_[i] = 0;
    terminated_[i] = truncated_[i] = illegal_[i] = 0;
    if (!mask.empty() && mask[i] == 0) return;
    ResetOptions options;
    if (!seeds.empty()) options.seed = seeds[i];
    envs_[i].reset(options);
    finished_[i] = 0;
    copy_dynamic(i, arrays_);
  });
  copy_changed_static();
}

void VectorEnv::check_actions(std::span<const std::int64_t> actions) const {
  const std::size_t width = spec().action.sizes.size();
  if (actions.size() != size() * width) {
    throw UsageError(std::to_string(actions.size()) + " numbers as actions of " +
                     std::to_string(size()) + " environments; mode " + model_->options().mode +
                     " takes " + std::to_string(width) + " each");
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (finished_[i] != 0 && options_.autoreset == Autoreset::next_step) continue;
    const std::string where = "environment " + std::to_string(i) + ": ";
    if (!envs_[i].running()) {
      throw EpisodeError(where + "no episode is under way; reset() it before step()");
    }
    if (model_->options().on_illegal == OnIllegal::raise &&
        !envs_[i].is_legal(actions.subspan(i * width, width))) {
      try {
        Env copy = envs_[i];
        copy.step(actions.subspan(i * width, width));
      } catch (const IllegalActionError& error) {
        throw IllegalActionError(where + error.what());
      }
    }
  }
}

void VectorEnv::step(std::span<const std::int64_t> actions) {
  check_actions(actions);
  const std::size_t width = spec().action.sizes.size();
  for_all([&](std::size_t i) { step_one(i, actions.subspan(i * width, width)); });
  copy_changed_static();
}

void VectorEnv::step_one(std::size_t i, std::span<const std::int64_t> action) {
  Env& env = envs_[i];
  if (finished_[i] != 0) {
    env.reset();
    finished_[i] = 0;
    rewards_[i] = 0;
    terminated_[i] = truncated_[i] = illegal_[i] = 0;
    copy_dynamic(i, arrays_);
    return;
  }
  const StepResult result = env.step(action);
  rewards_[i] = result.reward;
  terminated_[i] = result.terminated ? 1 : 0;
  truncated_[i] = result.truncated ? 1 : 0;
  illegal_[i] = result.illegal ? 1 : 0;
  if (result.terminated) results_[i] = env.result();
  if (result.terminated || result.truncated) {
    if (options_.autoreset == Autoreset::same_step) {
      copy_dynamic(i, final_arrays_);
      if (model_->tasks().size() > 1) copy_static(i, final_arrays_);
      env.reset();
    } else if (options_.autoreset == Autoreset::next_step) {
      finished_[i] = 1;
    }
  }
  copy_dynamic(i, arrays_);
}

void VectorEnv::copy_dynamic(std::size_t i, std::vector<std::vector<std::byte>>& arrays) const {
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    if (spec().observations[a].is_static) continue;
    const auto from = envs_[i].observation(a);
    std::memcpy(arrays[a].data() + i * from.size(), from.data(), from.size());
  }
}

void VectorEnv::copy_static(std::size_t i, std::vector<std::vector<std::byte>>& arrays) const {
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    if (!spec().observations[a].is_static) continue;
    const auto from = envs_[i].observation(a);
    std::memcpy(arrays[a].data() + i * from.size(), from.data(), from.size());
  }
}

void VectorEnv::copy_changed_static() {
  bool changed = false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (shown_task_[i] == envs_[i].task_index()) continue;
    shown_task_[i] = envs_[i].task_index();
    copy_static(i, arrays_);
    changed = true;
  }
  if (changed) ++static_version_;
}

std::span<const std::byte> VectorEnv::observation(std::size_t i) const { return arrays_[i]; }

std::span<const std::byte> VectorEnv::final_observation(std::size_t i) const {
  const bool kept = model_->tasks().size() > 1 || !spec().observations[i].is_static;
  return kept ? final_arrays_[i] : arrays_[i];
}

std::vector<std::string> VectorEnv::serialize() const {
  std::vector<std::string> states;
  for (std::size_t i = 0; i < size(); ++i) {
    states.push_back(envs_[i].serialize());
  }
  return states;
}

void VectorEnv::restore(std::span<const std::string> states) {
  if (states.size() != size()) {
    throw InvalidError(std::to_string(states.size()) + " states for " + std::to_string(size()) +
                       " environments; give one each");
  }
  std::vector<Env> next(size(), Env(model_));
  for (std::size_t i = 0; i < size(); ++i) {
    try {
      next[i].restore(states[i]);
    } catch (const InvalidError& error) {
      throw InvalidError("environment " + std::to_string(i) + ": " + error.what());
    }
  }
  envs_ = std::move(next);
  for (std::size_t i = 0; i < size(); ++i) {
    finished_[i] = options_.autoreset == Autoreset::next_step && envs_[i].ended() ? 1 : 0;
    rewards_[i] = 0;
    terminated_[i] = truncated_[i] = illegal_[i] = 0;
    copy_dynamic(i, arrays_);
  }
  copy_changed_static();
}

}  // namespace doppler
