#include "executor/runtime/run_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "executor/engine.h"
#include "graphs/error.h"

namespace doppler::runtime {
namespace {

using simulation::Model;
using simulation::Source;

constexpr std::uint32_t kNone = 0xffffffff;

// Sizes up to which counting bytes is exact.
constexpr double kMostBytes = 0x1p53;

std::size_t block_bytes(std::span<const std::int64_t> shape, DType dtype, double bytes) {
  if (!shape.empty()) {
    bytes = size_of(dtype);
    for (const std::int64_t size : shape) bytes *= static_cast<double>(size);
  }
  if (!(bytes <= kMostBytes)) {
    throw InvalidError("a tensor of " + std::to_string(bytes) +
                       " bytes cannot be held; run this graph on the simulator");
  }
  return static_cast<std::size_t>(std::ceil(bytes));
}

// Where one tensor or input is found on each device in one plan.
class Places {
 public:
  explicit Places(std::size_t n_devices) : block_(n_devices, kNone) {}
  std::uint32_t& operator[](std::int32_t device) {
    return block_[static_cast<std::size_t>(device)];
  }
  void note(std::int32_t device, std::uint32_t block) {
    (*this)[device] = block;
    noted_.push_back(device);
  }
  void clear() {
    for (const std::int32_t device : noted_) (*this)[device] = kNone;
    noted_.clear();
  }

 private:
  std::vector<std::uint32_t> block_;
  std::vector<std::int32_t> noted_;
};

}  // namespace

std::size_t block_bytes(const Tensor& tensor) {
  return block_bytes(tensor.shape, tensor.dtype, tensor.bytes);
}

std::size_t block_bytes(const Graph& graph, TensorId tensor) {
  return block_bytes(graph.tensor_shape(tensor), graph.tensor_dtype(tensor),
                     graph.tensor_bytes(tensor));
}

RunPlan::RunPlan(const Model& planned_model, std::vector<std::int32_t> device_of_position)
    : model(planned_model), devices(std::move(device_of_position)) {
  const Graph& graph = model.graph;
  const std::size_t n = model.n_nodes;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    const TensorId tensor(static_cast<std::int64_t>(t));
    const auto producer = static_cast<std::size_t>(graph.position(graph.tensor_producer(tensor)));
    blocks.push_back({DeviceId(devices[producer]), block_bytes(graph, tensor), 1});
  }

