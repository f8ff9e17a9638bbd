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
// immutable, thread safe. Memory: O(nodes + edges), and O(devices^2) up to kTableDevices devices.
class PlacementModel {
 public:
  // A tensor on its way into one reader. A reader has each tensor once.
  struct Feed {
    NodeId producer;
    TensorId tensor;
    double bytes = 0;
    double mean_transfer = 0;  // seconds; CostTable::mean_transfer(bytes)
  };
  // Up to so many devices, latency and seconds per byte of every pair are kept in a flat table;
  // beyond it each is asked of CostModel::route().
  static constexpr std::size_t kTableDevices = 64;

  // Throws InvalidError unless the task's parts fit each other. O((nodes + edges) log nodes).
  explicit PlacementModel(Task placed_task);

  [[nodiscard]] const Task& task() const { return task_; }
  [[nodiscard]] const CostTable& costs() const { return costs_; }
  [[nodiscard]] const Levels& levels() const { return levels_; }
  [[nodiscard]] double time_scale() const { return time_scale_; }  // seconds
  [[nodiscard]] std::size_t n_nodes() const { return task_.graph.n_nodes(); }
  [[nodiscard]] std::size_t n_devices() const { return n_devices_; }

  // Every node, the candidate of largest b-level first, ties to the smaller id. As b-levels never
  // grow along an edge, this order is both topological and sorted by b-level.
  [[nodiscard]] std::span<const NodeId> b_level_order() const { return b_level_order_; }
  // The same with ties to the smaller key, then id; keys: [n_nodes]. Reuses the storage of `order`.
  // O((nodes + edges) + nodes log nodes).
  void b_level_order(std::span<const std::uint64_t> keys, std::vector<NodeId>& order) const;

  // By ascending tensor, and so by ascending producer.
  [[nodiscard]] std::span<const Feed> feeds(NodeId reader) const {
    return slice(feeds_, feed_first_, reader);
  }
  // Distinct, ascending.
  [[nodiscard]] std::span<const NodeId> successors(NodeId node) const {
    return slice(successors_, successor_first_, node);
  }
  [[nodiscard]] std::int32_t n_predecessors(NodeId node) const {
    return n_predecessors_[node.index()];
  }

  // Seconds for one tensor between two devices; 0 on one device.
  [[nodiscard]] double transfer(double bytes, DeviceId from, DeviceId to) const {
    if (!pairs_.empty()) {
      const Pair& pair = pairs_[from.index() * n_devices_ + to.index()];
      return pair.latency + bytes * pair.seconds_per_byte;
    }
    return routed_transfer(bytes, from, to);
  }

 private:
  struct Pair {
    double latency = 0;
    double seconds_per_byte = 0;
  };
  template <class T>
  static std::span<const T> slice(const std::vector<T>& items,
                                  const std::vector<std::int32_t>& first, NodeId node) {
    const auto begin = static_cast<std::size_t>(first[node.index()]);
    const auto end = static_cast<std::size_t>(first[node.index() + 1]);
    return {items.data() + begin, end - begin};
  }
  [[nodiscard]] double routed_transfer(double bytes, DeviceId from, DeviceId to) const;

  Task task_;
  CostTable costs_;
  Levels levels_;
  double time_scale_ = 1;
  std::size_t n_devices_ = 1;
  std::vector<Pair> pairs_;  // [n_devices, n_devices], the diagonal 0; empty: ask for routes
  std::vector<std::int32_t> feed_first_;
  std::vector<Feed> feeds_;
  std::vector<std::int32_t> successor_first_;
  std::vector<NodeId> successors_;
  std::vector<std::int32_t> n_predecessors_;  // distinct
  std::vector<NodeId> b_level_order_;
};

// A copy continues exactly as its original. One thread at a time, const members too.
class PartialSchedule {
 public:
  explicit PartialSchedule(std::shared_ptr<const PlacementModel> model);

  // Back to nothing placed; no allocation.
  void reset();

  [[nodiscard]] const PlacementModel& model() const { return *model_; }
  [[nodiscard]] std::size_t n_placed() const { return n_placed_; }
  [[nodiscard]] bool complete() const { return n_placed_ == device_.size(); }
  [[nodiscard]] NodeId last_placed() const { return last_placed_; }  // -1: none
  [[nodiscard]] bool placed(NodeId node) const { return device_[node.index()].value >= 0; }
  // Unplaced nodes whose predecessors are placed, in no particular order.
  [[nodiscard]] std::span<const NodeId> candidates() const { return candidates_; }
  [[nodiscard]] bool is_candidate(NodeId node) const { return candidate_place_[node.index()] >= 0; }

