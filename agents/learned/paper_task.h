// What of a task the paper's two policies read, made once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "agents/learned/node_classes.h"
#include "env/partial_schedule.h"

namespace doppler {

inline constexpr std::size_t kPaperNodeFeatures = 5;
inline constexpr std::size_t kPaperDeviceFeatures = 5;

// The b-paths (or t-paths) of all nodes, each kind of path once: the sum of H over path p is H of
// state[p] and the sum over path next[p], which has a smaller number.
struct PathPlan {
  std::vector<std::int32_t> of_node;  // [n_nodes] path
  std::vector<std::int32_t> state;    // [n_paths] class of the node where it begins
  std::vector<std::int32_t> next;     // [n_paths] path; -1: none
  std::vector<double> weight;         // [n_paths] nodes
};

struct PaperTask {
  PaperTask(std::shared_ptr<const PlacementModel> placement, int steps);

  std::shared_ptr<const PlacementModel> model;
  GraphFeatures features;
  MessagePlan plan;
  PathPlan b_paths;
  PathPlan t_paths;
  // SEL cannot tell nodes apart whose class and paths are equal: a row stands for them.
  std::vector<std::int32_t> row_of_node;  // [n_nodes]
  std::vector<std::int32_t> row_state;    // [n_rows] class
  std::vector<std::int32_t> row_b_path;   // [n_rows]
  std::vector<std::int32_t> row_t_path;   // [n_rows]
};

// The paper's features of every device for `node`, a candidate, in time scales: compute placed
// there; compute of the node's predecessors there, their earliest start, their latest end (0
// without one there); earliest start of the node there. out: [n_devices, 5]. As Env observes them.
void paper_device_features(const PartialSchedule& schedule, NodeId node, std::span<double> out);

}  // namespace doppler
