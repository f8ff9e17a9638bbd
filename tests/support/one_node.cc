#include "tests/support/one_node.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "graphs/graph_builder.h"
#include "graphs/hash.h"

namespace doppler::testing {
namespace {

Tensor tensor_of(const std::vector<std::int64_t>& shape, DType dtype) {
  double bytes = size_of(dtype);
  for (std::int64_t size : shape) bytes *= static_cast<double>(size);
  return {bytes, shape, dtype};
}

}  // namespace

Graph one_node_reading(const std::string& kind, const NodeAttributes& attributes,
                       const std::vector<std::vector<std::int64_t>>& inputs,
                       const std::vector<std::int64_t>& output, DType dtype) {
  GraphBuilder builder("one node");
  Node node;
  node.name = "it";
  node.kind = kind;
  node.outputs = {tensor_of(output, dtype)};
  node.attributes = to_json(attributes);
  const NodeId id = builder.add_node(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    builder.add_reader(
        builder.add_input({"x" + std::to_string(i), tensor_of(inputs[i], dtype), {}}), id);
  }
  return builder.build();
}

Graph one_node(const std::string& kind, NodeAttributes attributes,
               const std::vector<std::vector<std::int64_t>>& operands,
               const std::vector<std::int64_t>& output, DType dtype) {
  attributes.operands.clear();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::vector<std::int64_t> zeros(operands[k].size(), 0);
    attributes.operands.push_back(
        {operands[k],
         {{OperandPiece::Source::input, static_cast<std::int32_t>(k), zeros, operands[k], zeros}}});
  }
  return one_node_reading(kind, attributes, operands, output, dtype);
}

Array random_array(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  Array array = Array::zeros(shape);
  for (double& x : array.data) {
    seed += 0x9e3779b97f4a7c15ULL;
    x = static_cast<double>(
        static_cast<float>(static_cast<double>(mix64(seed) >> 11) * 0x1p-52 - 1));
  }
  return array;
}

double relative_distance(const Array& a, const Array& b) {
  if (a.shape != b.shape) throw std::logic_error("tensors of unequal shapes");
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    if (a.data[i] == b.data[i]) {
      if (std::isfinite(b.data[i])) size = std::max(size, std::abs(b.data[i]));
      continue;
    }
    if (!std::isfinite(a.data[i]) || !std::isfinite(b.data[i])) {
      return std::numeric_limits<double>::infinity();
    }
    difference = std::max(difference, std::abs(a.data[i] - b.data[i]));
    size = std::max(size, std::abs(b.data[i]));
  }
  return difference == 0 ? 0 : difference / size;
}

}  // namespace doppler::testing
