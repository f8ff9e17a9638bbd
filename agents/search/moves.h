// The neighbours of an assignment: what a search by small steps tries next.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "agents/draws.h"
#include "env/partial_schedule.h"

namespace doppler {

// One node on another device.
struct Change {
  NodeId node;
  DeviceId device;
  friend bool operator==(const Change&, const Change&) = default;
};

// Which kinds are drawn.
enum class MoveKinds : std::uint8_t {
  single,  // one node
  all      // also swaps, connected groups, meta-ops
};
MoveKinds parse_move_kinds(std::string_view name);  // throws UsageError that lists the names

// Draws neighbours of assignments of one task. Of `all` kinds:
//   one node goes to another device;
//   swap: two nodes on different devices change places;
//   connected group: a node and its predecessors, or its successors, go to one device;
//   region: a connected part of one device goes to another, or of two devices changes places;
//   meta-op: the shards (shard_groups.h) on two devices change places, or all go to one device.
class Moves {
 public:
  Moves(const PlacementModel& model, MoveKinds kinds);

  // Whether there is any other assignment at all.
  [[nodiscard]] bool any() const { return n_nodes_ > 0 && n_devices_ > 1; }
  // A neighbour of `assignment`: at least one change, each node once, each to a device that it is
  // not on. Valid until the next draw. Requires any(). O(degree), or O(size of the meta-op).
  std::span<const Change> draw(std::span<const DeviceId> assignment, Draws& draws);

 private:
  using Devices = std::span<const DeviceId>;
  NodeId draw_node(Draws& draws) const;
  DeviceId draw_device(Draws& draws) const;
  DeviceId draw_other_device(DeviceId device, Draws& draws) const;
  void move_to(NodeId node, DeviceId device, Devices assignment);
  void move_one(Devices assignment, Draws& draws);
  void swap_two(Devices assignment, Draws& draws);
  void move_connected(Devices assignment, Draws& draws);
  void exchange_region(Devices assignment, Draws& draws);
  void move_meta_op(Devices assignment, Draws& draws);

  const Graph graph_;
  std::size_t n_nodes_;
  std::size_t n_devices_;
  MoveKinds kinds_;
  std::vector<std::vector<NodeId>> meta_ops_;  // of two nodes or more
  std::vector<Change> changes_;
  std::vector<std::uint64_t> reached_;  // by node: the region that it is in
  std::uint64_t region_ = 0;
};

}  // namespace doppler
