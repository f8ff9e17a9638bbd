#include "datasets/trajectories/env_recording.h"

#include <utility>

#include "executor/simulator/simulator.h"
#include "graphs/error.h"

namespace doppler {
namespace {

constexpr const char* kMask = "action_mask";

template <class T, class Run, class Value>
EncodedArray column(const std::string& path, ElementType type, const std::vector<Run>& runs,
                    const Value& value) {
  std::vector<T> values;
  for (const Run& run : runs) values.push_back(value(run));
  return encode({path, type, {}}, std::as_bytes(std::span(values)));
}

std::span<const std::byte> byte_of(const std::uint8_t& flag) {
  return std::as_bytes(std::span(&flag, 1));
}

}  // namespace

EnvRecordingPlan::EnvRecordingPlan(std::shared_ptr<const EnvModel> model,
                                   EnvRecordingOptions options)
    : model_(std::move(model)), options_(options) {
  if (options.timeline && NamedCall::parse(model_->options().engine).name != "simulator") {
    throw UsageError("timelines are recorded of the simulator alone, not of engine " +
                     model_->options().engine);
  }
  const auto& arrays = model_->spec().observations;
  std::vector<std::size_t> fixed;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].is_static && !options.full) {
      fixed.push_back(i);
      continue;
    }
    recorded_.push_back(i);
    layout_.observations.push_back(
        {"observations/" + arrays[i].name, element_type(arrays[i].dtype), arrays[i].shape});
  }
  const ActionSpec& action = model_->spec().action;
  layout_.actions.push_back({"actions", ElementType::int64, {}});
  if (!action.discrete) {
    layout_.actions[0].shape = {static_cast<std::int64_t>(action.sizes.size())};
  }
  if (tells_illegal()) layout_.observations.push_back({"infos/illegal", ElementType::boolean, {}});
  layout_.links.emplace_back(std::string("infos/") + kMask, std::string("observations/") + kMask);
  for (const EnvTask& task : model_->tasks()) {
    FixedArrays encoded;
    for (const std::size_t i : fixed) {
      encoded.push_back(encode({arrays[i].name, element_type(arrays[i].dtype), arrays[i].shape},
                               task.static_arrays[i]));
    }
    fixed_.push_back(encoded.empty() ? nullptr
                                     : std::make_shared<const FixedArrays>(std::move(encoded)));
  }
}

bool EnvRecordingPlan::tells_illegal() const {
  return model_->options().on_illegal == OnIllegal::penalize;
}

void EnvRecordingPlan::complete(Episode& episode, const End& end) const {
  Attributes& attributes = episode.attributes;
  if (end.seed) attributes.emplace_back("seed", *end.seed);
  attributes.emplace_back("return", end.episode_return);
  if (model_->tasks().size() > 1) {
    attributes.emplace_back("task", model_->tasks()[end.task].placement->task().name);
    attributes.emplace_back("task_index", static_cast<std::int64_t>(end.task));
  }
  episode.fixed = fixed_[end.task];
  if (end.result == nullptr) return;
  attributes.emplace_back("makespan", end.result->makespan);
  attributes.emplace_back("ratio_to_critical_path", end.result->ratio_to_critical_path);
  attributes.emplace_back("lower_bound", end.result->lower_bound);
  attributes.emplace_back("evaluations", end.result->evaluations);
  attributes.emplace_back("engine_seed", end.result->engine_seed);
  if (!end.result->failure.empty()) attributes.emplace_back("failure", end.result->failure);
  if (options_.timeline) add_timeline(episode, end);
}

void EnvRecordingPlan::add_timeline(Episode& episode, const End& end) const {
  const Task& task = model_->tasks()[end.task].placement->task();
  RunOptions options = task.options;
  options.seed = end.result->engine_seed;
  options.record_timeline = true;
  Simulator simulator(task.graph, task.cluster, task.cost_model, options);
  const Execution execution = simulator.run(end.result->assignment);
  const auto node = [&](const char* name, ElementType type, auto value) {
    using T = std::decay_t<decltype(value(execution.nodes[0]))>;
    episode.arrays.push_back(
        column<T>(std::string("timeline/node_") + name, type, execution.nodes, value));
  };
  node("device", ElementType::int32, [](const NodeRun& run) { return run.device.value; });
  node("ready", ElementType::float64, [](const NodeRun& run) { return run.ready; });
  node("start", ElementType::float64, [](const NodeRun& run) { return run.start; });
  node("end", ElementType::float64, [](const NodeRun& run) { return run.end; });
  if (execution.transfers.empty()) return;
  const auto transfer = [&](const char* name, ElementType type, auto value) {
    using T = std::decay_t<decltype(value(execution.transfers[0]))>;
    episode.arrays.push_back(
        column<T>(std::string("timeline/transfer_") + name, type, execution.transfers, value));
  };
  transfer("tensor", ElementType::int32,
           [](const TransferRun& run) { return run.of_input ? -1 : run.tensor.value; });
  transfer("input", ElementType::int32,
           [](const TransferRun& run) { return run.of_input ? run.input.value : -1; });
  transfer("from", ElementType::int32, [](const TransferRun& run) { return run.from.value; });
  transfer("to", ElementType::int32, [](const TransferRun& run) { return run.to.value; });
  transfer("channel", ElementType::int32, [](const TransferRun& run) { return run.channel.value; });
  transfer("start", ElementType::float64, [](const TransferRun& run) { return run.start; });
  transfer("end", ElementType::float64, [](const TransferRun& run) { return run.end; });
  transfer("bytes", ElementType::float64, [](const TransferRun& run) { return run.bytes; });
}

