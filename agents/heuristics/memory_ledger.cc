#include "agents/heuristics/memory_ledger.h"

#include <utility>

namespace doppler {

MemoryLedger::MemoryLedger(std::shared_ptr<const PlacementModel> model, Release release)
    : model_(std::move(model)), release_(release), used_(model_->n_devices(), 0) {
  const Graph& graph = model_->task().graph;
  held_.resize(graph.n_tensors() * used_.size());
  input_held_.resize(graph.n_inputs() * used_.size());
  unplaced_readers_.resize(graph.n_tensors(), 0);
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    for (const PlacementModel::Feed& feed : model_->feeds(NodeId(std::int64_t(v)))) {
      ++unplaced_readers_[feed.tensor.index()];
    }
  }

  const auto inputs = graph.inputs();
  input_first_.resize(graph.n_nodes() + 1, 0);
  for (const GraphInput& input : inputs) {
    for (NodeId reader : input.readers) ++input_first_[reader.index() + 1];
  }
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) input_first_[v + 1] += input_first_[v];
  inputs_.resize(static_cast<std::size_t>(input_first_.back()));
  std::vector<std::int32_t> next(input_first_.begin(), input_first_.end() - 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (NodeId reader : inputs[i].readers) {
      inputs_[static_cast<std::size_t>(next[reader.index()]++)] = InputId(std::int64_t(i));
    }
  }
  const auto& homes = model_->task().options.input_devices;
  for (std::size_t i = 0; i < homes.size(); ++i) {
    used_[homes[i].index()] += inputs[i].tensor.bytes;
    input_held_[bit(i, homes[i])] = true;
  }
}

double MemoryLedger::room(DeviceId device) const {
  return model_->task().cluster.parts().devices[device.index()].memory - used_[device.index()];
}

double MemoryLedger::output_bytes(NodeId node) const {
  const Graph& graph = model_->task().graph;
  const std::size_t first = graph.first_tensor(node).index();
  double sum = 0;
  for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
    sum += graph.tensor_bytes(TensorId(std::int64_t(first + i)));
  }
  return sum;
}

double MemoryLedger::added_bytes(NodeId node, DeviceId device) const {
  double sum = output_bytes(node);
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    if (!held_[bit(feed.tensor.index(), device)]) sum += feed.bytes;
  }
  const auto inputs = model_->task().graph.inputs();
  for (std::int32_t i = input_first_[node.index()]; i < input_first_[node.index() + 1]; ++i) {
    const InputId input = inputs_[static_cast<std::size_t>(i)];
    if (!input_held_[bit(input.index(), device)]) sum += inputs[input.index()].tensor.bytes;
  }
  return sum;
}

void MemoryLedger::place(NodeId node, DeviceId device) {
  used_[device.index()] += added_bytes(node, device);
  const Graph& graph = model_->task().graph;
  const std::size_t first = graph.first_tensor(node).index();
  for (std::size_t i = 0; i < graph.n_outputs(node); ++i) held_[bit(first + i, device)] = true;
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    held_[bit(feed.tensor.index(), device)] = true;
  }
  for (std::int32_t i = input_first_[node.index()]; i < input_first_[node.index() + 1]; ++i) {
    input_held_[bit(inputs_[static_cast<std::size_t>(i)].index(), device)] = true;
  }
  if (release_ == Release::never) return;
  for (const PlacementModel::Feed& feed : model_->feeds(node)) {
    if (--unplaced_readers_[feed.tensor.index()] > 0) continue;
    for (std::size_t d = 0; d < used_.size(); ++d) {
      if (held_[feed.tensor.index() * used_.size() + d]) used_[d] -= feed.bytes;
    }
  }
}

}  // namespace doppler
