// What is recorded of our environments: arrays, provenance, and how Minari is told of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/trajectories/episode_encoder.h"
#include "datasets/trajectories/trajectory_recorder.h"
#include "env/env_model.h"
#include "env/step_listener.h"
#include "env/thread_pool.h"
#include "env/vector_env.h"
#include "graphs/registry.h"

namespace doppler {

struct EnvRecordingOptions {
  bool full = false;      // static arrays in each step, as in the environment's own space
  bool timeline = false;  // of each episode: when nodes ran and tensors moved (simulator alone)
};

// Who plays, for the metadata; everything but `agent` may be left out.
struct Provenance {
  std::string agent;                                      // canonical spelling
  std::map<std::string, ParameterValue> parameters = {};  // of the agent, defaults included
  std::optional<std::uint64_t> first_seed = {};           // of episodes that count on from it
  std::int64_t max_evaluations = 0;                       // that the agent may use; 0: not told
  std::string code_version = {};
};

// The metadata of a recording by Minari's rules: spaces, the environment's specification if every
// task can be made by its name, provenance.
std::string recording_metadata(const std::string& id, const EnvModel& model,
                               const EnvRecordingOptions& options, const Provenance& provenance);

// What the episodes of one model have in common. Const members are thread safe.
class EnvRecordingPlan {
 public:
  // Throws UsageError for a timeline of a real engine.
  EnvRecordingPlan(std::shared_ptr<const EnvModel> model, EnvRecordingOptions options);

  [[nodiscard]] const EnvModel& model() const { return *model_; }
  [[nodiscard]] const EpisodeLayout& layout() const { return layout_; }
  // Numbers of the spec's arrays that are recorded in each step, in the order of the layout.
  [[nodiscard]] const std::vector<std::size_t>& recorded() const { return recorded_; }
  // Whether illegal actions are told in infos.
  [[nodiscard]] bool tells_illegal() const;
  struct End {
    std::size_t task = 0;
    std::optional<std::uint64_t> seed = {};
    double episode_return = 0;
    const EpisodeResult* result = nullptr;  // null: truncated
  };
  // Adds what is known at the end.
  void complete(Episode& episode, const End& end) const;

 private:
  void add_timeline(Episode& episode, const End& end) const;

  std::shared_ptr<const EnvModel> model_;
  EnvRecordingOptions options_;
  EpisodeLayout layout_;
  std::vector<std::size_t> recorded_;
  std::vector<std::shared_ptr<const FixedArrays>> fixed_;  // by task
};

// Records one Env. For one thread; a recorder of trajectories serves many.
class EnvRecorder : public StepListener {
 public:
  EnvRecorder(std::shared_ptr<const EnvRecordingPlan> plan, TrajectoryRecorder& trajectories);
  void began(const Env& env, std::uint64_t seed) override { began(env, std::optional(seed)); }
  // Without a seed: the luck went on.
  void began(const Env& env, std::optional<std::uint64_t> seed);
  void stepped(const Env& env, std::span<const std::int64_t> action,
               const StepResult& result) override;

 private:
  void look(const Env& env);

  std::shared_ptr<const EnvRecordingPlan> plan_;
  TrajectoryRecorder& trajectories_;
  EpisodeEncoder encoder_;
  std::optional<std::uint64_t> seed_;
  std::vector<std::span<const std::byte>> observation_;
  std::uint8_t illegal_ = 0;
};

// Records a VectorEnv, in each autoreset mode, with as many threads. One caller at a time.
class VectorEnvRecorder {
 public:
  VectorEnvRecorder(std::shared_ptr<const EnvRecordingPlan> plan, TrajectoryRecorder& trajectories,
                    const VectorEnv& envs);
  // After envs.reset(): with the same seeds and mask.
  void began(std::span<const std::uint64_t> seeds = {}, std::span<const std::uint8_t> mask = {});
  // After envs.step(). Episodes that ended are handed over in the order of the environments.
  void stepped(std::span<const std::int64_t> actions);

 private:
  struct Slot {
    EpisodeEncoder encoder;
    std::optional<std::uint64_t> seed = {};
    std::size_t task = 0;
    double episode_return = 0;
    bool ended = false;  // and waits for its reset
    std::optional<Episode> episode = {};
    std::vector<std::span<const std::byte>> observation = {};
    std::uint8_t illegal = 0;
  };
  enum class Which : std::uint8_t { now, final };
  void look(std::size_t i, Which which);
  void begin(std::size_t i, std::optional<std::uint64_t> seed);
  void step(std::size_t i, std::span<const std::int64_t> action);

  std::shared_ptr<const EnvRecordingPlan> plan_;
  TrajectoryRecorder& trajectories_;
  const VectorEnv& envs_;
  ThreadPool pool_;
  std::vector<Slot> slots_;
};

}  // namespace doppler
