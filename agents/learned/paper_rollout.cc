#include "agents/learned/paper_rollout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/learned/dense_rows.h"

namespace doppler {

namespace {

constexpr std::size_t kFeatures = kPaperNodeFeatures;
static_assert(kPaperNodeFeatures == kPaperDeviceFeatures);

// Scores to log-probabilities of one each; score i stands for counts[i] alternatives.
void log_softmax(std::span<float> scores, std::span<const double> counts) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    sum += counts[i] * std::exp(static_cast<double>(scores[i] - largest));
  }
  const double total = largest + std::log(sum);
  for (float& score : scores) score = static_cast<float>(score - total);
}

}  // namespace

PaperRollout::PaperRollout(std::shared_ptr<const PaperTask> task, PaperHalves halves)
    : task_(std::move(task)),
      halves_(halves),
      schedule_(task_->model),
      index_of_row_(task_->row_state.size()),
      mark_(task_->row_state.size(), 0),
      device_scores_(task_->model->n_devices()),
      ones_(task_->model->n_devices(), 1),
      place_features_(task_->model->n_devices() * kFeatures),
      starts_(task_->model->n_devices()) {}

void PaperRollout::begin(const PaperWeights& weights, const PaperEmbedding& embedding) {
  weights_ = &weights;
  embedding_ = &embedding;
  device_sums_.assign(ones_.size() * weights.hidden, 0);
  moments_.resize(2 * weights.hidden);
}

// The first `hidden` of every `stride` inputs: act(own features).
void PaperRollout::own_layer(const PaperWeights::Policy& policy, std::span<const double> features,
                             std::size_t stride) {
  const std::size_t hidden = weights_->hidden;
  for (std::size_t r = 0; r * kFeatures < features.size(); ++r) {
    float* const out = inputs_.data() + r * stride;
    std::copy_n(policy.own.begin() + static_cast<std::ptrdiff_t>(kFeatures * hidden), hidden, out);
    float row[kFeatures];
    for (std::size_t c = 0; c < kFeatures; ++c) {
      row[c] = static_cast<float>(features[r * kFeatures + c]);
    }
    add_product(row, 1, kFeatures, policy.own.data(), hidden, out);
    leaky_relu(out, hidden, kPaperSlope);
  }
}

// Scores from hidden_, which holds the base and W's products.
void PaperRollout::finish_scores(const PaperWeights::Policy& policy,
                                 std::span<float> scores) const {
  const std::size_t head = weights_->head;
  for (std::size_t r = 0; r < scores.size(); ++r) {
    float score = policy.out[head];
    for (std::size_t m = 0; m < head; ++m) {
      const float x = hidden_[r * head + m];
      score += policy.out[m] * (x > 0 ? x : kPaperSlope * x);
    }
    scores[r] = score;
  }
}

std::int32_t PaperRollout::row_index(NodeId node) const {
  return index_of_row_[static_cast<std::size_t>(task_->row_of_node[node.index()])];
}

