#include "env/env.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "graphs/hash.h"

namespace doppler {
namespace {

// Numbers of the dynamic arrays after the static ones; see EnvModel::make_spec().
enum Dynamic : std::size_t { kPlacement, kCandidates, kNode, kPhase, kDeviceFeatures };
constexpr std::size_t kStatic = 6;

bool draws_luck(const RunOptions& options) {
  return options.noise > 0 || options.choice == Choice::random;
}

}  // namespace

Env::Env(std::shared_ptr<const EnvModel> model)
    : model_(std::move(model)),
      mode_(action_modes().at(model_->options().mode).make(model_->options())) {
  state_.model = model_.get();
  for (const EnvTask& task : model_->tasks()) state_.schedules.emplace_back(task.placement);
  const auto& arrays = model_->spec().observations;
  for (std::size_t i = kStatic; i < arrays.size(); ++i) {
    arrays_.dynamic.emplace_back(arrays[i].n_bytes());
  }
  std::ranges::fill(array<std::int32_t>(kPlacement), -1);
  array<std::int32_t>(kNode)[0] = -1;
  array<std::int8_t>(kPhase)[0] = 1;
  device_bytes_.resize(model_->max_devices());
  neighbours_.resize(model_->max_devices());
  for (auto* scratch : {&starts_, &incoming_, &partners_, &siblings_}) {
    scratch->resize(model_->max_devices());
  }
}

Env::Env(std::vector<Task> tasks, EnvOptions options)
    : Env(std::make_shared<const EnvModel>(std::move(tasks), std::move(options))) {}

Env::Env(Task task, EnvOptions options)
    : Env(std::vector<Task>{std::move(task)}, std::move(options)) {}

void Env::reset(const ResetOptions& options) {
  const std::size_t n_tasks = model_->tasks().size();
  if (options.task && *options.task >= n_tasks) {
    throw UsageError("task number " + std::to_string(*options.task) + " of an environment with " +
                     std::to_string(n_tasks) + " tasks, numbered from 0");
  }
  if (options.seed) {
    luck_seed_ = *options.seed;
    n_draws_ = 0;
  }
  // The same number of draws whatever is given, so that later episodes have the same luck.
  const std::uint64_t drawn_task = draw() % n_tasks;
  const std::uint64_t drawn_seed = draw();
  initial_seed_ = draw();
  const std::size_t task = options.task.value_or(static_cast<std::size_t>(drawn_task));
  const RunOptions& run_options = model_->tasks()[task].placement->task().options;
  const bool lucky = draws_luck(run_options) || model_->options().engine != "simulator";
  engine_seed_ = lucky ? drawn_seed : run_options.seed;
  measured_.clear();
  begin_episode(task);
}

void Env::begin_episode(std::size_t task) {
  state_.task = task;
  state_.schedule().reset();
  state_.selecting = false;
  state_.node = NodeId{-1};
  history_.clear();
  history_.reserve(static_cast<std::size_t>(model_->spec().max_steps) *
                   model_->spec().action.sizes.size());
  measured_.reserve(measures_each_step() ? model_->max_nodes() + 1 : 1);
  running_ = true;
  terminated_ = false;
  return_ = 0;
  start_time_ = 0;
  last_time_ = 0;
  n_illegal_ = 0;
  n_measured_ = 0;
  result_ = {};
  std::fill(device_bytes_.begin(), device_bytes_.end(), 0.0);
  mode_->begin(state_);

  auto placement = array<std::int32_t>(kPlacement);
  std::fill(placement.begin(), placement.end(), -1);
  auto candidates = array<std::int8_t>(kCandidates);
  std::fill(candidates.begin(), candidates.end(), std::int8_t{0});
  for (NodeId candidate : state_.schedule().candidates()) candidates[candidate.index()] = 1;
  if (measures_each_step()) {
    const std::size_t n = state_.placement().n_nodes();
    state_.assignment = Assignment(model_->options().initial);
    if (state_.assignment.size() == 0) {
      state_.assignment = Assignment(n, DeviceId{0});
      for (std::size_t v = 0; v < n; ++v) {
        const std::uint64_t bits = mix64(initial_seed_ + 0x9e3779b97f4a7c15ULL * (v + 1));
        state_.assignment.devices[v] =
            DeviceId(static_cast<std::int64_t>(bits % state_.placement().n_devices()));
      }
    }
    for (std::size_t v = 0; v < n; ++v) placement[v] = state_.assignment.devices[v].value;
    start_time_ = measure(state_.assignment);
    last_time_ = start_time_;
  }
  observe();
}

std::uint64_t Env::draw() { return mix64(luck_seed_ + 0x9e3779b97f4a7c15ULL * ++n_draws_); }

bool Env::measures_each_step() const { return model_->options().mode == "refine"; }

StepResult Env::step(std::span<const std::int64_t> action) {
  if (!running_) {
    throw EpisodeError(terminated_ ? "the episode has ended; call reset() before step()"
                                   : "no episode is under way; call reset() before step()");
  }
  if (!is_legal(action)) return refuse(action);
  history_.insert(history_.end(), action.begin(), action.end());
  const std::size_t n_before = state_.schedule().n_placed();
  const ActionEffect effect = mode_->apply(state_, action);

  StepResult result;
  if (effect != ActionEffect::selected) {
    if (state_.schedule().n_placed() == n_before + 1) {
      observe_placed(state_.schedule().last_placed());
    } else {
      observe_all_placed();
    }
    const bool complete = state_.schedule().complete();
    if (effect == ActionEffect::replaced) {
      const double time = measure(state_.assignment);
      result.reward = last_time_ - time;
      last_time_ = time;
    } else if (complete || model_->options().reward == Reward::dense) {
      const double time = complete ? measure(state_.schedule().assignment())
                                   : state_.schedule().makespan() / state_.placement().time_scale();
      result.reward = last_time_ - time;
      last_time_ = time;
    }
    if (complete) finish();
  }
  result.terminated = terminated_;
  return_ += result.reward;
  observe();
  return result;
}

bool Env::is_legal(std::span<const std::int64_t> action) const {
  const std::size_t n = model_->spec().action.sizes.size();
  if (action.size() != n) {
    throw UsageError("an action of " + std::to_string(action.size()) + " numbers; mode " +
                     model_->options().mode + " takes " + std::to_string(n));
  }
  return running_ && mode_->is_legal(state_, action);
}

StepResult Env::refuse(std::span<const std::int64_t> action) {
  if (model_->options().on_illegal == OnIllegal::raise) {
    std::string text = "action";
    for (std::size_t i = 0; i < action.size() && i < 8; ++i) {
      text += " " + std::to_string(action[i]);
    }
    if (action.size() > 8) text += " ...";
    throw IllegalActionError(text + " is not legal; legal: " + mode_->describe_legal(state_));
  }
  ++n_illegal_;
  StepResult result{.reward = -1, .illegal = true};
  result.truncated = n_illegal_ >= static_cast<std::int64_t>(state_.placement().n_nodes());
  if (result.truncated) {
    running_ = false;
    write_mask();
  }
  return result;
}

double Env::measure(const Assignment& assignment) {
  // While a serialized episode is replayed, what was measured is known.
  if (n_measured_ == measured_.size()) {
    try {
      const bool is_last = state_.schedule().complete();
      measured_.push_back(model_->measure(state_.task, assignment, engine_seed_, is_last));
    } catch (...) {
      running_ = false;
      write_mask();
      throw;
    }
  }
  const double makespan = measured_[n_measured_++].makespan;
  return std::isinf(makespan) ? model_->options().memory_penalty
                              : makespan / state_.placement().time_scale();
}

void Env::finish() {
  running_ = false;
  terminated_ = true;
  const EnvTask& task = model_->tasks()[state_.task];
  const Measurement& last = measured_.back();
  result_.makespan = last.makespan;
  result_.failure = last.failure;
  result_.ratio_to_critical_path =
      task.critical_path_makespan > 0 ? last.makespan / task.critical_path_makespan : 1;
  result_.lower_bound = task.lower_bound;
  result_.engine_seed = engine_seed_;
  result_.evaluations = static_cast<std::int64_t>(measured_.size());
  result_.assignment = state_.schedule().assignment();
}

const EpisodeResult& Env::result() const {
  if (!terminated_) throw EpisodeError("the episode has not ended; there is no result yet");
  return result_;
}

void Env::observe_placed(NodeId node) {
  const DeviceId device = state_.schedule().device(node);
  array<std::int32_t>(kPlacement)[node.index()] = device.value;
  auto candidates = array<std::int8_t>(kCandidates);
  candidates[node.index()] = 0;
  for (NodeId successor : state_.placement().successors(node)) {
    candidates[successor.index()] = state_.schedule().is_candidate(successor) ? 1 : 0;
  }
  device_bytes_[device.index()] += model_->tasks()[state_.task].output_bytes[node.index()];
}

void Env::observe_all_placed() {
  auto placement = array<std::int32_t>(kPlacement);
  for (NodeId node : state_.placement().b_level_order()) {
    if (state_.schedule().placed(node) && placement[node.index()] < 0) observe_placed(node);
  }
}

void Env::observe() {
  array<std::int32_t>(kNode)[0] = state_.node.value;
  array<std::int8_t>(kPhase)[0] = state_.selecting && running_ ? 0 : 1;
  auto features = array<float>(kDeviceFeatures);
  if (state_.node.value >= 0 && running_) {
    write_device_features(state_.node, features);
    features_written_ = true;
  } else if (features_written_) {
    std::fill(features.begin(), features.end(), 0.0F);
    features_written_ = false;
  }
  if (arrays_.dynamic.size() > kDeviceFeatures + 2) write_pair_features();
  write_mask();
}

void Env::write_mask() {
  auto mask = array<std::int8_t>(arrays_.dynamic.size() - 1);
  if (running_) {
    mode_->write_mask(state_, mask);
  } else {
    std::fill(mask.begin(), mask.end(), std::int8_t{0});
  }
}

void Env::write_device_features(NodeId node, std::span<float> features) {
  const PlacementModel& placement = state_.placement();
  const PartialSchedule& schedule = state_.schedule();
  const std::size_t n_devices = placement.n_devices();
  const std::size_t width = model_->n_device_features();
  const double scale = 1 / placement.time_scale();
  std::fill(features.begin(), features.end(), 0.0F);
  const std::span<double> starts(starts_.data(), n_devices);
  schedule.earliest_starts(node, starts);
  // Of the node's predecessors on each device.
  Neighbours* const neighbours = neighbours_.data();
  std::fill_n(neighbours, n_devices, Neighbours{});
  NodeId previous{-1};
  for (const PlacementModel::Feed& feed : placement.feeds(node)) {
    const NodeId producer = feed.producer;
    if (producer == previous) continue;
    previous = producer;
    const DeviceId device = schedule.device(producer);
    Neighbours& there = neighbours[device.index()];
    there.compute += placement.costs().compute(producer, device);
    there.earliest_start = std::min(there.earliest_start, schedule.start(producer));
    there.latest_end = std::max(there.latest_end, schedule.end(producer));
  }
  for (std::size_t d = 0; d < n_devices; ++d) {
    float* const row = features.data() + d * width;
    row[0] = static_cast<float>(schedule.device_compute(DeviceId(std::int64_t(d))) * scale);
    if (!std::isinf(neighbours[d].earliest_start)) {
      row[1] = static_cast<float>(neighbours[d].compute * scale);
      row[2] = static_cast<float>(neighbours[d].earliest_start * scale);
      row[3] = static_cast<float>(neighbours[d].latest_end * scale);
    }
    row[4] = static_cast<float>(starts[d] * scale);
  }
  if (width > 5) write_full_features(node, features);
}

void Env::write_full_features(NodeId node, std::span<float> features) {
  const PlacementModel& placement = state_.placement();
  const PartialSchedule& schedule = state_.schedule();
  const std::size_t n_devices = placement.n_devices();
  const std::size_t width = model_->n_device_features();
  const double scale = 1 / placement.time_scale();
  schedule.incoming_transfers(node, std::span(incoming_).first(n_devices));
  schedule.partner_transfers(node, std::span(partners_).first(n_devices));
  schedule.sibling_computes(node, std::span(siblings_).first(n_devices));
  for (std::size_t d = 0; d < n_devices; ++d) {
    float* const row = features.data() + d * width;
    const double memory = placement.task().cluster.device(DeviceId(std::int64_t(d))).memory;
    row[5] = static_cast<float>(incoming_[d] * scale);
    row[6] = static_cast<float>(partners_[d] * scale);
    row[7] = static_cast<float>(siblings_[d] * scale);
    row[8] = static_cast<float>(model_->tasks()[state_.task].device_speed[d]);
    row[9] = static_cast<float>(1 - device_bytes_[d] / std::max(memory, 1.0));
  }
}

void Env::write_pair_features() {
  auto pairs = array<float>(kDeviceFeatures + 1);
  std::fill(pairs.begin(), pairs.end(), 0.0F);
  if (!running_) return;
  const std::size_t block = model_->max_devices() * model_->n_device_features();
  for (NodeId candidate : state_.schedule().candidates()) {
    write_device_features(candidate, pairs.subspan(candidate.index() * block, block));
  }
}

template <class T>
std::span<T> Env::array(std::size_t dynamic_index) {
  auto& bytes = arrays_.dynamic[dynamic_index];
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

std::span<const std::byte> Env::observation(std::size_t i) const {
  if (i < kStatic) return model_->tasks()[state_.task].static_arrays[i];
  return arrays_.dynamic[i - kStatic];
}

std::span<const std::int8_t> Env::action_mask() const {
  return observation_as<std::int8_t>(kStatic + arrays_.dynamic.size() - 1);
}

std::vector<std::int64_t> Env::legal_actions() const {
  if (!model_->spec().action.discrete) {
    throw UsageError("legal_actions() lists single numbers; mode " + model_->options().mode +
                     " takes several: read action_mask()");
  }
  std::vector<std::int64_t> result;
  const auto mask = action_mask();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace doppler
