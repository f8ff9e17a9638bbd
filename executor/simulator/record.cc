#include "executor/simulator/record.h"

#include <algorithm>
#include <limits>

namespace doppler::simulation {
namespace {

void add_devices(const Model& model, std::span<const std::int32_t> devices,
                 const Timeline& timeline, std::span<const double> peaks, Execution& result) {
  result.devices.resize(model.n_devices);
  for (std::size_t d = 0; d < model.n_devices; ++d) {
    const DeviceId device(static_cast<std::int64_t>(d));
    const double available = model.cluster.device(device).memory;
    result.devices[d].peak_memory = peaks[d];
    if (model.options.enforce_memory && peaks[d] > available && !result.out_of_memory) {
      result.out_of_memory = {.device = device, .needed = peaks[d], .available = available};
      result.makespan = std::numeric_limits<double>::infinity();
    }
  }
  for (std::size_t p = 0; p < model.n_nodes; ++p) {
    result.devices[static_cast<std::size_t>(devices[p])].busy +=
        timeline.end[p] - timeline.start[p];
  }
}

void add_bytes(const Model& model, std::span<const std::int32_t> devices, const Timeline& timeline,
               Execution& result) {
  for (const Transfer& transfer : timeline.transfers) result.bytes_moved += transfer.source->bytes;
  const auto add_local = [&](const Source& source, std::int32_t device) {
    const auto readers = model.readers_of(source);
    const bool here = std::any_of(readers.begin(), readers.end(), [&](std::int32_t reader) {
      return devices[static_cast<std::size_t>(reader)] == device;
    });
    if (here) result.bytes_local += source.bytes;
  };
  for (std::size_t p = 0; p < model.n_nodes; ++p) {
    for (const Source& source : model.sources_of(p)) add_local(source, devices[p]);
  }
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    add_local(model.inputs[i], model.input_device[i]);
  }
}

void add_timeline(const Model& model, std::span<const std::int32_t> devices,
                  const Timeline& timeline, Execution& result) {
  result.nodes.resize(model.n_nodes);
  for (std::size_t p = 0; p < model.n_nodes; ++p) {
    result.nodes[static_cast<std::size_t>(model.node[p])] = {.device = DeviceId(devices[p]),
                                                             .slot = timeline.slot[p],
                                                             .ready = timeline.ready[p],
                                                             .start = timeline.start[p],
                                                             .end = timeline.end[p]};
  }
  result.transfers.reserve(timeline.transfers.size());
  for (const Transfer& transfer : timeline.transfers) {
    const DeviceId from(transfer.from);
    const DeviceId to(transfer.to);
    result.transfers.push_back({.of_input = transfer.of_input,
                                .tensor = TensorId(transfer.of_input ? 0 : transfer.source->id),
                                .input = InputId(transfer.of_input ? transfer.source->id : 0),
                                .from = from,
                                .to = to,
                                .channel = model.cost_model.route(model.cluster, from, to).channel,
                                .requested = transfer.requested,
                                .start = transfer.start,
                                .end = transfer.end,
                                .bytes = transfer.source->bytes});
  }
}

}  // namespace

Execution record(const Model& model, std::span<const std::int32_t> devices,
                 const Timeline& timeline, std::span<const double> peaks) {
  Execution result;
  result.makespan = timeline.makespan;
  add_devices(model, devices, timeline, peaks, result);
  add_bytes(model, devices, timeline, result);
  if (model.options.record_timeline) add_timeline(model, devices, timeline, result);
  return result;
}

}  // namespace doppler::simulation