void PaperRollout::score_candidates(const PartialSchedule& schedule) {
  ++walk_;
  rows_.clear();
  counts_.clear();
  for (NodeId node : schedule.candidates()) {
    const std::int32_t row = task_->row_of_node[node.index()];
    const auto r = static_cast<std::size_t>(row);
    if (mark_[r] != walk_) {
      mark_[r] = walk_;
      index_of_row_[r] = static_cast<std::int32_t>(rows_.size());
      rows_.push_back(row);
      counts_.push_back(0);
    }
    ++counts_[static_cast<std::size_t>(index_of_row_[r])];
  }
  const std::size_t n_rows = rows_.size();
  row_scores_.assign(n_rows, 0);
  if (n_rows > 1) {
    const std::size_t hidden = weights_->hidden;
    const std::size_t head = weights_->head;
    const std::size_t stride = 3 * hidden;
    select_features_.resize(n_rows * kFeatures);
    inputs_.resize(std::max(inputs_.size(), n_rows * stride));
    hidden_.resize(std::max(hidden_.size(), n_rows * head));
    const auto gather = [&](const std::vector<std::int32_t>& of_row,
                            const std::vector<double>& table) {
      tables_.clear();
      for (std::int32_t row : rows_) {
        const auto at = static_cast<std::size_t>(of_row[static_cast<std::size_t>(row)]);
        tables_.push_back(table.data() + at * hidden);
      }
    };
    for (std::size_t r = 0; r < n_rows; ++r) {
      const auto state =
          static_cast<std::size_t>(task_->row_state[static_cast<std::size_t>(rows_[r])]);
      const auto node = static_cast<std::size_t>(task_->plan.representative[state]);
      for (std::size_t c = 0; c < kFeatures; ++c) {
        select_features_[r * kFeatures + c] =
            task_->features.nodes[node * task_->features.n_columns + c];
      }
      std::copy_n(embedding_->select_base.begin() + static_cast<std::ptrdiff_t>(state * head), head,
                  hidden_.begin() + static_cast<std::ptrdiff_t>(r * head));
    }
    standardise(select_features_, kFeatures, counts_);
    own_layer(weights_->select, select_features_, stride);
    gather(task_->row_b_path, embedding_->b_paths);
    standardise_rows(tables_, counts_, hidden, inputs_.data() + hidden, stride, moments_.data());
    gather(task_->row_t_path, embedding_->t_paths);
    standardise_rows(tables_, counts_, hidden, inputs_.data() + 2 * hidden, stride,
                     moments_.data());
    add_product(inputs_.data(), n_rows, stride, weights_->select.combined.data(), head,
                hidden_.data());
    finish_scores(weights_->select, row_scores_);
  }
  if (n_rows > 0) log_softmax(row_scores_, counts_);
}

NodeId PaperRollout::best_candidate(const PartialSchedule& schedule) const {
  NodeId best{-1};
  float best_score = 0;
  for (NodeId node : schedule.candidates()) {
    const float score = row_scores_[static_cast<std::size_t>(row_index(node))];
    const bool better =
        best.value < 0 || score > best_score || (score == best_score && node.value < best.value);
    if (!better) continue;
    best = node;
    best_score = score;
  }
  return best;
}

void PaperRollout::score_devices(const PartialSchedule& schedule, NodeId node) {
  const std::size_t n_devices = ones_.size();
  const std::size_t hidden = weights_->hidden;
  const std::size_t head = weights_->head;
  const std::size_t stride = 2 * hidden;
  const auto state = static_cast<std::size_t>(task_->plan.node_class[node.index()]);
  inputs_.resize(std::max(inputs_.size(), n_devices * stride));
  hidden_.resize(std::max(hidden_.size(), n_devices * head));
  tables_.clear();
  for (std::size_t d = 0; d < n_devices; ++d) {
    tables_.push_back(device_sums_.data() + d * hidden);
    std::copy_n(embedding_->place_base.begin() + static_cast<std::ptrdiff_t>(state * head), head,
                hidden_.begin() + static_cast<std::ptrdiff_t>(d * head));
  }
  paper_device_features(schedule, node, place_features_);
  standardise(place_features_, kFeatures);
  own_layer(weights_->place, place_features_, stride);
  standardise_rows(tables_, ones_, hidden, inputs_.data() + hidden, stride, moments_.data());
  add_product(inputs_.data(), n_devices, stride, weights_->place.combined.data(), head,
              hidden_.data());
  finish_scores(weights_->place, device_scores_);
  log_softmax(device_scores_, ones_);
}

DeviceId PaperRollout::best_device() const {
  const auto best = std::max_element(device_scores_.begin(), device_scores_.end());
  return DeviceId(static_cast<std::int64_t>(best - device_scores_.begin()));
}

NodeId PaperRollout::choose_node(const PartialSchedule& schedule) {
  if (learns_select(halves_)) {
    score_candidates(schedule);
    return best_candidate(schedule);
  }
  const std::vector<double>& levels = task_->model->levels().b_level;
  NodeId best = schedule.candidates().front();
  for (NodeId node : schedule.candidates()) {
    const double more = levels[node.index()] - levels[best.index()];
    if (more > 0 || (more == 0 && node.value < best.value)) best = node;
  }
  return best;
}

