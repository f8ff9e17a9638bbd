// The environment: one episode builds one assignment of one task, and the engine runs it at the
// end.
//
// Modes (what one step decides), features, rewards: DESIGN section 5. An Env is a value: a copy
// continues exactly as its original and shares only what never changes. One thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "env/action_mode.h"
#include "env/env_model.h"
#include "env/env_options.h"
#include "env/partial_schedule.h"
#include "env/spec.h"
#include "graphs/error.h"

namespace doppler {

// An action that is not legal now. The environment is as it was.
class IllegalActionError : public UsageError {
 public:
  using UsageError::UsageError;
};
// step() before reset(), or after the end of the episode.
class EpisodeError : public UsageError {
 public:
  using UsageError::UsageError;
};

struct StepResult {
  double reward = 0;
  bool terminated = false;  // the assignment is complete and measured
  bool truncated = false;   // too many illegal actions
  bool illegal = false;     // this action was (OnIllegal::penalize)
};

// What an episode came to; valid once it is terminated.
struct EpisodeResult {
  double makespan = 0;                // seconds; infinity: out of memory
  double ratio_to_critical_path = 0;  // over the makespan of critical_path_assignment()
  double lower_bound = 0;             // seconds
  std::uint64_t engine_seed = 0;      // the luck of the run
  std::int64_t evaluations = 0;       // of the episode
  Assignment assignment;
  std::string failure;  // why the makespan is infinite; empty otherwise
  friend bool operator==(const EpisodeResult&, const EpisodeResult&) = default;
};

struct ResetOptions {
  std::optional<std::uint64_t> seed = std::nullopt;  // nothing: the luck goes on
  std::optional<std::size_t> task = std::nullopt;    // nothing: drawn, if there are several
};

class Env {
 public:
  explicit Env(std::shared_ptr<const EnvModel> model);
  Env(std::vector<Task> tasks, EnvOptions options);
  Env(Task task, EnvOptions options);

  [[nodiscard]] const EnvModel& model() const { return *model_; }
  [[nodiscard]] const EnvSpec& spec() const { return model_->spec(); }
  [[nodiscard]] const EnvOptions& options() const { return model_->options(); }

  // Starts an episode. Without a seed the stream of luck goes on (the first one is seed 0).
  // Throws UsageError for a task that there is not.
  void reset(const ResetOptions& options = {});

  // One action; a single number where the space is Discrete. Throws IllegalActionError (if so
  // asked), EpisodeError, UsageError for the wrong count of numbers; the state is unchanged then.
  // If the engine itself fails (RunError), the episode is lost: reset(). No allocation, except in
  // the last step of an episode.
  StepResult step(std::span<const std::int64_t> action);
  StepResult step(std::int64_t action) { return step(std::span(&action, 1)); }

  // Whether step() would accept it.
  [[nodiscard]] bool is_legal(std::span<const std::int64_t> action) const;
  [[nodiscard]] bool is_legal(std::int64_t action) const { return is_legal(std::span(&action, 1)); }
  // 1: legal; [mask_size]. Several numbers: one part each, all combinations are legal.
  [[nodiscard]] std::span<const std::int8_t> action_mask() const;
  [[nodiscard]] std::vector<std::int64_t> legal_actions() const;  // Discrete alone

  // Array number i of spec().observations as raw bytes; valid until the next reset, step or copy.
  [[nodiscard]] std::span<const std::byte> observation(std::size_t i) const;
  template <class T>
  [[nodiscard]] std::span<const T> observation_as(std::size_t i) const {
    const auto bytes = observation(i);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  [[nodiscard]] bool running() const { return running_; }
  // There was an episode, and it is over: terminated, truncated, or lost.
  [[nodiscard]] bool ended() const { return !running_ && n_draws_ > 0; }
  [[nodiscard]] std::size_t task_index() const { return state_.task; }
  [[nodiscard]] const Task& task() const { return state_.placement().task(); }
  [[nodiscard]] const PartialSchedule& schedule() const { return state_.schedule(); }
  // The node whose device is decided next; -1: none.
  [[nodiscard]] NodeId node() const { return state_.node; }
  [[nodiscard]] bool selecting() const { return state_.selecting; }
  [[nodiscard]] double episode_return() const { return return_; }  // penalties apart
  // `refine`: the makespan of the first assignment, in time scales; 0 in other modes.
  [[nodiscard]] double episode_start_time() const { return start_time_; }
  // Legal steps of the episode so far.
  [[nodiscard]] std::int64_t n_steps() const {
    return static_cast<std::int64_t>(history_.size() / spec().action.sizes.size());
  }
  [[nodiscard]] std::int64_t n_illegal() const { return n_illegal_; }
  // Throws EpisodeError unless the last episode is terminated.
  [[nodiscard]] const EpisodeResult& result() const;

  // The whole state as bytes: version, what it is tied to, the decisions of the episode. restore()
  // gives the same state; it throws InvalidError for bytes that are damaged, of another version, or
  // of another environment (tasks, options), and the state is unchanged then.
  [[nodiscard]] std::string serialize() const;
  void restore(std::string_view bytes);

  // Whether two environments of one model are in the same state, bit for bit.
  friend bool operator==(const Env& a, const Env& b);

 private:
  // Numbers of the dynamic arrays, in the order of the spec.
  struct Arrays {
    std::vector<std::vector<std::byte>> dynamic;
    friend bool operator==(const Arrays&, const Arrays&) = default;
  };

  // The predecessors of one node on one device: seconds.
  struct Neighbours {
    double compute = 0;
    double earliest_start = std::numeric_limits<double>::infinity();  // none is there
    double latest_end = 0;
  };

  void begin_episode(std::size_t task);
  // One evaluation; in time scales.
  double measure(const Assignment& assignment);
  void finish();
  [[nodiscard]] bool measures_each_step() const;
  void observe_placed(NodeId node);
  void observe_all_placed();
  void observe();
  void write_mask();
  void write_device_features(NodeId node, std::span<float> features);
  void write_full_features(NodeId node, std::span<float> features);
  void write_pair_features();
  StepResult refuse(std::span<const std::int64_t> action);
  template <class T>
  std::span<T> array(std::size_t dynamic_index);
  std::uint64_t draw();

  std::shared_ptr<const EnvModel> model_;
  std::shared_ptr<const ActionMode> mode_;
  EpisodeState state_;
  Arrays arrays_;
  bool running_ = false;
  bool terminated_ = false;
  bool features_written_ = false;  // device_features are not zeros
  std::uint64_t luck_seed_ = 0;
  std::uint64_t n_draws_ = 0;
  std::uint64_t engine_seed_ = 0;
  std::uint64_t initial_seed_ = 0;  // `refine`: of the random assignment
  double return_ = 0;
  double start_time_ = 0;
  double last_time_ = 0;  // time scales: what rewards have told so far
  std::int64_t n_illegal_ = 0;
  std::vector<std::int64_t> history_;  // numbers of every legal action
  std::vector<Measurement> measured_;  // of the episode
  std::size_t n_measured_ = 0;
  std::vector<double> device_bytes_;  // output bytes of the nodes placed there
  EpisodeResult result_;
  // Scratch, one number a device.
  std::vector<double> starts_;
  std::vector<double> incoming_;
  std::vector<double> partners_;
  std::vector<double> siblings_;
  std::vector<Neighbours> neighbours_;
};

}  // namespace doppler