  // Operands by node: in-edges in their order, then inputs ascending. Filled source by source, so
  // that no table of tensors by devices is needed.
  std::vector<std::vector<InputId>> inputs_of(n);
  for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
    for (const NodeId reader : graph.inputs()[i].readers) {
      inputs_of[static_cast<std::size_t>(graph.position(reader))].push_back(
          InputId(static_cast<std::int64_t>(i)));
    }
  }
  std::vector<std::uint32_t> place_of_edge(graph.n_edges());
  first_operand.push_back(0);
  for (std::size_t p = 0; p < n; ++p) {
    const auto edges = graph.in_edges(NodeId(model.node[p]));
    for (std::size_t k = 0; k < edges.size(); ++k) {
      place_of_edge[edges[k].index()] = first_operand[p] + static_cast<std::uint32_t>(k);
    }
    first_operand.push_back(first_operand[p] +
                            static_cast<std::uint32_t>(edges.size() + inputs_of[p].size()));
  }
  operands.assign(first_operand.back(), kNone);
  std::vector<std::uint32_t> n_filled(n, 0);  // inputs

  Places places(model.n_devices);
  // The block of `source` on a reader's device; a transfer brings it there if need be.
  const auto place = [&](const Source& source, bool of_input, std::int32_t from,
                         std::uint32_t from_block, std::size_t bytes) {
    places.note(from, from_block);
    const auto first = static_cast<std::ptrdiff_t>(transfers.size());
    for (const std::int32_t reader : model.readers_of(source)) {
      const std::int32_t to = devices[static_cast<std::size_t>(reader)];
      if (places[to] != kNone) continue;
      places.note(to, 0);
      transfers.push_back({.source = &source, .of_input = of_input, .from = from, .to = to});
    }
    std::sort(transfers.begin() + first, transfers.end(),
              [](const PlannedTransfer& a, const PlannedTransfer& b) { return a.to < b.to; });
    for (auto transfer = transfers.begin() + first; transfer != transfers.end(); ++transfer) {
      const Route route =
          model.cost_model.route(model.cluster, DeviceId(from), DeviceId(transfer->to));
      transfer->channel = route.channel.value;
      transfer->seconds = route.latency + source.bytes / route.bandwidth;
      transfer->from_block = from_block;
      transfer->to_block = static_cast<std::uint32_t>(blocks.size());
      places[transfer->to] = transfer->to_block;
      blocks.push_back({DeviceId(transfer->to), bytes, 0});
      ++blocks[from_block].uses;
    }
  };

  for (std::size_t p = 0; p < n; ++p) {
    const NodeId node(model.node[p]);
    first_transfer.push_back(static_cast<std::uint32_t>(transfers.size()));
    for (const Source& source : model.sources_of(p)) {
      const auto block = static_cast<std::uint32_t>(source.id);
      place(source, false, devices[p], block, blocks[block].bytes);
      for (const EdgeId e : graph.out_edges(node)) {
        if (graph.edge_tensor(e).value != source.id) continue;
        const auto reader = static_cast<std::size_t>(graph.position(graph.edge(e).reader));
        const std::uint32_t here = places[devices[reader]];
        operands[place_of_edge[e.index()]] = here;
        ++blocks[here].uses;
      }
      places.clear();
    }
  }
  first_transfer.push_back(static_cast<std::uint32_t>(transfers.size()));
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    if (blocks[t].uses == 1) blocks[t].uses = 2;
  }

  const auto read_input = [&](InputId input) {
    for (const NodeId reader : graph.inputs()[input.index()].readers) {
      const auto p = static_cast<std::size_t>(graph.position(reader));
      const std::uint32_t here = places[devices[p]];
      operands[first_operand[p] + graph.in_edges(reader).size() + n_filled[p]++] = here;
      ++blocks[here].uses;
    }
    places.clear();
  };
  const auto add_input = [&](InputId input, std::int32_t device) {
    const auto block = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back({DeviceId(device), block_bytes(graph.inputs()[input.index()].tensor), 1});
    inputs.push_back({input, DeviceId(device), block});
    return block;
  };
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const Source& source = model.inputs[i];
    const InputId input(source.id);
    const std::uint32_t block = add_input(input, model.input_device[i]);
    place(source, true, model.input_device[i], block, blocks[block].bytes);
    read_input(input);
  }
  if (!model.options.input_devices.empty()) return;
  for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
    const InputId input(static_cast<std::int64_t>(i));
    for (const NodeId reader : graph.inputs()[i].readers) {
      const std::int32_t device = devices[static_cast<std::size_t>(graph.position(reader))];
      if (places[device] == kNone) places.note(device, add_input(input, device));
    }
    read_input(input);
  }
}

void RunPlan::check_memory(std::span<const std::size_t> memory) const {
  // Sums in double: they cannot overflow.
  std::vector<double> inputs_there(memory.size(), 0);
  std::vector<bool> is_input(blocks.size(), false);
  for (const PlannedInput& input : inputs) {
    is_input[input.block] = true;
    inputs_there[input.device.index()] += static_cast<double>(blocks[input.block].bytes);
  }
  for (std::size_t p = 0; p < n_nodes(); ++p) {
    const NodeId node(model.node[p]);
    const auto device = static_cast<std::size_t>(devices[p]);
    double needed = inputs_there[device];
    for (const std::uint32_t operand : operands_of(p)) {
      if (!is_input[operand]) needed += static_cast<double>(blocks[operand].bytes);
    }
    const std::size_t first = model.graph.first_tensor(node).index();
    for (std::size_t t = first; t < first + model.graph.n_outputs(node); ++t) {
      needed += static_cast<double>(blocks[t].bytes);
    }
    if (needed <= static_cast<double>(memory[device])) continue;
    throw OutOfMemoryError(
        {.device = DeviceId(devices[p]),
         .needed = needed,
         .available = static_cast<double>(memory[device])},
        "node '" + std::string(model.graph.name(node)) + "' does not fit on device " +
            std::to_string(device) + ": with its operands, its output and the graph inputs there " +
            "it needs " + std::to_string(needed) + " bytes of " + std::to_string(memory[device]) +
            "; cut it into more shards, or use a device with more memory");
  }
}

void RunPlan::check_links() const {
  constexpr double kLongest = 600;  // seconds
  std::vector<double> held(model.cluster.n_channels(), 0.0);
  for (const PlannedTransfer& transfer : transfers) {
    held[static_cast<std::size_t>(transfer.channel)] += transfer.seconds;
  }
  const double longest = held.empty() ? 0 : *std::max_element(held.begin(), held.end());
  if (longest <= kLongest) return;
  throw UsageError("this assignment's transfers hold one link of cluster '" + model.cluster.name() +
                   "' for " + std::to_string(std::llround(longest)) + " s, and a run may take " +
                   std::to_string(std::llround(kLongest)) +
                   " s of them; give emulate_links=false, or a cluster with faster links");
}

}  // namespace doppler::runtime
