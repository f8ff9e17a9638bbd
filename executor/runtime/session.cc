#include "executor/runtime/session.h"

#include <set>
#include <string>

#include "executor/engine.h"
#include "graphs/error.h"

namespace doppler::runtime {

Session::Session(std::unique_ptr<DeviceApi> api, const Cluster& cluster, SessionOptions options)
    : api_(std::move(api)), options_(std::move(options)), slots_(cluster.n_devices()) {
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    const DeviceId device(static_cast<std::int64_t>(d));
    for (std::int32_t s = 0; s < cluster.device(device).streams; ++s) {
      slots_[d].push_back(api_->make_stream(device, StreamUse::kernels));
    }
    memory_.push_back(api_->memory(device));
  }
}

Session::~Session() { drop_inputs(nullptr); }

void Session::run(const simulation::Model& model, std::span<const std::int32_t> devices,
                  simulation::Timeline& timeline, const ResultReader& results) {
  load(model.graph);
  const RunPlan plan(model, {devices.begin(), devices.end()});
  plan.check_memory(memory_);
  if (options_.emulate_links) plan.check_links();
  const StreamSet streams = streams_for(plan);
  for (;;) {
    try {
      const std::vector<Buffer> inputs = place_inputs(plan);
      Dispatcher dispatcher(plan, *api_, streams, inputs, options_.lookahead);
      dispatcher.emulate_links(options_.emulate_links);
      dispatcher.start(timeline);
      dispatcher.wait();
      if (results) read_results(plan, dispatcher, results);
      return;
    } catch (const OutOfMemoryError&) {
      // Inputs of other assignments may have taken the room.
      if (!drop_inputs(&plan)) throw;
    }
  }
}

void Session::load(const Graph& graph) {
  if (is_loaded_ && graph == graph_) return;
  drop_inputs(nullptr);
  is_loaded_ = false;
  api_->load(graph);
  graph_ = graph;
  is_loaded_ = true;
}

StreamSet Session::streams_for(const RunPlan& plan) {
  StreamSet streams;
  for (const auto& slots : slots_) {
    streams.slots.emplace_back();
    for (const auto& stream : slots) streams.slots.back().push_back(stream.get());
  }
  std::map<const Stream*, std::uint32_t> number;
  for (const PlannedTransfer& transfer : plan.transfers) {
    const auto key = options_.lanes == Lanes::channels ? std::pair(transfer.channel, 0)
                                                       : std::pair(transfer.from, transfer.to);
    std::unique_ptr<Stream>& lane = lanes_[key];
    if (!lane) lane = api_->make_stream(DeviceId(transfer.from), StreamUse::copies);
    const auto next = static_cast<std::uint32_t>(streams.lanes.size());
    const auto [found, is_new] = number.try_emplace(lane.get(), next);
    if (is_new) streams.lanes.push_back(lane.get());
    streams.lane_of_transfer.push_back(found->second);
  }
  return streams;
}

std::vector<Buffer> Session::place_inputs(const RunPlan& plan) {
  std::vector<Buffer> buffers;
  std::vector<std::byte> data;
  InputId made(-1);  // the input that `data` holds; those of a plan come in order
  for (const PlannedInput& input : plan.inputs) {
    const auto found = inputs_.find({input.input, input.device});
    if (found != inputs_.end()) {
      buffers.push_back(found->second);
      continue;
    }
    const Buffer buffer = allocate_input(plan, input);
    inputs_[{input.input, input.device}] = buffer;
    if (made != input.input) {
      data.resize(buffer.bytes);
      if (options_.make_input) options_.make_input(graph_, input.input, data);
      made = input.input;
    }
    try {
      if (buffer.bytes > 0) api_->write(buffer, data);
    } catch (...) {
      // It has a place, but no content: it must not be taken for an input that is there.
      inputs_.erase({input.input, input.device});
      if (buffer.bytes > 0) slots_[input.device.index()].front()->release(buffer);
      throw;
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

Buffer Session::allocate_input(const RunPlan& plan, const PlannedInput& input) {
  const std::size_t bytes = plan.blocks[input.block].bytes;
  if (bytes == 0) return {.device = input.device};
  try {
    return slots_[input.device.index()].front()->allocate(input.device, bytes);
  } catch (const RunError& error) {
    double in_use = 0;
    for (const auto& [place, buffer] : inputs_) {
      if (place.second == input.device) in_use += static_cast<double>(buffer.bytes);
    }
    const std::size_t memory = memory_[input.device.index()];
    throw OutOfMemoryError(
        {input.device, in_use + static_cast<double>(bytes), static_cast<double>(memory)},
        "device " + std::to_string(input.device.value) + " has no room for graph input '" +
            graph_.inputs()[input.input.index()].name + "' of " + std::to_string(bytes) +
            " bytes (" + error.what() + ")");
  }
}

bool Session::drop_inputs(const RunPlan* plan) {
  std::set<std::pair<InputId, DeviceId>> needed;
  if (plan != nullptr) {
    for (const PlannedInput& input : plan->inputs) needed.insert({input.input, input.device});
  }
  bool dropped = false;
  for (auto next = inputs_.begin(); next != inputs_.end();) {
    const auto& [place, buffer] = *next;
    if (needed.contains(place)) {
      ++next;
      continue;
    }
    if (buffer.bytes > 0) slots_[place.second.index()].front()->release(buffer);
    dropped = true;
    next = inputs_.erase(next);
  }
  return dropped;
}

void Session::read_results(const RunPlan& plan, const Dispatcher& dispatcher,
                           const ResultReader& results) {
  const Graph& graph = plan.model.graph;
  std::vector<bool> is_read(graph.n_tensors(), false);
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    is_read[graph.edge_tensor(EdgeId(static_cast<std::int64_t>(e))).index()] = true;
  }
  std::vector<std::byte> data;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    if (is_read[t]) continue;
    const TensorId tensor(static_cast<std::int64_t>(t));
    const Buffer& buffer = dispatcher.result(tensor);
    data.resize(buffer.bytes);
    if (buffer.bytes > 0) api_->read(buffer, data);
    results(tensor, data);
  }
}

}  // namespace doppler::runtime
