#include "agents/learned/joint_rollout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/learned/dense_rows.h"

namespace doppler {

namespace {

constexpr std::size_t kFeatures = kPaperDeviceFeatures;

}  // namespace

JointRollout::JointRollout(std::shared_ptr<const PaperTask> task)
    : task_(std::move(task)),
      group_of_node_(task_->row_of_node.size()),
      group_of_row_(task_->row_state.size()),
      mark_(task_->row_state.size(), 0),
      ones_(task_->model->n_devices(), 1),
      of_node_(ones_.size() * kFeatures) {}

void JointRollout::begin(const JointWeights& weights, const JointEmbedding& embedding) {
  weights_ = &weights;
  embedding_ = &embedding;
  device_sums_.assign(ones_.size() * weights.hidden, 0);
  moments_.resize(2 * weights.hidden);
}

void JointRollout::find_groups(const PartialSchedule& schedule) {
  ++walk_;
  groups_.clear();
  features_.clear();
  const std::size_t n_values = of_node_.size();
  for (NodeId node : schedule.candidates()) {
    const std::int32_t row = task_->row_of_node[node.index()];
    const auto r = static_cast<std::size_t>(row);
    paper_device_features(schedule, node, of_node_);
    if (mark_[r] != walk_) {
      mark_[r] = walk_;
      group_of_row_[r] = -1;
    }
    std::int32_t group = group_of_row_[r];
    while (group >= 0 &&
           !std::equal(of_node_.begin(), of_node_.end(),
                       features_.begin() + static_cast<std::ptrdiff_t>(
                                               static_cast<std::size_t>(group) * n_values))) {
      group = groups_[static_cast<std::size_t>(group)].next;
    }
    if (group < 0) {
      group = static_cast<std::int32_t>(groups_.size());
      groups_.push_back({.row = row, .next = group_of_row_[r], .smallest = node, .count = 0});
      group_of_row_[r] = group;
      features_.insert(features_.end(), of_node_.begin(), of_node_.end());
    }
    Group& found = groups_[static_cast<std::size_t>(group)];
    found.count += 1;
    found.smallest = std::min(found.smallest, node);
    group_of_node_[node.index()] = group;
  }
}

void JointRollout::score(const PartialSchedule& schedule) {
  find_groups(schedule);
  const std::size_t n_devices = ones_.size();
  const std::size_t n_pairs = groups_.size() * n_devices;
  scores_.assign(n_pairs, 0);
  if (n_pairs == 0) return;
  counts_.clear();
  for (const Group& group : groups_) counts_.insert(counts_.end(), n_devices, group.count);
  standardise(features_, kFeatures, counts_);

  const std::size_t hidden = weights_->hidden;
  const std::size_t head = weights_->head;
  tables_.clear();
  for (std::size_t d = 0; d < n_devices; ++d) tables_.push_back(device_sums_.data() + d * hidden);
  sums_.resize(n_devices * hidden);
  standardise_rows(tables_, ones_, hidden, sums_.data(), hidden, moments_.data());
  of_devices_.assign(n_devices * head, 0);
  add_product(sums_.data(), n_devices, hidden, weights_->of_device.data(), head,
              of_devices_.data());

  pairs_.resize(n_pairs * hidden);
  hidden_.resize(n_pairs * head);
  const float* const bias = weights_->pair.data() + kFeatures * hidden;
  for (std::size_t p = 0; p < n_pairs; ++p) {
    float row[kFeatures];
    for (std::size_t c = 0; c < kFeatures; ++c) {
      row[c] = static_cast<float>(features_[p * kFeatures + c]);
    }
    float* const pair = pairs_.data() + p * hidden;
    std::copy_n(bias, hidden, pair);
    add_product(row, 1, kFeatures, weights_->pair.data(), hidden, pair);
    leaky_relu(pair, hidden, kPaperSlope);
    const float* const base =
        embedding_->base.data() + static_cast<std::size_t>(groups_[p / n_devices].row) * head;
    const float* const of_device = of_devices_.data() + p % n_devices * head;
    for (std::size_t m = 0; m < head; ++m) hidden_[p * head + m] = base[m] + of_device[m];
  }
  add_product(pairs_.data(), n_pairs, hidden, weights_->of_pair.data(), head, hidden_.data());
  for (std::size_t p = 0; p < n_pairs; ++p) {
    float score = weights_->out[head];
    for (std::size_t m = 0; m < head; ++m) {
      const float x = hidden_[p * head + m];
      score += weights_->out[m] * (x > 0 ? x : kPaperSlope * x);
    }
    scores_[p] = score;
  }
  const float largest = *std::max_element(scores_.begin(), scores_.end());
  double sum = 0;
  for (std::size_t p = 0; p < n_pairs; ++p) {
    sum += counts_[p] * std::exp(static_cast<double>(scores_[p] - largest));
  }
  const double total = static_cast<double>(largest) + std::log(sum);
  for (float& score : scores_) score = static_cast<float>(score - total);
}

NodeAndDevice JointRollout::best() const {
  const std::size_t n_devices = ones_.size();
  std::size_t best = 0;
  for (std::size_t p = 1; p < scores_.size(); ++p) {
    const bool earlier = scores_[p] == scores_[best] &&
                         groups_[p / n_devices].smallest < groups_[best / n_devices].smallest;
    if (scores_[p] > scores_[best] || earlier) best = p;
  }
  return {groups_[best / n_devices].smallest,
          DeviceId(static_cast<std::int64_t>(best % n_devices))};
}

float JointRollout::log_probability(NodeId node, DeviceId device) const {
  return scores_[group_of(node) * ones_.size() + device.index()];
}

void JointRollout::record(const PartialSchedule& schedule, NodeAndDevice chosen, Teacher* teacher,
                          JointEpisode& episode) {
  const std::size_t n_devices = ones_.size();
  if (scores_.size() < 2) return;
  episode.step.push_back(static_cast<std::int32_t>(episode.node.size()));
  for (const Group& group : groups_) {
    episode.row.push_back(group.row);
    episode.count.push_back(group.count);
  }
  episode.first.push_back(static_cast<std::int32_t>(episode.row.size()));
  for (double x : features_) episode.features.push_back(static_cast<float>(x));
  const std::size_t first = episode.target.size();
  episode.target.resize(first + scores_.size(), 0);
  taught_nodes_.assign(1, chosen.node);
  if (teacher != nullptr) teacher->nodes(schedule, taught_nodes_);
  for (NodeId node : taught_nodes_) {
    taught_devices_.assign(1, chosen.device);
    if (teacher != nullptr) teacher->devices(schedule, node, taught_devices_);
    for (DeviceId device : taught_devices_) {
      ++episode.target[first + group_of(node) * n_devices + device.index()];
    }
  }
}

void JointRollout::placed(NodeId node, DeviceId device) {
  const std::size_t hidden = weights_->hidden;
  const auto state = static_cast<std::size_t>(task_->plan.node_class[node.index()]);
  const float* const from = embedding_->state.data() + state * hidden;
  double* const to = device_sums_.data() + device.index() * hidden;
  for (std::size_t j = 0; j < hidden; ++j) to[j] += from[j];
}

}  // namespace doppler
