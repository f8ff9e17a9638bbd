#include "agents/learned/policy_heads.h"

#include <algorithm>
#include <utility>

#include "agents/agent.h"

namespace doppler {

Head plain_head(const RuleWeights& weights, std::size_t n_latents) {
  Head head((1 + n_latents) * kRuleWeights, 0.0);
  std::copy(weights.begin(), weights.end(), head.begin());
  return head;
}

Head pulled(Head head, double pull) {
  head.resize(head.size() / kRuleWeights * kRuleWeights);
  head.push_back(pull);
  return head;
}

std::vector<DeviceId> pattern_of(const std::shared_ptr<const PlacementModel>& model) {
  return make_agent("enumerative")->decide(model, {}).assignment.devices;
}

RuleWeights critical_path_weights() {
  RuleWeights weights = {};
  weights[weight_index(NodeFeature::b_level)] = 1;
  weights[weight_index(DeviceFeature::earliest_start)] = 1;
  return weights;
}

void fix_half(HeadHalf half, Head& head) {
  const RuleWeights rule = critical_path_weights();
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (!is_learnt(half, i)) head[i] = i < kRuleWeights ? rule[i] : 0;
  }
}

void write_node_weights(const Head& head, const Latents& latents, std::span<RuleWeights> out) {
  const std::size_t n_latents = latents.n_latents;
  for (std::size_t v = 0; v < out.size(); ++v) {
    std::copy_n(head.begin(), kRuleWeights, out[v].begin());
    for (std::size_t k = 0; k < n_latents; ++k) {
      const double* row = head.data() + (k + 1) * kRuleWeights;
      const double select = latents.select[v * n_latents + k];
      const double place = latents.place[v * n_latents + k];
      for (std::size_t i = 0; i < kNodeFeatures; ++i) out[v][i] += select * row[i];
      for (std::size_t i = kNodeFeatures; i < kRuleWeights; ++i) out[v][i] += place * row[i];
    }
  }
}

HeadRollout::HeadRollout(std::shared_ptr<const PlacementModel> model, const Latents& latents,
                         std::span<const DeviceId> pattern)
    : latents_(&latents),
      pattern_(pattern),
      rule_(model),
      schedule_(model),
      weights_(model->n_nodes()),
      devices_(model->n_nodes()) {
  order_.reserve(model->n_nodes());
}

std::span<const DeviceId> HeadRollout::decide(const Head& head) & {
  write_node_weights(head, *latents_, weights_);
  schedule_.reset();
  order_.clear();
  rule_.pull_to(pattern_, pull_of(head) * schedule_.model().time_scale());
  rule_.begin(weights_, schedule_);
  while (!schedule_.complete()) {
    const NodeId node = rule_.select();
    const DeviceId device = rule_.place(schedule_, node);
    schedule_.place(node, device);
    devices_[node.index()] = device;
    order_.push_back(node);
    rule_.placed(schedule_, node);
  }
  return devices_;
}

}  // namespace doppler
