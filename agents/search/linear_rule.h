// A linear select-and-place rule: 18 weights that decide an assignment, node by node.
//
// The candidate of the largest weighted sum of its node features is taken, ties to the one that
// stands first in PlacementModel::b_level_order(); it goes to the device of the least weighted sum
// of its device features, ties to the smaller device. With partner_list_weights() this is the agent
// partner-list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

// Features of a candidate. Those that never change are standardised over the nodes of the graph
// (mean 0, variance 1; 0 if all are equal but for rounding), so that weights carry over between
// tasks.
enum class NodeFeature : std::uint8_t {
  b_level,          // standardised
  compute_b_level,  // the compute_only variant; standardised
  t_level,          // standardised
  compute,          // mean over the devices; standardised
  output,           // mean time to send all of its tensors; standardised
  n_readers,        // distinct successors; standardised
  ready,            // the last end of a predecessor, in time scales
  partners_placed   // share of its partners that are placed, each once a shared consumer; 0 to 1
};
inline constexpr std::size_t kNodeFeatures = 8;

// Features of a device for the node that is placed; all in seconds, for only the differences
// between devices matter, and those scale with the task.
enum class DeviceFeature : std::uint8_t {
  earliest_start,
  device_free,       // its earliest free slot
  data_ready,        // arrival of the inputs
  incoming,          // transfers from predecessors that sit elsewhere, summed
  load,              // compute placed there
  partner_transfer,  // of placed partners there; PartialSchedule::partner_transfers()
  partner_output,    // any partner there: the mean time to send the node's own tensors; else 0
  producer_compute,  // any predecessor there: the node's compute there; else 0
  sibling_compute,   // of placed nodes there that share a producer
  growth             // of the makespan of the partial schedule
};
inline constexpr std::size_t kDeviceFeatures = 10;
inline constexpr std::size_t kRuleWeights = kNodeFeatures + kDeviceFeatures;

// Of the node features, then of the device features, each in the order of its enumeration.
using RuleWeights = std::array<double, kRuleWeights>;
constexpr std::size_t weight_index(NodeFeature feature) {
  return static_cast<std::size_t>(feature);
}
constexpr std::size_t weight_index(DeviceFeature feature) {
  return kNodeFeatures + static_cast<std::size_t>(feature);
}

// Those with which the rule is the agent partner-list.
RuleWeights partner_list_weights();

// Features of one task, and what it takes to keep them up to date over an episode. One thread.
class RuleFeatures {
 public:
  explicit RuleFeatures(std::shared_ptr<const PlacementModel> model);

  [[nodiscard]] const PlacementModel& model() const { return *model_; }

  // Before the first placement of an episode.
  void begin();
  // After each placement. O(consumers).
  void placed(NodeId node);

  // Requires a candidate of the episode. O(degree).
  void write_node(const PartialSchedule& schedule, NodeId node,
                  std::span<double, kNodeFeatures> out) const;
  // [kDeviceFeatures, n_devices]. Requires that the predecessors are placed. O(devices x in-degree
  // + in-degrees of the consumers + out-degrees of the producers).
  void write_devices(const PartialSchedule& schedule, NodeId node, std::span<double> out) const;

 private:
  static constexpr std::size_t kStaticFeatures = 6;
  [[nodiscard]] double ready(const PartialSchedule& schedule, NodeId node) const;
  [[nodiscard]] double partners_placed(NodeId node) const;

  std::shared_ptr<const PlacementModel> model_;
  std::vector<double> static_;                 // [n_nodes, kStaticFeatures]
  std::vector<double> output_;                 // by node; seconds
  std::vector<std::int32_t> n_partners_;       // by node; each once a shared consumer
  std::vector<std::int32_t> n_inputs_placed_;  // by node: its predecessors that are placed
};

// Plays episodes of one task. No allocation after construction. One thread.
class LinearRule {
 public:
  explicit LinearRule(std::shared_ptr<const PlacementModel> model);

  // An episode by steps: begin(), then select(), place() and placed() for each node, all with the
  // same schedule, which is empty at first, and with the node in the schedule before placed().
  // placed() takes O(log candidates) for each new candidate; if partners_placed has a weight, also
  // for each candidate among the partners.
  void begin(const RuleWeights& weights, const PartialSchedule& schedule);
  // The same with weights of its own for each node, [n_nodes], which must outlive the episode.
  void begin(std::span<const RuleWeights> node_weights, const PartialSchedule& schedule);
  // From now on place() takes `seconds` off the cost of the node's device in `pattern`, [n_nodes],
  // which must outlive the episodes; an empty one: no more.
  void pull_to(std::span<const DeviceId> pattern, double seconds) {
    pattern_ = pattern;
    pull_ = seconds;
  }
  [[nodiscard]] NodeId select() const { return heap_.front(); }
  DeviceId place(const PartialSchedule& schedule, NodeId node);
  void placed(const PartialSchedule& schedule, NodeId node);

  // A whole episode: the device of each node, valid until the next call.
  std::span<const DeviceId> decide(const RuleWeights& weights) &;

 private:
  void start(const PartialSchedule& schedule);
  [[nodiscard]] const RuleWeights& weights(NodeId node) const {
    return node_weights_.empty() ? weights_ : node_weights_[node.index()];
  }
  [[nodiscard]] bool before(NodeId a, NodeId b) const;
  void score(const PartialSchedule& schedule, NodeId node);
  void push(NodeId node);
  void remove(NodeId node);
  void sift_up(std::size_t place);
  void sift_down(std::size_t place);
  void set(std::size_t place, NodeId node);

  RuleFeatures features_;
  RuleWeights weights_ = {};  // of every node, unless each has its own:
  std::span<const RuleWeights> node_weights_ = {};
  std::span<const DeviceId> pattern_ = {};
  double pull_ = 0;                         // seconds
  bool partners_count_ = false;             // whether partners_placed has a weight
  PartialSchedule schedule_;                // of decide()
  std::vector<DeviceId> devices_;           // of decide()
  std::vector<std::int32_t> b_level_rank_;  // by node: its place in the order by b-level
  std::vector<double> score_;               // by node; of candidates
  std::vector<NodeId> heap_;                // the candidates, the first to be taken in front
  std::vector<std::int32_t> heap_place_;    // by node; -1: not in the heap
  std::vector<double> device_features_;     // [kDeviceFeatures, n_devices]
  std::vector<double> cost_;                // by device
};

}  // namespace doppler
