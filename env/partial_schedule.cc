#include "env/partial_schedule.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace doppler {

namespace {

Task checked(Task task) {
  task.check();
  return task;
}

}  // namespace

PlacementModel::PlacementModel(Task placed_task)
    : task_(checked(std::move(placed_task))),
      costs_(task_.graph, task_.cluster, task_.cost_model),
      levels_(doppler::levels(task_.graph, costs_)),
      time_scale_(doppler::time_scale(task_.graph, task_.cluster, costs_)),
      n_devices_(task_.cluster.n_devices()) {
  const Graph& graph = task_.graph;
  if (n_devices_ <= kTableDevices) {
    pairs_.resize(n_devices_ * n_devices_);
    for (std::size_t from = 0; from < n_devices_; ++from) {
      for (std::size_t to = 0; to < n_devices_; ++to) {
        if (from == to) continue;
        const Route route = task_.cost_model.route(task_.cluster, DeviceId(std::int64_t(from)),
                                                   DeviceId(std::int64_t(to)));
        pairs_[from * n_devices_ + to] = {route.latency, 1 / route.bandwidth};
      }
    }
  }

  const std::size_t n = graph.n_nodes();
  feed_first_.reserve(n + 1);
  feeds_.reserve(graph.n_edges());
  successor_first_.reserve(n + 1);
  successors_.reserve(graph.n_edges());
  n_predecessors_.reserve(n);
  feed_first_.push_back(0);
  successor_first_.push_back(0);
  for (std::size_t i = 0; i < n; ++i) {
    const NodeId node{std::int64_t(i)};
    for (EdgeId edge : graph.in_edges(node)) {
      const double bytes = graph.edge_bytes(edge);
      feeds_.push_back(
          {graph.edge(edge).producer, graph.edge_tensor(edge), bytes, costs_.mean_transfer(bytes)});
    }
    std::sort(feeds_.begin() + feed_first_.back(), feeds_.end(),
              [](const Feed& a, const Feed& b) { return a.tensor < b.tensor; });
    feed_first_.push_back(static_cast<std::int32_t>(feeds_.size()));
    const auto readers = graph.successors(node);
    successors_.insert(successors_.end(), readers.begin(), readers.end());
    successor_first_.push_back(static_cast<std::int32_t>(successors_.size()));
    n_predecessors_.push_back(static_cast<std::int32_t>(graph.predecessors(node).size()));
  }
  const std::vector<std::uint64_t> equal_keys(n, 0);
  b_level_order(equal_keys, b_level_order_);
}

void PlacementModel::b_level_order(std::span<const std::uint64_t> keys,
                                   std::vector<NodeId>& order) const {
  using Item = std::tuple<double, std::uint64_t, NodeId>;
  const auto later = [](const Item& a, const Item& b) {
    if (std::get<0>(a) != std::get<0>(b)) return std::get<0>(a) < std::get<0>(b);
    return std::tie(std::get<1>(a), std::get<2>(a)) > std::tie(std::get<1>(b), std::get<2>(b));
  };
  std::priority_queue<Item, std::vector<Item>, decltype(later)> candidates(later);
  const auto offer = [&](NodeId node) {
    candidates.push({levels_.b_level[node.index()], keys[node.index()], node});
  };
  std::vector<std::int32_t> missing = n_predecessors_;
  order.clear();
  order.reserve(missing.size());
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) offer(NodeId(std::int64_t(i)));
  }
  while (!candidates.empty()) {
    const NodeId node = std::get<2>(candidates.top());
    candidates.pop();
    order.push_back(node);
    for (NodeId successor : successors(node)) {
      if (--missing[successor.index()] == 0) offer(successor);
    }
  }
}

double PlacementModel::routed_transfer(double bytes, DeviceId from, DeviceId to) const {
  if (from == to) return 0;
  const Route route = task_.cost_model.route(task_.cluster, from, to);
  return route.latency + bytes * (1 / route.bandwidth);
}

PartialSchedule::PartialSchedule(std::shared_ptr<const PlacementModel> model)
    : model_(std::move(model)),
      device_(model_->n_nodes()),
      start_(model_->n_nodes()),
      end_(model_->n_nodes()),
      missing_(model_->n_nodes()),
      candidate_place_(model_->n_nodes()),
      device_free_(model_->n_devices()),
      device_compute_(model_->n_devices()),
      marks_(model_->task().graph.n_tensors(), 0),
      node_marks_(model_->n_nodes(), 0) {
  candidates_.reserve(model_->n_nodes());
  slot_first_.reserve(model_->n_devices() + 1);
  slot_first_.push_back(0);
  for (std::size_t d = 0; d < model_->n_devices(); ++d) {
    slot_first_.push_back(slot_first_.back() +
                          model_->task().cluster.device(DeviceId(std::int64_t(d))).streams);
  }
  slot_free_.resize(static_cast<std::size_t>(slot_first_.back()));
  reset();
}

void PartialSchedule::reset() {
  std::fill(device_.begin(), device_.end(), DeviceId{-1});
  std::fill(start_.begin(), start_.end(), 0.0);
  std::fill(end_.begin(), end_.end(), 0.0);
  std::fill(candidate_place_.begin(), candidate_place_.end(), -1);
  std::fill(slot_free_.begin(), slot_free_.end(), 0.0);
  std::fill(device_free_.begin(), device_free_.end(), 0.0);
  std::fill(device_compute_.begin(), device_compute_.end(), 0.0);
  makespan_ = 0;
  n_placed_ = 0;
  last_placed_ = NodeId{-1};
  candidates_.clear();
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    const NodeId node{std::int64_t(i)};
    missing_[i] = model_->n_predecessors(node);
    if (missing_[i] == 0) add_candidate(node);
  }
}

