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
inline constexpr float kPaperSlope = 0.1F;  // of every LeakyReLU

// The b-paths (or t-paths) of all nodes, each kind of path once: the sum of H over path p is H of
// state[p] and the sum over path next[p], which has a smaller number.
struct PathPlan {
  std::vector<std::int32_t> of_node;  // [n_nodes] path
  std::vector<std::int32_t> state;    // [n_paths] class of the node where it begins
  std::vector<std::int32_t> next;     // [n_paths] path; -1: none
  std::vector<double> weight;         // [n_paths] nodes
};

// When a graph network runs: once an episode, or anew each step, told of the placement so far.
enum class MessagePassingTime : std::uint8_t { episode, step };

// Node features that tell message passing of the placement so far: whether the node is placed, its
// start and its end in the partial schedule, in time scales.
inline constexpr std::size_t kPlacementFeatures = 3;
constexpr std::int64_t paper_node_columns(MessagePassingTime time) {
  return static_cast<std::int64_t>(kPaperNodeFeatures +
                                   (time == MessagePassingTime::step ? kPlacementFeatures : 0));
}

struct PaperTask {
  PaperTask(std::shared_ptr<const PlacementModel> placement, int steps);
  // As message passing sees the task when some of it is placed: every node has the
  // kPlacementFeatures after its own features, and an edge between two placed nodes counts the
  // transfer that it takes (0 on one device) instead of the mean one, standardised alike.
  // `start`: the same task with nothing placed. O(what message_plan() takes).
  PaperTask(const PaperTask& start, const PartialSchedule& placed, int steps);

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

 private:
  PaperTask(std::shared_ptr<const PlacementModel> placement, GraphFeatures task_features,
            int steps);
};

// The paper's features of every device for `node`, a candidate, in time scales: compute placed
// there; compute of the node's predecessors there, their earliest start, their latest end (0
// without one there); earliest start of the node there. out: [n_devices, 5]. As Env observes them.
void paper_device_features(const PartialSchedule& schedule, NodeId node, std::span<double> out);

}  // namespace doppler
