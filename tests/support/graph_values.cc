#include "tests/support/graph_values.h"

#include <stdexcept>

#include "executor/cpu/kernels.h"
#include "executor/runtime/input_values.h"
#include "executor/runtime/operation.h"
#include "executor/runtime/step_functions.h"

namespace doppler::testing {

Array to_array(std::span<const std::byte> bytes, std::span<const std::int64_t> shape, DType dtype) {
  Array array = Array::zeros({shape.begin(), shape.end()});
  if (bytes.size() != array.data.size() * static_cast<std::size_t>(size_of(dtype))) {
    throw std::logic_error("a tensor of another size");
  }
  for (std::size_t i = 0; i < array.data.size(); ++i) {
    array.data[i] = steps::load(bytes.data(), dtype, static_cast<std::int64_t>(i));
  }
  return array;
}

Bytes to_bytes(const Array& array, DType dtype) {
  Bytes bytes(array.data.size() * static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t i = 0; i < array.data.size(); ++i) {
    steps::store(bytes.data(), dtype, static_cast<std::int64_t>(i),
                 static_cast<float>(array.data[i]));
  }
  return bytes;
}

std::vector<Bytes> filled_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Bytes> inputs;
  for (const InputValues& values : input_values(graph)) {
    inputs.push_back(to_bytes(Array::zeros(values.shape), values.dtype));
    fill_input(values, seed, inputs.back());
  }
  return inputs;
}

std::vector<Array> input_arrays(const Graph& graph, const std::vector<Bytes>& inputs) {
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = graph.inputs()[i].tensor;
    arrays.push_back(to_array(inputs[i], tensor.shape, tensor.dtype));
  }
  return arrays;
}

std::vector<Bytes> run_on_host(const Graph& graph, const std::vector<Bytes>& inputs) {
  const std::vector<NodeOperation> operations = parse_operations(graph);
  std::vector<Bytes> outputs(graph.n_nodes());
  for (NodeId node : graph.topological_order()) {
    const NodeOperation& operation = operations[node.index()];
    std::vector<std::span<const std::byte>> operands;
    for (EdgeId edge : graph.in_edges(node)) {
      operands.emplace_back(outputs[graph.edge(edge).producer.index()]);
    }
    for (InputId input : operation.graph_inputs) operands.emplace_back(inputs[input.index()]);
    if (!operation.is_empty()) {
      // Set before, so that an element which no kernel writes shows.
      outputs[node.index()].assign(
          static_cast<std::size_t>(operation.buffers[operation.output()].bytes()), std::byte{0xff});
    }
    cpu::run_operation(operation, operands, outputs[node.index()]);
  }
  return outputs;
}

std::vector<Array> output_arrays(const Graph& graph, const std::vector<Bytes>& outputs) {
  std::vector<Array> arrays;
  for (std::size_t v = 0; v < outputs.size(); ++v) {
    const TensorId tensor = graph.first_tensor(NodeId(static_cast<std::int64_t>(v)));
    if (outputs[v].empty()) {
      arrays.emplace_back();
      continue;
    }
    arrays.push_back(to_array(outputs[v], graph.tensor_shape(tensor), graph.tensor_dtype(tensor)));
  }
  return arrays;
}

std::vector<Array> unsharded_values(const Program& program, const ShardedProgram& sharded,
                                    const std::vector<Bytes>& inputs) {
  const std::vector<Array> blocks = input_arrays(sharded.graph, inputs);
  std::vector<Array> values(program.values().size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = sharded.inputs.at(i);
    Array& whole = values[block.value.index()];
    if (whole.shape.empty()) whole = Array::zeros(program.shape(block.value));
    std::vector<std::int64_t> index(block.box.size(), 0);
    for (double x : blocks[i].data) {
      std::int64_t place = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        place = place * whole.shape[axis] + block.box[axis].begin + index[axis];
      }
      whole.data[static_cast<std::size_t>(place)] = x;
      for (std::size_t axis = index.size(); axis-- > 0;) {
        if (++index[axis] < block.box[axis].size()) break;
        index[axis] = 0;
      }
    }
  }
  return evaluate(program, std::move(values));
}

double error_against_unsharded(const Program& program, const ShardedProgram& sharded,
                               const std::vector<Bytes>& inputs,
                               const std::vector<Bytes>& outputs) {
  return relative_error(sharded, output_arrays(sharded.graph, outputs),
                        unsharded_values(program, sharded, inputs));
}

}  // namespace doppler::testing
