#include "agents/search/moves.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agents/search/shard_groups.h"
#include "graphs/error.h"

namespace doppler {

namespace {

// Shares of the kinds in `all`; the rest moves one node. One-node changes cost the simulator least
// and end a search; the others leave assignments that no single node can leave without loss.
constexpr double kSwapShare = 0.15;
constexpr double kConnectedShare = 0.15;
constexpr double kRegionShare = 0.15;
constexpr double kMetaOpShare = 0.05;
constexpr std::uint64_t kRegionDoublings = 5;  // regions of 2 to 32 nodes

}  // namespace

MoveKinds parse_move_kinds(std::string_view name) {
  if (name == "single") return MoveKinds::single;
  if (name == "all") return MoveKinds::all;
  throw UsageError("moves '" + std::string(name) + "' are unknown; use single or all");
}

Moves::Moves(const PlacementModel& model, MoveKinds kinds)
    : graph_(model.task().graph),
      n_nodes_(model.n_nodes()),
      n_devices_(model.n_devices()),
      kinds_(kinds) {
  if (kinds == MoveKinds::single) return;
  reached_.assign(n_nodes_, 0);
  meta_ops_ = shard_groups(graph_);
  std::erase_if(meta_ops_, [](const auto& group) { return group.size() < 2; });
}

std::span<const Change> Moves::draw(Devices assignment, Draws& draws) {
  changes_.clear();
  if (kinds_ == MoveKinds::all) {
    double kind = draws.uniform();
    if (kind < kSwapShare) {
      swap_two(assignment, draws);
    } else if ((kind -= kSwapShare) < kConnectedShare) {
      move_connected(assignment, draws);
    } else if ((kind -= kConnectedShare) < kRegionShare) {
      exchange_region(assignment, draws);
    } else if ((kind -= kRegionShare) < kMetaOpShare) {
      move_meta_op(assignment, draws);
    }
  }
  // Also where the kind that was drawn would change nothing.
  if (changes_.empty()) move_one(assignment, draws);
  return changes_;
}

NodeId Moves::draw_node(Draws& draws) const {
  return NodeId(static_cast<std::int64_t>(draws.below(n_nodes_)));
}

DeviceId Moves::draw_device(Draws& draws) const {
  return DeviceId(static_cast<std::int64_t>(draws.below(n_devices_)));
}

DeviceId Moves::draw_other_device(DeviceId device, Draws& draws) const {
  const auto other = static_cast<std::int64_t>(draws.below(n_devices_ - 1));
  return DeviceId(other < device.value ? other : other + 1);
}

void Moves::move_to(NodeId node, DeviceId device, Devices assignment) {
  if (assignment[node.index()] != device) changes_.push_back({node, device});
}

void Moves::move_one(Devices assignment, Draws& draws) {
  const NodeId node = draw_node(draws);
  changes_.push_back({node, draw_other_device(assignment[node.index()], draws)});
}

void Moves::swap_two(Devices assignment, Draws& draws) {
  const NodeId a = draw_node(draws);
  const NodeId b = draw_node(draws);
  move_to(a, assignment[b.index()], assignment);
  move_to(b, assignment[a.index()], assignment);
}

void Moves::move_connected(Devices assignment, Draws& draws) {
  const NodeId node = draw_node(draws);
  const DeviceId device = draw_device(draws);
  move_to(node, device, assignment);
  const bool backwards = draws.below(2) == 0;
  for (NodeId other : backwards ? graph_.predecessors(node) : graph_.successors(node)) {
    move_to(other, device, assignment);
  }
}

void Moves::exchange_region(Devices assignment, Draws& draws) {
  const NodeId seed = draw_node(draws);
  const DeviceId a = assignment[seed.index()];
  const DeviceId b = draw_other_device(a, draws);
  const bool both = draws.below(2) == 0;
  // Sizes from two nodes on, each doubling as likely as the last.
  const std::size_t size = std::size_t{2} << draws.below(kRegionDoublings);
  ++region_;
  const auto reach = [&](NodeId node) {
    const DeviceId at = assignment[node.index()];
    if (changes_.size() >= size || reached_[node.index()] == region_) return;
    if (at != a && !(both && at == b)) return;
    reached_[node.index()] = region_;
    changes_.push_back({node, at == a ? b : a});
  };
  reach(seed);
  // The changes are the queue of a breadth-first walk.
  for (std::size_t i = 0; i < changes_.size() && changes_.size() < size; ++i) {
    const NodeId node = changes_[i].node;
    for (NodeId other : graph_.predecessors(node)) reach(other);
    for (NodeId other : graph_.successors(node)) reach(other);
  }
}

void Moves::move_meta_op(Devices assignment, Draws& draws) {
  if (meta_ops_.empty()) return;
  const std::vector<NodeId>& shards = meta_ops_[draws.below(meta_ops_.size())];
  const DeviceId a = draw_device(draws);
  if (draws.below(4) == 0) {
    for (NodeId shard : shards) move_to(shard, a, assignment);
    return;
  }
  const DeviceId b = draw_other_device(a, draws);
  for (NodeId shard : shards) {
    if (assignment[shard.index()] == a) changes_.push_back({shard, b});
    if (assignment[shard.index()] == b) changes_.push_back({shard, a});
  }
}

}  // namespace doppler