DeviceId PaperRollout::choose_device(const PartialSchedule& schedule, NodeId node) {
  if (learns_place(halves_)) {
    score_devices(schedule, node);
    return best_device();
  }
  schedule.earliest_starts(node, starts_);
  const auto best = std::min_element(starts_.begin(), starts_.end());
  return DeviceId(static_cast<std::int64_t>(best - starts_.begin()));
}

void PaperRollout::placed(NodeId node, DeviceId device) {
  if (!learns_place(halves_)) return;
  const std::size_t hidden = weights_->hidden;
  const auto state = static_cast<std::size_t>(task_->plan.node_class[node.index()]);
  const float* const from = embedding_->place_state.data() + state * hidden;
  double* const to = device_sums_.data() + device.index() * hidden;
  for (std::size_t j = 0; j < hidden; ++j) to[j] += from[j];
}

void PaperRollout::record_select(const PartialSchedule& schedule, NodeId chosen, Teacher* teacher,
                                 PaperEpisode& episode) {
  if (rows_.size() < 2) return;
  const std::size_t first = episode.select_row.size();
  episode.select_step.push_back(static_cast<std::int32_t>(episode.node.size()));
  episode.select_row.insert(episode.select_row.end(), rows_.begin(), rows_.end());
  episode.select_count.insert(episode.select_count.end(), counts_.begin(), counts_.end());
  episode.select_target.resize(episode.select_row.size(), 0);
  for (double x : select_features_) episode.select_features.push_back(static_cast<float>(x));
  episode.select_first.push_back(static_cast<std::int32_t>(episode.select_row.size()));
  taught_nodes_.assign(1, chosen);
  if (teacher != nullptr) teacher->nodes(schedule, taught_nodes_);
  for (NodeId node : taught_nodes_) {
    ++episode.select_target[first + static_cast<std::size_t>(row_index(node))];
  }
}

void PaperRollout::record_place(const PartialSchedule& schedule, NodeAndDevice chosen,
                                Teacher* teacher, PaperEpisode& episode) {
  const std::size_t first = episode.place_target.size();
  for (double x : place_features_) episode.place_features.push_back(static_cast<float>(x));
  episode.place_target.resize(first + ones_.size(), 0);
  taught_devices_.assign(1, chosen.device);
  if (teacher != nullptr) teacher->devices(schedule, chosen.node, taught_devices_);
  for (DeviceId device : taught_devices_) episode.place_target[first + device.index()] = 1;
}

void PaperRollout::step(const EpisodeOptions& options, Draws& draws, PartialSchedule& schedule,
                        PaperEpisode& episode) {
  const auto explores = [&] { return options.epsilon > 0 && draws.uniform() < options.epsilon; };
  NodeId node = choose_node(schedule);
  if (learns_select(halves_)) {
    const auto candidates = schedule.candidates();
    if (explores()) node = candidates[draws.below(candidates.size())];
    episode.log_probability += row_scores_[static_cast<std::size_t>(row_index(node))];
    if (options.record) record_select(schedule, node, options.teacher, episode);
  }
  DeviceId device = choose_device(schedule, node);
  if (learns_place(halves_)) {
    if (explores()) device = DeviceId(static_cast<std::int64_t>(draws.below(ones_.size())));
    episode.log_probability += device_scores_[device.index()];
    if (options.record) record_place(schedule, {node, device}, options.teacher, episode);
  }
  episode.node.push_back(node);
  schedule.place(node, device);
  placed(node, device);
}

void PaperRollout::run(const PaperWeights& weights, const PaperEmbedding& embedding,
                       const EpisodeOptions& options, PaperEpisode& episode) {
  begin(weights, embedding);
  schedule_.reset();
  episode.select_step.clear();
  episode.select_first.assign(1, 0);
  episode.select_row.clear();
  episode.select_count.clear();
  episode.select_target.clear();
  episode.select_features.clear();
  episode.node.clear();
  episode.place_target.clear();
  episode.place_features.clear();
  episode.log_probability = 0;
  if (options.teacher != nullptr) options.teacher->begin(task_->model, options.seed);
  Draws draws(options.seed);
  while (!schedule_.complete()) step(options, draws, schedule_, episode);
  episode.assignment = schedule_.assignment();
}

}  // namespace doppler
