// Log-probabilities of an episode under the softmax policies of a head, and their gradient.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "agents/agent.h"
#include "agents/draws.h"
#include "agents/learned/policy_heads.h"
#include "agents/learned/softmax_tree.h"

namespace doppler {

// What was selected and placed, in its order.
struct Trajectory {
  std::vector<NodeId> order = {};      // [n_nodes]
  std::vector<DeviceId> devices = {};  // by node
  friend bool operator==(const Trajectory&, const Trajectory&) = default;
};

// An episode of an agent: by its steps, or, if it has none, its assignment in the order of
// b-levels. Throws UsageError for an agent that runs the engine to decide.
Trajectory trajectory_of(Agent& agent, std::shared_ptr<const PlacementModel> model,
                         std::uint64_t seed);

// Softmax temperatures. SEL: of the weighted sum of features, which are of order 1. PLC: of the
// weighted sum of seconds over the time scale.
inline constexpr double kSelectTemperature = 0.1;
inline constexpr double kPlaceTemperature = 0.01;

// Goes over episodes of one task. One thread.
class PolicyGradient {
 public:
  explicit PolicyGradient(std::shared_ptr<const PlacementModel> model);

  struct LogProbability {
    double select = 0;  // natural logarithm, summed over the steps
    double place = 0;
  };
  // Of a trajectory of the task under weights of each node, [n_nodes]. If `gradient`, [n_nodes], is
  // not empty, `weight` times the derivative of select + place by the weights of each node is added
  // to it. O(log candidates + devices x degree) a step; a candidate whose features change costs
  // O(log candidates) again.
  LogProbability run(std::span<const RuleWeights> node_weights, const Trajectory& trajectory,
                     double weight = 0, std::span<RuleWeights> gradient = {});

  // An episode whose every step is drawn from the policies.
  Trajectory sample(std::span<const RuleWeights> node_weights, Draws& draws);

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  struct Candidate {
    std::size_t slot = kAbsent;
    std::array<double, kNodeFeatures> features = {};
  };
  void begin(std::span<const RuleWeights> node_weights, std::span<RuleWeights> gradient);
  void enter(NodeId node);
  void leave(NodeId node);
  // The scaled logits of the devices for `node`; returns log of the sum of their exponentials.
  double write_logits(NodeId node);
  void place(NodeId node, DeviceId device);

  RuleFeatures features_;
  PartialSchedule schedule_;
  SoftmaxTree softmax_;
  std::vector<Candidate> candidates_;  // by node
  std::vector<NodeId> node_of_slot_;
  std::vector<double> device_features_;  // [kDeviceFeatures, n_devices]
  std::vector<double> logits_;           // by device
  std::span<const RuleWeights> weights_ = {};
  std::span<RuleWeights> gradient_ = {};
};

}  // namespace doppler
