#include "agents/search/linear_rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace doppler {

namespace {

// Makes column `column` of a row-major [n, n_columns] have mean 0 and variance 1.
void standardise(std::vector<double>& table, std::size_t n_columns, std::size_t column) {
  const std::size_t n = table.size() / n_columns;
  double sum = 0;
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += table[i * n_columns + column];
    largest = std::max(largest, std::abs(table[i * n_columns + column]));
  }
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double distance = table[i * n_columns + column] - mean;
    squares += distance * distance;
  }
  const double deviation = std::sqrt(squares / static_cast<double>(n));
  // Equal values whose mean is rounded are still equal.
  const bool all_equal = deviation <= 1e-12 * largest;
  for (std::size_t i = 0; i < n; ++i) {
    double& value = table[i * n_columns + column];
    value = all_equal ? 0 : (value - mean) / deviation;
  }
}

}  // namespace

RuleWeights partner_list_weights() {
  RuleWeights weights = {};
  weights[weight_index(NodeFeature::b_level)] = 1;
  weights[weight_index(DeviceFeature::earliest_start)] = 1;
  weights[weight_index(DeviceFeature::incoming)] = 0.3;
  weights[weight_index(DeviceFeature::partner_transfer)] = -1;
  return weights;
}

RuleFeatures::RuleFeatures(std::shared_ptr<const PlacementModel> model)
    : model_(std::move(model)),
      static_(model_->n_nodes() * kStaticFeatures),
      output_(model_->n_nodes(), 0),
      n_partners_(model_->n_nodes(), 0),
      n_inputs_placed_(model_->n_nodes(), 0) {
  const Graph& graph = model_->task().graph;
  const CostTable& costs = model_->costs();
  const Levels compute_levels = levels(graph, costs, {.compute_only = true});
  for (std::size_t v = 0; v < model_->n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
      const TensorId tensor(graph.first_tensor(node).value + static_cast<std::int64_t>(i));
      output_[v] += costs.mean_transfer(graph.tensor_bytes(tensor));
    }
    for (NodeId consumer : model_->successors(node)) {
      n_partners_[v] += model_->n_predecessors(consumer) - 1;
    }
    const double row[] = {model_->levels().b_level[v],
                          compute_levels.b_level[v],
                          model_->levels().t_level[v],
                          costs.mean[v],
                          output_[v],
                          static_cast<double>(model_->successors(node).size())};
    std::copy(std::begin(row), std::end(row),
              static_.begin() + static_cast<std::ptrdiff_t>(v * kStaticFeatures));
  }
  for (std::size_t i = 0; i < kStaticFeatures; ++i) standardise(static_, kStaticFeatures, i);
}

void RuleFeatures::begin() { std::fill(n_inputs_placed_.begin(), n_inputs_placed_.end(), 0); }

void RuleFeatures::placed(NodeId node) {
  for (NodeId consumer : model_->successors(node)) ++n_inputs_placed_[consumer.index()];
}

double RuleFeatures::ready(const PartialSchedule& schedule, NodeId node) const {
  double last = 0;
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    last = std::max(last, schedule.end(feed.producer));
  }
  return last / model_->time_scale();
}

double RuleFeatures::partners_placed(NodeId node) const {
  if (n_partners_[node.index()] == 0) return 0;
  std::int64_t n_placed = 0;
  for (NodeId consumer : model_->successors(node)) n_placed += n_inputs_placed_[consumer.index()];
  return static_cast<double>(n_placed) / n_partners_[node.index()];
}

void RuleFeatures::write_node(const PartialSchedule& schedule, NodeId node,
                              std::span<double, kNodeFeatures> out) const {
  std::copy_n(static_.begin() + static_cast<std::ptrdiff_t>(node.index() * kStaticFeatures),
              kStaticFeatures, out.begin());
  out[weight_index(NodeFeature::ready)] = ready(schedule, node);
  out[weight_index(NodeFeature::partners_placed)] = partners_placed(node);
}

void RuleFeatures::write_devices(const PartialSchedule& schedule, NodeId node,
                                 std::span<double> out) const {
  const std::size_t n_devices = model_->n_devices();
  const auto row = [&](DeviceFeature feature) {
    return out.subspan(static_cast<std::size_t>(feature) * n_devices, n_devices);
  };
  const auto data_ready = row(DeviceFeature::data_ready);
  schedule.data_ready(node, data_ready);
  schedule.incoming_transfers(node, row(DeviceFeature::incoming));
  schedule.sibling_computes(node, row(DeviceFeature::sibling_compute));

  const auto partner_transfer = row(DeviceFeature::partner_transfer);
  const auto partner_output = row(DeviceFeature::partner_output);
  const auto producer_compute = row(DeviceFeature::producer_compute);
  for (const auto& zeroed : {partner_transfer, partner_output, producer_compute}) {
    std::fill(zeroed.begin(), zeroed.end(), 0.0);
  }
  const double output = output_[node.index()];
  schedule.for_each_partner_feed(node, [&](const PlacementModel::Feed& feed) {
    const DeviceId at = schedule.device(feed.producer);
    if (at.value < 0) return;
    partner_transfer[at.index()] += feed.mean_transfer;
    partner_output[at.index()] = output;
  });
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    const DeviceId at = schedule.device(feed.producer);
    producer_compute[at.index()] = model_->costs().compute(node, at);
  }

  const auto earliest_start = row(DeviceFeature::earliest_start);
  const auto device_free = row(DeviceFeature::device_free);
  const auto load = row(DeviceFeature::load);
  const auto growth = row(DeviceFeature::growth);
  for (std::size_t d = 0; d < n_devices; ++d) {
    const DeviceId device(static_cast<std::int64_t>(d));
    device_free[d] = schedule.device_free(device);
    earliest_start[d] = std::max(device_free[d], data_ready[d]);
    load[d] = schedule.device_compute(device);
    const double end = earliest_start[d] + model_->costs().compute(node, device);
    growth[d] = std::max(0.0, end - schedule.makespan());
  }
}

