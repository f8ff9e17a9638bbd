#include "executor/simulator/memory.h"

#include <algorithm>

namespace doppler::simulation {

MemoryMeter::MemoryMeter(const Model& model)
    : model_(model), unread_(model.n_nodes, 0), peak_(model.n_devices), last_sent_() {
  const Graph& graph = model.graph;
  std::vector<bool> read(graph.n_tensors(), false);
  for (const Source& source : model.sources) read[static_cast<std::size_t>(source.id)] = true;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    const TensorId tensor(static_cast<std::int64_t>(t));
    if (read[t]) continue;
    const auto position = static_cast<std::size_t>(graph.position(graph.tensor_producer(tensor)));
    unread_[position] += graph.tensor_bytes(tensor);
  }
  for (std::size_t d = 0; d < model.n_devices; ++d) {
    capacity_.push_back(model.cluster.device(DeviceId(static_cast<std::int64_t>(d))).memory);
  }
  last_input_.resize(model.n_devices);
  last_sent_.resize(model.sources.size());
  changes_.reserve(2 * (model.n_nodes + model.sources.size() + model.max_transfers));
}

template <class Hold>
void MemoryMeter::for_each_input(std::span<const std::int32_t> devices, Hold&& hold) {
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    hold(model_.input_device[i], model_.inputs[i].bytes);
  }
  if (!model_.options.input_devices.empty()) return;
  std::fill(last_input_.begin(), last_input_.end(), 0);
  for (std::size_t i = 0; i < model_.graph.n_inputs(); ++i) {
    const GraphInput& input = model_.graph.inputs()[i];
    for (NodeId reader : input.readers) {
      const std::int32_t device = devices[static_cast<std::size_t>(model_.graph.position(reader))];
      std::size_t& last = last_input_[static_cast<std::size_t>(device)];
      if (last != i + 1) hold(device, input.tensor.bytes);
      last = i + 1;
    }
  }
}

bool MemoryMeter::could_exceed(std::span<const std::int32_t> devices, const Timeline& timeline) {
  std::fill(peak_.begin(), peak_.end(), 0.0);
  const auto hold = [&](std::int32_t device, double bytes) {
    peak_[static_cast<std::size_t>(device)] += bytes;
  };
  for_each_input(devices, hold);
  for (const Transfer& transfer : timeline.transfers) hold(transfer.to, transfer.source->bytes);
  for (std::size_t p = 0; p < model_.n_nodes; ++p) {
    double bytes = unread_[p];
    for (const Source& source : model_.sources_of(p)) bytes += source.bytes;
    hold(devices[p], bytes);
  }
  for (std::size_t d = 0; d < peak_.size(); ++d) {
    // A little more, since another order of additions may round differently.
    if (peak_[d] * (1 + 1e-9) > capacity_[d]) return true;
  }
  return false;
}

std::span<const double> MemoryMeter::peaks(std::span<const std::int32_t> devices,
                                           const Timeline& timeline) {
  changes_.clear();
  std::fill(last_sent_.begin(), last_sent_.end(), 0.0);
  const auto last_read = [&](const Source& source, std::int32_t device) {
    double last = 0;
    for (std::int32_t reader : model_.readers_of(source)) {
      const auto p = static_cast<std::size_t>(reader);
      if (devices[p] == device) last = std::max(last, timeline.end[p]);
    }
    return last;
  };
  const auto add_life = [&](double begin, double end, double bytes, std::int32_t device) {
    if (!(begin < end) || bytes == 0) return;
    changes_.push_back({begin, bytes, device});
    changes_.push_back({end, -bytes, device});
  };
  for (const Transfer& transfer : timeline.transfers) {
    const Source& source = *transfer.source;
    if (transfer.of_input) {
      changes_.push_back({transfer.start, source.bytes, transfer.to});
      continue;
    }
    double& sent = last_sent_[static_cast<std::size_t>(&source - model_.sources.data())];
    sent = std::max(sent, transfer.end);
    add_life(transfer.start, last_read(source, transfer.to), source.bytes, transfer.to);
  }
  for (std::size_t p = 0; p < model_.n_nodes; ++p) {
    if (unread_[p] > 0) changes_.push_back({timeline.start[p], unread_[p], devices[p]});
    for (std::size_t s = model_.first_source[p]; s < model_.first_source[p + 1]; ++s) {
      const Source& source = model_.sources[s];
      const double end = std::max(last_read(source, devices[p]), last_sent_[s]);
      add_life(timeline.start[p], end, source.bytes, devices[p]);
    }
  }
  for_each_input(devices, [&](std::int32_t device, double bytes) {
    changes_.push_back({0, bytes, device});
  });
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return a.device != b.device ? a.device < b.device : a.time < b.time;
  });
  std::fill(peak_.begin(), peak_.end(), 0.0);
  double now = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    now += change.bytes;
    const bool last = i + 1 == changes_.size();
    if (last || changes_[i + 1].device != change.device || changes_[i + 1].time != change.time) {
      double& peak = peak_[static_cast<std::size_t>(change.device)];
      peak = std::max(peak, now);
    }
    if (last || changes_[i + 1].device != change.device) now = 0;
  }
  return peak_;
}

}  // namespace doppler::simulation
