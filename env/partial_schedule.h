// The placement so far, with the partial schedule that agents and observations read.
//
// It appends each placed node at its earliest start on its device (no insertion into gaps):
// earliest start of v on d = max(earliest free slot of d, max over predecessors p of end(p) +
// transfer(p -> d)), transfers without contention or noise. DESIGN section 5; the device features
// of DOPPLER, section 4.2.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "env/task.h"
#include "graphs/analysis.h"
#include "graphs/assignment.h"

namespace doppler {

// What of a task never changes while it is placed. Shared by every PartialSchedule of the task;
// immutable, thread safe.
struct PlacementModel {
  explicit PlacementModel(Task placed_task);

  Task task;
  CostTable costs;
  Levels node_levels;
  double time_scale = 1;
  // Distinct (predecessor, tensor) pairs that feed a node and the partners of a node, both as flat
  // arrays: entries [first[v], first[v + 1]). A node's partners are the other nodes that feed one
  // of its consumers, each once, ascending.
  std::vector<std::int32_t> partner_first;
  std::vector<NodeId> partners;

  [[nodiscard]] std::span<const NodeId> partners_of(NodeId node) const {
    const auto begin = static_cast<std::size_t>(partner_first[node.index()]);
    const auto end = static_cast<std::size_t>(partner_first[node.index() + 1]);
    return {partners.data() + begin, end - begin};
  }
  // Seconds for one tensor between two devices; 0 on one device.
  [[nodiscard]] double transfer(double bytes, DeviceId from, DeviceId to) const;
};

class PartialSchedule {
 public:
  explicit PartialSchedule(std::shared_ptr<const PlacementModel> model);

  // Back to nothing placed; no allocation.
  void reset();

  [[nodiscard]] const PlacementModel& model() const { return *model_; }
  [[nodiscard]] std::size_t n_placed() const { return n_placed_; }
  [[nodiscard]] bool complete() const;
  [[nodiscard]] bool placed(NodeId node) const;
  // Unplaced nodes whose predecessors are placed, in no particular order.
  [[nodiscard]] std::span<const NodeId> candidates() const { return candidates_; }
  [[nodiscard]] bool is_candidate(NodeId node) const;

  // Requires a candidate and a device of the cluster; std::logic_error otherwise.
  // O(degree + streams).
  void place(NodeId node, DeviceId device);

  // -1 in `value` if the node is not placed.
  [[nodiscard]] DeviceId device(NodeId node) const { return device_[node.index()]; }
  [[nodiscard]] double start(NodeId node) const { return start_[node.index()]; }  // seconds
  [[nodiscard]] double end(NodeId node) const { return end_[node.index()]; }      // seconds
  [[nodiscard]] double device_free(DeviceId device) const;     // its earliest free slot
  [[nodiscard]] double device_compute(DeviceId device) const;  // seconds placed there
  [[nodiscard]] double makespan() const { return makespan_; }  // of the partial schedule

  // Requires placed predecessors. When every input of `node` could be on `device`.
  [[nodiscard]] double data_ready(NodeId node, DeviceId device) const;
  [[nodiscard]] double earliest_start(NodeId node, DeviceId device) const;
  // Sum of the transfers from predecessors that sit on other devices, each tensor once.
  [[nodiscard]] double incoming_transfer(NodeId node, DeviceId device) const;
  // Sum over placed partners of `node` that sit on `device`, each partner once, of the mean time to
  // send the tensors with which the partner feeds consumers of `node`, each tensor once.
  [[nodiscard]] double partner_transfer(NodeId node, DeviceId device) const;

  [[nodiscard]] Assignment assignment() const;  // requires complete()

 private:
  std::shared_ptr<const PlacementModel> model_;
  std::vector<DeviceId> device_;
  std::vector<double> start_;
  std::vector<double> end_;
  std::vector<std::int32_t> missing_;  // predecessors not placed yet
  std::vector<NodeId> candidates_;
  std::vector<std::int32_t> candidate_place_;  // index in candidates_; -1: not a candidate
  std::vector<std::int32_t> slot_first_;       // [n_devices + 1]
  std::vector<double> slot_free_;
  std::vector<double> device_compute_;
  double makespan_ = 0;
  std::size_t n_placed_ = 0;
};

}  // namespace doppler