  // Requires a candidate and a device of the cluster; std::logic_error otherwise, and nothing
  // changes. No allocation. O(degree + streams).
  void place(NodeId node, DeviceId device);

  // -1 in `value` if the node is not placed; its start and end are 0 then.
  [[nodiscard]] DeviceId device(NodeId node) const { return device_[node.index()]; }
  [[nodiscard]] double start(NodeId node) const { return start_[node.index()]; }  // seconds
  [[nodiscard]] double end(NodeId node) const { return end_[node.index()]; }      // seconds
  // Its earliest free slot; seconds.
  [[nodiscard]] double device_free(DeviceId device) const { return device_free_[device.index()]; }
  // Seconds placed there.
  [[nodiscard]] double device_compute(DeviceId device) const {
    return device_compute_[device.index()];
  }
  [[nodiscard]] double makespan() const { return makespan_; }  // of the partial schedule

  // All of the following require that the predecessors of `node` are placed; the forms with `out`
  // fill one value a device, [n_devices], in O(degree x devices).

  // When every input of `node` could be on `device`; 0 without inputs.
  [[nodiscard]] double data_ready(NodeId node, DeviceId device) const;
  void data_ready(NodeId node, std::span<double> out) const;
  [[nodiscard]] double earliest_start(NodeId node, DeviceId device) const;
  void earliest_starts(NodeId node, std::span<double> out) const;
  // Sum of the transfers from predecessors that sit on other devices, each tensor once.
  [[nodiscard]] double incoming_transfer(NodeId node, DeviceId device) const;
  void incoming_transfers(NodeId node, std::span<double> out) const;
  // Sum over placed partners of `node` (the other nodes that feed one of its consumers) that sit on
  // `device`, each partner once, of the mean time to send the tensors with which the partner feeds
  // consumers of `node`, each tensor once. O(sum of the in-degrees of the consumers).
  [[nodiscard]] double partner_transfer(NodeId node, DeviceId device) const;
  void partner_transfers(NodeId node, std::span<double> out) const;
  // Sum of the computes of placed nodes on `device` that share a producer with `node`, each once.
  // O(sum of the out-degrees of the producers).
  void sibling_computes(NodeId node, std::span<double> out) const;

  // Calls visit(feed) once for each tensor that a partner of `node` sends to consumers of `node`.
  template <class Visit>
  void for_each_partner_feed(NodeId node, Visit&& visit) const;

  [[nodiscard]] Assignment assignment() const;  // requires complete(); std::logic_error otherwise

 private:
  [[noreturn]] void refuse(NodeId node, DeviceId device) const;
  void add_candidate(NodeId node);
  void remove_candidate(NodeId node);

  std::shared_ptr<const PlacementModel> model_;
  std::vector<DeviceId> device_;
  std::vector<double> start_;
  std::vector<double> end_;
  std::vector<std::int32_t> missing_;  // predecessors not placed yet
  std::vector<NodeId> candidates_;
  std::vector<std::int32_t> candidate_place_;  // index in candidates_; -1: not a candidate
  std::vector<std::int32_t> slot_first_;       // [n_devices + 1]
  std::vector<double> slot_free_;
  std::vector<double> device_free_;  // the least of the device's slots
  std::vector<double> device_compute_;
  double makespan_ = 0;
  std::size_t n_placed_ = 0;
  NodeId last_placed_{-1};
  // A tensor (a node) is seen in the present walk if its mark is the walk's number.
  mutable std::vector<std::uint64_t> marks_;
  mutable std::vector<std::uint64_t> node_marks_;
  mutable std::uint64_t walk_ = 0;
};

template <class Visit>
void PartialSchedule::for_each_partner_feed(NodeId node, Visit&& visit) const {
  const auto consumers = model_->successors(node);
  // One consumer reads each tensor once; with several a tensor may be met again.
  const bool may_repeat = consumers.size() > 1;
  if (may_repeat) ++walk_;
  for (NodeId consumer : consumers) {
    for (const PlacementModel::Feed& feed : model_->feeds(consumer)) {
      if (feed.producer == node) continue;
      if (may_repeat) {
        std::uint64_t& mark = marks_[feed.tensor.index()];
        if (mark == walk_) continue;
        mark = walk_;
      }
      visit(feed);
    }
  }
}

}  // namespace doppler
