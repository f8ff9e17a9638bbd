#include "agents/learned/policy_gradient.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace doppler {

Trajectory trajectory_of(Agent& agent, std::shared_ptr<const PlacementModel> model,
                         std::uint64_t seed) {
  Trajectory trajectory;
  if (!agent.has_steps()) {
    const auto order = model->b_level_order();
    trajectory.order.assign(order.begin(), order.end());
    Decision decision = agent.decide(model, {.seed = seed});
    if (decision.evaluations > 0) {
      throw UsageError(
          "this teacher runs the engine to decide, which would be evaluations that nobody counts; "
          "name one that does not: critical-path, partner-list, heft, m-etf");
    }
    trajectory.devices = std::move(decision.assignment.devices);
    return trajectory;
  }
  trajectory.devices.resize(model->n_nodes());
  PartialSchedule schedule(model);
  agent.begin(model, seed);
  while (!schedule.complete()) {
    const NodeId node = agent.select(schedule);
    const DeviceId device = agent.place(schedule, node);
    schedule.place(node, device);
    trajectory.order.push_back(node);
    trajectory.devices[node.index()] = device;
  }
  return trajectory;
}

PolicyGradient::PolicyGradient(std::shared_ptr<const PlacementModel> model)
    : features_(model),
      schedule_(model),
      candidates_(model->n_nodes()),
      device_features_(kDeviceFeatures * model->n_devices()),
      logits_(model->n_devices()) {}

PolicyGradient::LogProbability PolicyGradient::run(std::span<const RuleWeights> node_weights,
                                                   const Trajectory& trajectory, double weight,
                                                   std::span<RuleWeights> gradient) {
  const std::size_t n_devices = logits_.size();
  const double place_scale = kPlaceTemperature * features_.model().time_scale();
  begin(node_weights, gradient);
  LogProbability sum;
  for (NodeId node : trajectory.order) {
    if (!schedule_.is_candidate(node)) {
      throw std::logic_error("a trajectory selects node " + std::to_string(node.value) +
                             ", which is no candidate");
    }
    sum.select += softmax_.score(candidates_[node.index()].slot) - softmax_.log_sum();
    if (!gradient_.empty()) {
      softmax_.add(-weight);
      const Candidate& chosen = candidates_[node.index()];
      for (std::size_t i = 0; i < kNodeFeatures; ++i) {
        gradient_[node.index()][i] += weight * chosen.features[i] / kSelectTemperature;
      }
    }

    const DeviceId device = trajectory.devices[node.index()];
    const double log_sum = write_logits(node);
    sum.place += logits_[device.index()] - log_sum;
    if (!gradient_.empty()) {
      for (std::size_t d = 0; d < n_devices; ++d) {
        const double chosen = d == device.index() ? 1 : 0;
        const double slope = -weight * (chosen - std::exp(logits_[d] - log_sum)) / place_scale;
        for (std::size_t i = 0; i < kDeviceFeatures; ++i) {
          gradient_[node.index()][kNodeFeatures + i] += slope * device_features_[i * n_devices + d];
        }
      }
    }
    place(node, device);
  }
  return sum;
}

Trajectory PolicyGradient::sample(std::span<const RuleWeights> node_weights, Draws& draws) {
  Trajectory trajectory;
  trajectory.devices.resize(candidates_.size());
  begin(node_weights, {});
  while (!schedule_.complete()) {
    const NodeId node = node_of_slot_[softmax_.draw(draws.uniform())];
    const double log_sum = write_logits(node);
    double quantile = draws.uniform();
    std::size_t device = 0;
    while (device + 1 < logits_.size()) {
      quantile -= std::exp(logits_[device] - log_sum);
      if (quantile < 0) break;
      ++device;
    }
    const DeviceId chosen(static_cast<std::int64_t>(device));
    trajectory.order.push_back(node);
    trajectory.devices[node.index()] = chosen;
    place(node, chosen);
  }
  return trajectory;
}

void PolicyGradient::begin(std::span<const RuleWeights> node_weights,
                           std::span<RuleWeights> gradient) {
  weights_ = node_weights;
  gradient_ = gradient;
  schedule_.reset();
  features_.begin();
  softmax_.clear();
  for (Candidate& candidate : candidates_) candidate.slot = kAbsent;
  for (NodeId node : schedule_.candidates()) enter(node);
}

void PolicyGradient::enter(NodeId node) {
  Candidate& candidate = candidates_[node.index()];
  features_.write_node(schedule_, node, candidate.features);
  double score = 0;
  for (std::size_t i = 0; i < kNodeFeatures; ++i) {
    score += weights_[node.index()][i] * candidate.features[i];
  }
  candidate.slot = softmax_.insert(score / kSelectTemperature);
  if (node_of_slot_.size() <= candidate.slot) node_of_slot_.resize(candidate.slot + 1);
  node_of_slot_[candidate.slot] = node;
}

void PolicyGradient::leave(NodeId node) {
  Candidate& candidate = candidates_[node.index()];
  if (!gradient_.empty()) {
    const double gathered = softmax_.gather(candidate.slot);
    for (std::size_t i = 0; i < kNodeFeatures; ++i) {
      gradient_[node.index()][i] += gathered * candidate.features[i] / kSelectTemperature;
    }
  }
  softmax_.erase(std::exchange(candidate.slot, kAbsent));
}

double PolicyGradient::write_logits(NodeId node) {
  const std::size_t n_devices = logits_.size();
  const double scale = kPlaceTemperature * features_.model().time_scale();
  features_.write_devices(schedule_, node, device_features_);
  std::fill(logits_.begin(), logits_.end(), 0.0);
  for (std::size_t i = 0; i < kDeviceFeatures; ++i) {
    const double weight = weights_[node.index()][kNodeFeatures + i] / scale;
    for (std::size_t d = 0; d < n_devices; ++d) {
      logits_[d] -= weight * device_features_[i * n_devices + d];
    }
  }
  const double largest = *std::max_element(logits_.begin(), logits_.end());
  double sum = 0;
  for (double logit : logits_) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

void PolicyGradient::place(NodeId node, DeviceId device) {
  leave(node);
  schedule_.place(node, device);
  features_.placed(node);
  const PlacementModel& model = features_.model();
  for (NodeId consumer : model.successors(node)) {
    if (schedule_.is_candidate(consumer)) enter(consumer);
    // Its partners among the candidates have one more partner that is placed.
    for (const PlacementModel::Feed& feed : model.feeds(consumer)) {
      if (candidates_[feed.producer.index()].slot == kAbsent) continue;
      leave(feed.producer);
      enter(feed.producer);
    }
  }
}

}  // namespace doppler
