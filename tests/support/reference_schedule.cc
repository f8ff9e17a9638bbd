#include "tests/support/reference_schedule.h"

#include <algorithm>
#include <set>

namespace doppler::testing {
namespace {

// Each tensor that a node reads.
std::set<TensorId> inputs(const Graph& graph, NodeId node) {
  std::set<TensorId> result;
  for (EdgeId edge : graph.in_edges(node)) result.insert(graph.edge_tensor(edge));
  return result;
}
std::set<NodeId> producers(const Graph& graph, NodeId node) {
  std::set<NodeId> result;
  for (EdgeId edge : graph.in_edges(node)) result.insert(graph.edge(edge).producer);
  return result;
}
std::set<NodeId> readers(const Graph& graph, NodeId node) {
  std::set<NodeId> result;
  for (EdgeId edge : graph.out_edges(node)) result.insert(graph.edge(edge).reader);
  return result;
}

}  // namespace

void ReferenceSchedule::place(NodeId node, DeviceId device) {
  const double start = earliest_start(node, device);
  const double end = start + compute(node, device);
  placed_[node] = {device, start, end};
  auto& slots = slots_[device];
  slots.resize(static_cast<std::size_t>(task_.cluster.device(device).streams), 0);
  *std::min_element(slots.begin(), slots.end()) = end;
}

bool ReferenceSchedule::is_candidate(NodeId node) const {
  if (placed_.contains(node)) return false;
  for (NodeId producer : producers(task_.graph, node)) {
    if (!placed_.contains(producer)) return false;
  }
  return true;
}

double ReferenceSchedule::device_free(DeviceId device) const {
  const auto slots = slots_.find(device);
  if (slots == slots_.end()) return 0;
  return *std::min_element(slots->second.begin(), slots->second.end());
}

double ReferenceSchedule::data_ready(NodeId node, DeviceId device) const {
  double ready = 0;
  for (TensorId tensor : inputs(task_.graph, node)) {
    const Run& producer = placed_.at(task_.graph.tensor_producer(tensor));
    ready = std::max(ready, producer.end + seconds(tensor, producer.device, device));
  }
  return ready;
}

double ReferenceSchedule::earliest_start(NodeId node, DeviceId device) const {
  return std::max(device_free(device), data_ready(node, device));
}

double ReferenceSchedule::incoming(NodeId node, DeviceId device) const {
  double sum = 0;
  for (TensorId tensor : inputs(task_.graph, node)) {
    sum += seconds(tensor, placed_.at(task_.graph.tensor_producer(tensor)).device, device);
  }
  return sum;
}

double ReferenceSchedule::partners(NodeId node, DeviceId device) const {
  std::set<TensorId> tensors;
  for (NodeId consumer : readers(task_.graph, node)) {
    tensors.merge(inputs(task_.graph, consumer));
  }
  double sum = 0;
  for (TensorId tensor : tensors) {
    const NodeId partner = task_.graph.tensor_producer(tensor);
    const auto found = placed_.find(partner);
    if (partner == node || found == placed_.end() || found->second.device != device) continue;
    sum += mean_seconds(tensor);
  }
  return sum;
}

double ReferenceSchedule::siblings(NodeId node, DeviceId device) const {
  double sum = 0;
  for (const auto& [other, run] : placed_) {
    if (other == node || run.device != device) continue;
    std::set<NodeId> shared = producers(task_.graph, node);
    const auto theirs = producers(task_.graph, other);
    std::erase_if(shared, [&](NodeId p) { return !theirs.contains(p); });
    if (!shared.empty()) sum += compute(other, device);
  }
  return sum;
}

std::vector<double> ReferenceSchedule::device_features(NodeId node, DeviceId device,
                                                       bool full) const {
  double here = 0;
  for (const auto& [other, run] : placed_) {
    if (run.device == device) here += compute(other, device);
  }
  double sum = 0;
  std::vector<double> starts;
  std::vector<double> ends;
  for (NodeId producer : producers(task_.graph, node)) {
    const Run& run = placed_.at(producer);
    if (run.device != device) continue;
    sum += compute(producer, device);
    starts.push_back(run.start);
    ends.push_back(run.end);
  }
  std::vector<double> features{here / scale_, sum / scale_, 0, 0,
                               earliest_start(node, device) / scale_};
  if (!starts.empty()) {
    features[2] = *std::min_element(starts.begin(), starts.end()) / scale_;
    features[3] = *std::max_element(ends.begin(), ends.end()) / scale_;
  }
  if (!full) return features;

  double fastest = total_compute(DeviceId{0});
  for (std::size_t d = 1; d < task_.cluster.n_devices(); ++d) {
    fastest = std::min(fastest, total_compute(DeviceId(static_cast<std::int64_t>(d))));
  }
  double bytes = 0;
  for (const auto& [other, run] : placed_) {
    if (run.device != device) continue;
    for (const Tensor& tensor : task_.graph.node(other).outputs) bytes += tensor.bytes;
  }
  const double own = total_compute(device);
  features.push_back(incoming(node, device) / scale_);
  features.push_back(partners(node, device) / scale_);
  features.push_back(siblings(node, device) / scale_);
  features.push_back(own > 0 ? fastest / own : 1);
  features.push_back(1 - bytes / std::max(task_.cluster.device(device).memory, 1.0));
  return features;
}

double ReferenceSchedule::compute(NodeId node, DeviceId device) const {
  return task_.cost_model.compute(task_.graph, node, task_.cluster, device);
}

double ReferenceSchedule::seconds(TensorId tensor, DeviceId from, DeviceId to) const {
  if (from == to) return 0;
  const Route route = task_.cost_model.route(task_.cluster, from, to);
  return route.latency + task_.graph.tensor_bytes(tensor) / route.bandwidth;
}

double ReferenceSchedule::mean_seconds(TensorId tensor) const {
  const auto n = static_cast<std::int64_t>(task_.cluster.n_devices());
  if (n == 1) return 0;
  double sum = 0;
  for (std::int64_t from = 0; from < n; ++from) {
    for (std::int64_t to = 0; to < n; ++to) sum += seconds(tensor, DeviceId(from), DeviceId(to));
  }
  return sum / static_cast<double>(n * (n - 1));
}

double ReferenceSchedule::total_compute(DeviceId device) const {
  double sum = 0;
  for (std::size_t v = 0; v < task_.graph.n_nodes(); ++v) {
    sum += compute(NodeId(static_cast<std::int64_t>(v)), device);
  }
  return sum;
}

}  // namespace doppler::testing
