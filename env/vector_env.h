// Many environments of one model, stepped together on a pool of threads, with batched arrays.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "env/env.h"
#include "env/env_model.h"
#include "env/thread_pool.h"

namespace doppler {

// When a finished environment starts anew; Gymnasium's three modes.
enum class Autoreset : std::uint8_t {
  next_step,  // at the next step, whose action is ignored: reward 0, the first observation
  same_step,  // within the step that ends it; what was last seen is in final_observation()
  disabled    // when reset() names it; until then it must not be stepped
};
std::string_view to_string(Autoreset autoreset);
Autoreset parse_autoreset(std::string_view name);  // throws UsageError that lists the names

struct VectorEnvOptions {
  Autoreset autoreset = Autoreset::next_step;
  int n_threads = 0;  // 0: one a core
};

// One caller at a time. Results do not depend on the number of threads. After a fork, the child's
// first call makes threads of its own.
class VectorEnv {
 public:
  // Throws UsageError for no environments, more than 2^20, or more threads than ThreadPool takes.
  VectorEnv(std::shared_ptr<const EnvModel> model, std::size_t n_envs,
            VectorEnvOptions options = {});
  ~VectorEnv();
  VectorEnv(const VectorEnv&) = delete;
  VectorEnv& operator=(const VectorEnv&) = delete;

  [[nodiscard]] const EnvModel& model() const { return *model_; }
  [[nodiscard]] const EnvSpec& spec() const { return model_->spec(); }
  [[nodiscard]] const VectorEnvOptions& options() const { return options_; }
  [[nodiscard]] std::size_t size() const { return envs_.size(); }
  [[nodiscard]] const Env& env(std::size_t i) const { return envs_[i]; }

  // Starts an episode in every environment, or in those whose `mask` is true; `seeds` has one seed
  // for each environment, or is empty: the luck goes on. Throws UsageError for other lengths.
  void reset(std::span<const std::uint64_t> seeds = {}, std::span<const std::uint8_t> mask = {});
  // The seeds s, s + 1, ... as Gymnasium gives them.
  void reset(std::uint64_t seed);

  // `actions` is [size(), numbers of an action]. Throws before anything is stepped: UsageError for
  // the wrong length, EpisodeError for an environment that is not under way, IllegalActionError
  // that names the environment (OnIllegal::raise). What the arrays below tell is of this step.
  void step(std::span<const std::int64_t> actions);

  // Array number i of spec().observations, [size(), shape], contiguous; valid until the next call.
  // Static ones change only when an environment gets another task; see static_version().
  [[nodiscard]] std::span<const std::byte> observation(std::size_t i) const;
  [[nodiscard]] std::uint64_t static_version() const { return static_version_; }
  // `same_step`: the last observation of those environments that ended in this step; what it holds
  // of others means nothing.
  [[nodiscard]] std::span<const std::byte> final_observation(std::size_t i) const;
  [[nodiscard]] std::span<const double> rewards() const { return rewards_; }
  [[nodiscard]] std::span<const std::uint8_t> terminated() const { return terminated_; }
  [[nodiscard]] std::span<const std::uint8_t> truncated() const { return truncated_; }
  [[nodiscard]] std::span<const std::uint8_t> illegal() const { return illegal_; }
  // Of each environment that ended in this step by terminating; others as they were.
  [[nodiscard]] const EpisodeResult& result(std::size_t i) const { return results_[i]; }

  // All states, exact, as of Env::serialize(): an environment that waits for its reset waits again.
  // restore() throws InvalidError that names the environment, and changes nothing then.
  [[nodiscard]] std::vector<std::string> serialize() const;
  void restore(std::span<const std::string> states);

 private:
  void for_all(const std::function<void(std::size_t)>& work);
  void check_actions(std::span<const std::int64_t> actions) const;
  void step_one(std::size_t i, std::span<const std::int64_t> action);
  void copy_dynamic(std::size_t i, std::vector<std::vector<std::byte>>& arrays) const;
  void copy_static(std::size_t i, std::vector<std::vector<std::byte>>& arrays) const;
  void copy_changed_static();

  std::shared_ptr<const EnvModel> model_;
  VectorEnvOptions options_;
  std::vector<Env> envs_;
  std::vector<std::uint8_t> finished_;  // next_step: to be reset at the next step
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<std::vector<std::byte>> final_arrays_;
  std::vector<std::size_t> shown_task_;  // whose static arrays are shown
  std::uint64_t static_version_ = 0;
  std::vector<double> rewards_;
  std::vector<std::uint8_t> terminated_;
  std::vector<std::uint8_t> truncated_;
  std::vector<std::uint8_t> illegal_;
  std::vector<EpisodeResult> results_;
  std::unique_ptr<ThreadPool> pool_;
  pid_t pool_process_ = 0;
};

}  // namespace doppler