void PartialSchedule::add_candidate(NodeId node) {
  candidate_place_[node.index()] = static_cast<std::int32_t>(candidates_.size());
  candidates_.push_back(node);
}

void PartialSchedule::remove_candidate(NodeId node) {
  const auto place = static_cast<std::size_t>(candidate_place_[node.index()]);
  const NodeId last = candidates_.back();
  candidates_[place] = last;
  candidate_place_[last.index()] = static_cast<std::int32_t>(place);
  candidates_.pop_back();
  candidate_place_[node.index()] = -1;
}

void PartialSchedule::refuse(NodeId node, DeviceId device) const {
  const std::string what = "cannot place node " + std::to_string(node.value) + " on device " +
                           std::to_string(device.value) + ": ";
  if (node.value < 0 || node.index() >= device_.size()) {
    throw std::logic_error(what + "the graph has " + std::to_string(device_.size()) + " nodes");
  }
  if (device.value < 0 || device.index() >= device_free_.size()) {
    throw std::logic_error(what + "the cluster has " + std::to_string(device_free_.size()) +
                           " devices");
  }
  if (placed(node)) {
    throw std::logic_error(what + "it is on device " + std::to_string(device_[node.index()].value) +
                           " already");
  }
  throw std::logic_error(what + std::to_string(missing_[node.index()]) +
                         " of its predecessors are not placed yet");
}

void PartialSchedule::place(NodeId node, DeviceId device) {
  const std::size_t v = node.index();
  const std::size_t d = device.index();
  // A negative id is a huge index.
  if (v >= device_.size() || d >= device_free_.size() || candidate_place_[v] < 0) {
    refuse(node, device);
  }
  const double start = std::max(device_free_[d], data_ready(node, device));
  const double seconds = model_->costs().compute(node, device);
  const double end = start + seconds;
  device_[v] = device;
  start_[v] = start;
  end_[v] = end;
  device_compute_[d] += seconds;
  makespan_ = std::max(makespan_, end);
  ++n_placed_;
  last_placed_ = node;

  const auto slots = slot_free_.begin() + slot_first_[d];
  const auto slots_end = slot_free_.begin() + slot_first_[d + 1];
  *std::min_element(slots, slots_end) = end;
  device_free_[d] = *std::min_element(slots, slots_end);

  remove_candidate(node);
  for (NodeId successor : model_->successors(node)) {
    if (--missing_[successor.index()] == 0) add_candidate(successor);
  }
}

double PartialSchedule::data_ready(NodeId node, DeviceId device) const {
  double ready = 0;
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    const std::size_t p = feed.producer.index();
    ready = std::max(ready, end_[p] + model_->transfer(feed.bytes, device_[p], device));
  }
  return ready;
}

void PartialSchedule::data_ready(NodeId node, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    const std::size_t p = feed.producer.index();
    for (std::size_t d = 0; d < out.size(); ++d) {
      const DeviceId device{static_cast<std::int64_t>(d)};
      out[d] = std::max(out[d], end_[p] + model_->transfer(feed.bytes, device_[p], device));
    }
  }
}

double PartialSchedule::earliest_start(NodeId node, DeviceId device) const {
  return std::max(device_free(device), data_ready(node, device));
}

void PartialSchedule::earliest_starts(NodeId node, std::span<double> out) const {
  data_ready(node, out);
  for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::max(out[d], device_free_[d]);
}

double PartialSchedule::incoming_transfer(NodeId node, DeviceId device) const {
  double sum = 0;
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    sum += model_->transfer(feed.bytes, device_[feed.producer.index()], device);
  }
  return sum;
}

void PartialSchedule::incoming_transfers(NodeId node, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    const DeviceId from = device_[feed.producer.index()];
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += model_->transfer(feed.bytes, from, DeviceId(static_cast<std::int64_t>(d)));
    }
  }
}

double PartialSchedule::partner_transfer(NodeId node, DeviceId device) const {
  double sum = 0;
  for_each_partner_feed(node, [&](const PlacementModel::Feed& feed) {
    if (device_[feed.producer.index()] == device) sum += feed.mean_transfer;
  });
  return sum;
}

void PartialSchedule::partner_transfers(NodeId node, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  for_each_partner_feed(node, [&](const PlacementModel::Feed& feed) {
    const DeviceId at = device_[feed.producer.index()];
    if (at.value >= 0) out[at.index()] += feed.mean_transfer;
  });
}

void PartialSchedule::sibling_computes(NodeId node, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  ++walk_;
  node_marks_[node.index()] = walk_;
  NodeId previous{-1};
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    if (feed.producer == previous) continue;
    previous = feed.producer;
    for (NodeId sibling : model_->successors(feed.producer)) {
      std::uint64_t& mark = node_marks_[sibling.index()];
      if (mark == walk_) continue;
      mark = walk_;
      const DeviceId at = device_[sibling.index()];
      if (at.value >= 0) out[at.index()] += model_->costs().compute(sibling, at);
    }
  }
}

Assignment PartialSchedule::assignment() const {
  if (!complete()) {
    throw std::logic_error("only " + std::to_string(n_placed_) + " of " +
                           std::to_string(device_.size()) + " nodes are placed");
  }
  return Assignment(device_);
}

}  // namespace doppler
