// What of a real run depends on the assignment but not on time: which blocks of memory there are,
// who uses them, which transfers there will be. Private to executor/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/simulator/model.h"
#include "graphs/ids.h"

namespace doppler::runtime {

// Bytes of a tensor's block: those of its elements if its shape is known, else what it says.
std::size_t block_bytes(const Tensor& tensor);
std::size_t block_bytes(const Graph& graph, TensorId tensor);

// A block of memory in a run: a node's tensor where it is made, a received copy, or a graph input
// that lies on a device from the start.
struct PlannedBlock {
  DeviceId device = {};
  std::size_t bytes = 0;
  // Nodes and transfers that read it, and the node that makes it; it is given back after the last
  // of them. The result of a run (a tensor that nobody reads) and a graph input have one use more.
  std::int32_t uses = 0;
};

struct PlannedTransfer {
  const simulation::Source* source = nullptr;
  bool of_input = false;
  std::int32_t from = 0;  // device
  std::int32_t to = 0;
  std::uint32_t from_block = 0;  // in RunPlan::blocks
  std::uint32_t to_block = 0;
  std::int32_t channel = 0;
  double seconds = 0;  // latency + bytes / bandwidth of its route
};

// A graph input that lies on a device when a run begins.
struct PlannedInput {
  InputId input = {};
  DeviceId device = {};
  std::uint32_t block = 0;
};

// Refers to the model, which must outlive it. O(nodes + edges + input readers).
struct RunPlan {
  RunPlan(const simulation::Model& planned_model, std::vector<std::int32_t> device_of_position);

  const simulation::Model& model;
  std::vector<std::int32_t> devices;  // by position
  // First the tensors of all nodes, by TensorId; then received copies; then graph inputs.
  std::vector<PlannedBlock> blocks;
  std::vector<PlannedTransfer> transfers;  // by source, ascending device within one
  // Transfers of the tensors of position p are [first_transfer[p], first_transfer[p + 1]); those of
  // placed graph inputs come after all others.
  std::vector<std::uint32_t> first_transfer;
  std::vector<PlannedInput> inputs;
  std::vector<std::uint32_t> first_operand;  // by position, in `operands`
  std::vector<std::uint32_t> operands;       // blocks, as KernelCommand::inputs lists them

  [[nodiscard]] std::size_t n_nodes() const { return devices.size(); }
  [[nodiscard]] std::span<const std::uint32_t> operands_of(std::size_t position) const {
    return std::span(operands).subspan(first_operand[position],
                                       first_operand[position + 1] - first_operand[position]);
  }

  // Throws OutOfMemoryError that names the node if the graph inputs that lie on a device and its
  // largest node (operands and outputs) do not fit into `memory`, bytes by device, together.
  void check_memory(std::span<const std::size_t> memory) const;
  // Throws UsageError if transfers at the speed of their links would hold one channel for longer
  // than ten minutes, as on links of 1 byte/s: the machine would wait for hours.
  void check_links() const;
};

}  // namespace doppler::runtime
