// A graph of one node that reads graph inputs alone, and what its kernel should give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphs/graph.h"
#include "graphs/node_attributes.h"
#include "tests/support/tensor_evaluator.h"

namespace doppler::testing {

// A node of this kind whose operand k is graph input k as a whole. `attributes.operands` is filled
// in. Every tensor has the dtype.
Graph one_node(const std::string& kind, NodeAttributes attributes,
               const std::vector<std::vector<std::int64_t>>& operands,
               const std::vector<std::int64_t>& output, DType dtype = DType::float32);
// A node with these attributes as they are, and graph inputs of these shapes.
Graph one_node_reading(const std::string& kind, const NodeAttributes& attributes,
                       const std::vector<std::vector<std::int64_t>>& inputs,
                       const std::vector<std::int64_t>& output, DType dtype = DType::float32);

// Numbers in [-1, 1).
Array random_array(const std::vector<std::int64_t>& shape, std::uint64_t seed);

// max |a - b| / max |b|; infinite numbers must be equal, and where b is 0 everywhere so must a be.
double relative_distance(const Array& a, const Array& b);

}  // namespace doppler::testing
