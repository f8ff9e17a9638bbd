// Steps of the policy over pairs in plain loops; the formulas are in joint_network.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/learned/episode.h"
#include "agents/learned/paper_rollout.h"

namespace doppler {

// Parameters that a step needs; matrices [inputs, outputs], padded with zeros.
struct JointWeights {
  std::size_t hidden = 0;             // padded
  std::size_t head = 0;               // padded
  std::vector<float> pair = {};       // [5 + 1, hidden] Wg, the last row its bias
  std::vector<float> of_pair = {};    // [hidden, head] W's part of it
  std::vector<float> of_device = {};  // [hidden, head] W's part of the device sums
  std::vector<float> out = {};        // [head + 1], the last its bias
};

struct JointEmbedding {
  std::vector<float> base = {};   // [n_rows, head]
  std::vector<float> state = {};  // [n_classes, hidden]
};

// An episode and what its gradient needs: of each step with more than one alternative, groups of
// candidates that the policy cannot tell apart, each with all devices.
struct JointEpisode {
  std::vector<std::int32_t> step = {};    // [k] number of the step in the episode
  std::vector<std::int32_t> first = {0};  // [k + 1] into the groups
  std::vector<std::int32_t> row = {};     // [groups]
  std::vector<double> count = {};         // [groups] candidates
  std::vector<double> target = {};        // [groups, n_devices] pairs to be chosen
  std::vector<float> features = {};       // [groups, n_devices, 5], standardised over the pairs
  std::vector<NodeId> node = {};          // [n_nodes], in the order of selection
  Assignment assignment = {};
};

// Serves one thread.
class JointRollout {
 public:
  explicit JointRollout(std::shared_ptr<const PaperTask> task);

  // Before the first step of an episode. Both outlive its steps.
  void begin(const JointWeights& weights, const JointEmbedding& embedding);
  // Scores all pairs of the present candidates. O(groups x devices) beside the features.
  void score(const PartialSchedule& schedule);
  // The pair of the largest score, ties to the smaller node, then device; after score().
  [[nodiscard]] NodeAndDevice best() const;
  // Of one pair, after score().
  [[nodiscard]] float log_probability(NodeId node, DeviceId device) const;
  // Appends the step to the episode; `teacher`: as EpisodeOptions::teacher.
  void record(const PartialSchedule& schedule, NodeAndDevice chosen, Teacher* teacher,
              JointEpisode& episode);
  void placed(NodeId node, DeviceId device);

 private:
  struct Group {
    std::int32_t row = 0;
    std::int32_t next = -1;  // of the same row
    NodeId smallest;
    double count = 0;
  };
  [[nodiscard]] std::size_t group_of(NodeId node) const {
    return static_cast<std::size_t>(group_of_node_[node.index()]);
  }
  void find_groups(const PartialSchedule& schedule);

  std::shared_ptr<const PaperTask> task_;
  const JointWeights* weights_ = nullptr;
  const JointEmbedding* embedding_ = nullptr;
  std::vector<double> device_sums_;          // [n_devices, hidden]
  std::vector<Group> groups_;                // of the present candidates
  std::vector<std::int32_t> group_of_node_;  // of the present candidates
  std::vector<std::int32_t> group_of_row_;   // the first; valid where mark_ is the walk
  std::vector<std::uint64_t> mark_;
  std::uint64_t walk_ = 0;
  std::vector<double> features_;  // [groups, n_devices, 5]; standardised by score()
  std::vector<float> scores_;     // [groups, n_devices] log-probabilities of one pair each
  std::vector<double> ones_;      // [n_devices]
  // Scratch.
  std::vector<double> counts_;
  std::vector<double> of_node_;
  std::vector<const double*> tables_;
  std::vector<double> moments_;
  std::vector<float> sums_;
  std::vector<float> of_devices_;
  std::vector<float> pairs_;
  std::vector<float> hidden_;
  std::vector<NodeId> taught_nodes_;
  std::vector<DeviceId> taught_devices_;
};

}  // namespace doppler