EnvRecorder::EnvRecorder(std::shared_ptr<const EnvRecordingPlan> plan,
                         TrajectoryRecorder& trajectories)
    : plan_(std::move(plan)),
      trajectories_(trajectories),
      encoder_(plan_->layout()),
      observation_(plan_->layout().observations.size()) {}

void EnvRecorder::look(const Env& env) {
  const auto& recorded = plan_->recorded();
  for (std::size_t k = 0; k < recorded.size(); ++k) observation_[k] = env.observation(recorded[k]);
  if (plan_->tells_illegal()) observation_.back() = byte_of(illegal_);
}

void EnvRecorder::began(const Env& env, std::optional<std::uint64_t> seed) {
  seed_ = seed;
  illegal_ = 0;
  look(env);
  encoder_.begin(observation_);
}

void EnvRecorder::stepped(const Env& env, std::span<const std::int64_t> action,
                          const StepResult& result) {
  if (!encoder_.running()) {
    throw EpisodeError("the recorder does not know this episode; it must be told of the reset");
  }
  illegal_ = result.illegal ? 1 : 0;
  look(env);
  const std::span<const std::byte> bytes = std::as_bytes(action);
  encoder_.step(std::span(&bytes, 1), {result.reward, result.terminated, result.truncated},
                observation_);
  if (!result.terminated && !result.truncated) return;
  Episode episode = encoder_.finish();
  plan_->complete(episode, {.task = env.task_index(),
                            .seed = seed_,
                            .episode_return = env.episode_return(),
                            .result = result.terminated ? &env.result() : nullptr});
  trajectories_.add(std::move(episode));
}

VectorEnvRecorder::VectorEnvRecorder(std::shared_ptr<const EnvRecordingPlan> plan,
                                     TrajectoryRecorder& trajectories, const VectorEnv& envs)
    : plan_(std::move(plan)),
      trajectories_(trajectories),
      envs_(envs),
      pool_(envs.options().n_threads) {
  slots_.reserve(envs.size());
  for (std::size_t i = 0; i < envs.size(); ++i) {
    slots_.push_back({.encoder = EpisodeEncoder(plan_->layout())});
    slots_.back().observation.resize(plan_->layout().observations.size());
  }
}

void VectorEnvRecorder::look(std::size_t i, Which which) {
  Slot& slot = slots_[i];
  const auto& recorded = plan_->recorded();
  for (std::size_t k = 0; k < recorded.size(); ++k) {
    const std::size_t a = recorded[k];
    const std::size_t size = envs_.spec().observations[a].n_bytes();
    const auto all = which == Which::final ? envs_.final_observation(a) : envs_.observation(a);
    slot.observation[k] = all.subspan(i * size, size);
  }
  if (plan_->tells_illegal()) slot.observation.back() = byte_of(slot.illegal);
}

void VectorEnvRecorder::begin(std::size_t i, std::optional<std::uint64_t> seed) {
  Slot& slot = slots_[i];
  slot.seed = seed;
  slot.task = envs_.env(i).task_index();
  slot.episode_return = 0;
  slot.ended = false;
  slot.illegal = 0;
  look(i, Which::now);
  slot.encoder.begin(slot.observation);
}

void VectorEnvRecorder::began(std::span<const std::uint64_t> seeds,
                              std::span<const std::uint8_t> mask) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!mask.empty() && mask[i] == 0) continue;
    begin(i, seeds.empty() ? std::nullopt : std::optional(seeds[i]));
  }
}

void VectorEnvRecorder::step(std::size_t i, std::span<const std::int64_t> action) {
  Slot& slot = slots_[i];
  if (slot.ended) {  // next_step: this step was its reset
    begin(i, std::nullopt);
    return;
  }
  const bool terminated = envs_.terminated()[i] != 0;
  const bool truncated = envs_.truncated()[i] != 0;
  const bool ends = terminated || truncated;
  const bool is_reset = ends && envs_.options().autoreset == Autoreset::same_step;
  slot.illegal = envs_.illegal()[i];
  look(i, is_reset ? Which::final : Which::now);
  const std::span<const std::byte> bytes = std::as_bytes(action);
  const double reward = envs_.rewards()[i];
  slot.encoder.step(std::span(&bytes, 1), {reward, terminated, truncated}, slot.observation);
  if (slot.illegal == 0) slot.episode_return += reward;
  if (!ends) return;
  Episode episode = slot.encoder.finish();
  plan_->complete(episode, {.task = slot.task,
                            .seed = slot.seed,
                            .episode_return = slot.episode_return,
                            .result = terminated ? &envs_.result(i) : nullptr});
  slot.episode = std::move(episode);
  slot.ended = envs_.options().autoreset == Autoreset::next_step;
  if (is_reset) begin(i, std::nullopt);
}

void VectorEnvRecorder::stepped(std::span<const std::int64_t> actions) {
  const std::size_t width = actions.size() / slots_.size();
  for (const Slot& slot : slots_) {
    if (slot.encoder.running() || slot.ended) continue;
    throw EpisodeError("the recorder does not know an episode; it must be told of the reset");
  }
  pool_.run(slots_.size(), [&](std::size_t begin_of, std::size_t end_of) {
    for (std::size_t i = begin_of; i < end_of; ++i) step(i, actions.subspan(i * width, width));
  });
  for (Slot& slot : slots_) {
    if (!slot.episode) continue;
    trajectories_.add(std::move(*slot.episode));
    slot.episode.reset();
  }
}

}  // namespace doppler