LinearRule::LinearRule(std::shared_ptr<const PlacementModel> model)
    : features_(model),
      schedule_(model),
      devices_(model->n_nodes()),
      b_level_rank_(model->n_nodes()),
      score_(model->n_nodes(), 0),
      heap_place_(model->n_nodes(), -1),
      device_features_(kDeviceFeatures * model->n_devices()),
      cost_(model->n_devices()) {
  heap_.reserve(model->n_nodes());
  std::int32_t rank = 0;
  for (NodeId node : model->b_level_order()) b_level_rank_[node.index()] = rank++;
}

void LinearRule::begin(const RuleWeights& weights, const PartialSchedule& schedule) {
  weights_ = weights;
  node_weights_ = {};
  partners_count_ = weights[weight_index(NodeFeature::partners_placed)] != 0;
  start(schedule);
}

void LinearRule::begin(std::span<const RuleWeights> node_weights, const PartialSchedule& schedule) {
  node_weights_ = node_weights;
  partners_count_ = true;
  start(schedule);
}

void LinearRule::start(const PartialSchedule& schedule) {
  features_.begin();
  heap_.clear();
  std::fill(heap_place_.begin(), heap_place_.end(), -1);
  for (NodeId node : schedule.candidates()) {
    score(schedule, node);
    push(node);
  }
}

DeviceId LinearRule::place(const PartialSchedule& schedule, NodeId node) {
  features_.write_devices(schedule, node, device_features_);
  std::fill(cost_.begin(), cost_.end(), 0.0);
  const std::size_t n_devices = cost_.size();
  for (std::size_t i = 0; i < kDeviceFeatures; ++i) {
    const double weight = weights(node)[kNodeFeatures + i];
    for (std::size_t d = 0; d < n_devices; ++d) {
      cost_[d] += weight * device_features_[i * n_devices + d];
    }
  }
  if (!pattern_.empty()) cost_[pattern_[node.index()].index()] -= pull_;
  const auto best = std::min_element(cost_.begin(), cost_.end());
  return DeviceId(best - cost_.begin());
}

void LinearRule::placed(const PartialSchedule& schedule, NodeId node) {
  remove(node);
  features_.placed(node);
  const PlacementModel& model = features_.model();
  for (NodeId consumer : model.successors(node)) {
    if (schedule.is_candidate(consumer)) {
      score(schedule, consumer);
      push(consumer);
    }
    if (!partners_count_) continue;
    // Candidates among its partners have one partner more that is placed. A node that became a
    // candidate just now is scored when its turn comes.
    for (const PlacementModel::Feed& feed : model.feeds(consumer)) {
      if (heap_place_[feed.producer.index()] < 0) continue;
      score(schedule, feed.producer);
      sift_up(static_cast<std::size_t>(heap_place_[feed.producer.index()]));
      sift_down(static_cast<std::size_t>(heap_place_[feed.producer.index()]));
    }
  }
}

std::span<const DeviceId> LinearRule::decide(const RuleWeights& weights) & {
  schedule_.reset();
  begin(weights, schedule_);
  while (!schedule_.complete()) {
    const NodeId node = select();
    const DeviceId device = place(schedule_, node);
    schedule_.place(node, device);
    devices_[node.index()] = device;
    placed(schedule_, node);
  }
  return devices_;
}

bool LinearRule::before(NodeId a, NodeId b) const {
  const double score_a = score_[a.index()];
  const double score_b = score_[b.index()];
  if (score_a != score_b) return score_a > score_b;
  return b_level_rank_[a.index()] < b_level_rank_[b.index()];
}

void LinearRule::score(const PartialSchedule& schedule, NodeId node) {
  std::array<double, kNodeFeatures> features;
  features_.write_node(schedule, node, features);
  const RuleWeights& own = weights(node);
  double sum = 0;
  for (std::size_t i = 0; i < kNodeFeatures; ++i) sum += own[i] * features[i];
  score_[node.index()] = sum;
}

void LinearRule::set(std::size_t place, NodeId node) {
  heap_[place] = node;
  heap_place_[node.index()] = static_cast<std::int32_t>(place);
}

void LinearRule::push(NodeId node) {
  heap_.push_back(node);
  set(heap_.size() - 1, node);
  sift_up(heap_.size() - 1);
}

void LinearRule::remove(NodeId node) {
  const auto place = static_cast<std::size_t>(heap_place_[node.index()]);
  const NodeId last = heap_.back();
  heap_.pop_back();
  heap_place_[node.index()] = -1;
  if (last == node) return;
  set(place, last);
  sift_up(place);
  sift_down(static_cast<std::size_t>(heap_place_[last.index()]));
}

void LinearRule::sift_up(std::size_t place) {
  const NodeId node = heap_[place];
  while (place > 0 && before(node, heap_[(place - 1) / 2])) {
    set(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  set(place, node);
}

void LinearRule::sift_down(std::size_t place) {
  const NodeId node = heap_[place];
  while (true) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], node)) break;
    set(place, heap_[child]);
    place = child;
  }
  set(place, node);
}

}  // namespace doppler
