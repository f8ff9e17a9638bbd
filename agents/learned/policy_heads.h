// The two policies of `doppler`: SEL and PLC as linear heads whose weights the graph network sets
// for each node.
//
// The network gives each node v a few latents z(v): those of SEL from [features of v | H(v) | sums
// of H over its b-path and t-path], those of PLC from [features | H(v)]. A head is a matrix of
// 1 + n_latents rows over the weights of the linear rule (agents/search/linear_rule.h); row 0 is
// for every node, row k is taken z_k(v) times:
//   weights(v) = head[0] + sum over k of z_k(v) head[k].
// SEL scores a candidate by its node features times weights(v), PLC a device by the device features
// times weights(v), less is better. With latents off (all zero) that is the linear rule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/search/linear_rule.h"

namespace doppler {

// Weights of a head, [1 + n_latents, kRuleWeights], row by row.
using Head = std::vector<double>;

// What the network says of the nodes of one task; [n_nodes, n_latents] each.
struct Latents {
  std::size_t n_latents = 0;
  std::vector<float> select = {};
  std::vector<float> place = {};
  friend bool operator==(const Latents&, const Latents&) = default;
};

// A head that is `weights` for every node.
Head plain_head(const RuleWeights& weights, std::size_t n_latents);
// The weights that are learnt: all, or those of one policy; then the other policy is the rule of
// critical-path (largest b-level; earliest start), for every node.
enum class HeadHalf : std::uint8_t { both, select, place };
// Whether weight i of a head is learnt.
constexpr bool is_learnt(HeadHalf half, std::size_t i) {
  return half == HeadHalf::both || (i % kRuleWeights < kNodeFeatures) == (half == HeadHalf::select);
}
// The rule whose choices are those of the agent critical-path, ties to the smaller id.
RuleWeights critical_path_weights();
// Sets what is not learnt.
void fix_half(HeadHalf half, Head& head);

// weights(v) of each node; out: [n_nodes]. O(nodes x n_latents).
void write_node_weights(const Head& head, const Latents& latents, std::span<RuleWeights> out);

// Plays greedy episodes of one task. No allocation after construction. One thread.
class HeadRollout {
 public:
  // The latents must outlive it.
  HeadRollout(std::shared_ptr<const PlacementModel> model, const Latents& latents);

  // The device of each node, valid until the next call.
  std::span<const DeviceId> decide(const Head& head) &;
  // The makespan of the partial schedule of the last episode, in seconds: what the policy expects
  // (no contention, no noise, its own order). The engine was not run for it.
  [[nodiscard]] double estimate() const { return schedule_.makespan(); }
  // In the order in which the last episode selected.
  [[nodiscard]] std::span<const NodeId> order() const { return order_; }

 private:
  const Latents* latents_;
  LinearRule rule_;
  PartialSchedule schedule_;
  std::vector<RuleWeights> weights_;
  std::vector<DeviceId> devices_;
  std::vector<NodeId> order_;
};

}  // namespace doppler
