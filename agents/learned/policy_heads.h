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
//
// A head may be pulled to a pattern, which is an assignment that somebody else made: behind its
// rows it has one weight more, the pull, in time scales of the task, and a node's device in the
// pattern costs so much less. Without a pattern it is the same head without a pull.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/search/linear_rule.h"

namespace doppler {

// Weights of a head, [1 + n_latents, kRuleWeights], row by row; then the pull, if it has one.
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
// The pull; 0 for a head without.
inline double pull_of(const Head& head) {
  return head.size() % kRuleWeights == 1 ? head.back() : 0;
}
// The same head with this pull.
Head pulled(Head head, double pull);
// A pull that no sum of device features outweighs: the head decides the pattern.
inline constexpr double kFullPull = 1e6;
// The pattern of `doppler`: the assignment of the agent enumerative, which runs no engine.
std::vector<DeviceId> pattern_of(const std::shared_ptr<const PlacementModel>& model);

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
  // The latents and the pattern, [n_nodes] or empty, must outlive it.
  HeadRollout(std::shared_ptr<const PlacementModel> model, const Latents& latents,
              std::span<const DeviceId> pattern = {});

  // The device of each node, valid until the next call.
  std::span<const DeviceId> decide(const Head& head) &;
  // The makespan of the partial schedule of the last episode, in seconds: what the policy expects
  // (no contention, no noise, its own order). The engine was not run for it.
  [[nodiscard]] double estimate() const { return schedule_.makespan(); }
  // In the order in which the last episode selected.
  [[nodiscard]] std::span<const NodeId> order() const { return order_; }

 private:
  const Latents* latents_;
  std::span<const DeviceId> pattern_;
  LinearRule rule_;
  PartialSchedule schedule_;
  std::vector<RuleWeights> weights_;
  std::vector<DeviceId> devices_;
  std::vector<NodeId> order_;
};

}  // namespace doppler
