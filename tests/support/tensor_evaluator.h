// Plain evaluation of tensor programs and of sharded graphs, in double, at test sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/programs/program.h"
#include "datasets/programs/sharding.h"
#include "graphs/graph.h"
#include "graphs/node_attributes.h"

namespace doppler::testing {

// A dense row-major tensor.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  static Array zeros(std::vector<std::int64_t> shape);
};

// The box [start, start + shape) of an array.
Array box_of(const Array& array, const std::vector<std::int64_t>& start,
             const std::vector<std::int64_t>& shape);

// One kernel, by kind, index expression and options, as docs/node-attributes.md says. Throws
// std::logic_error for a kind that it does not know or operands that do not fit.
Array run_kernel(const std::string& kind, const NodeAttributes& attributes,
                 const std::vector<Array>& operands, const std::vector<std::int64_t>& shape);

// Every value of the program without sharding; `inputs` holds the arrays of values without producer
// at their ids, the others may be empty.
std::vector<Array> evaluate(const Program& program, std::vector<Array> inputs);

// The outputs of every node, from kinds, attributes and in-edges alone, in topological order.
// Throws std::logic_error where pieces leave a tensor, do not cover an operand exactly, or an edge
// is not read.
std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs);

// Arrays for the inputs of a program: numbers in [-1, 1], and those of its graph's inputs.
std::vector<Array> random_inputs(const Program& program, std::uint64_t seed);
std::vector<Array> input_blocks(const ShardedProgram& sharded, const std::vector<Array>& values);

// max |a - b| / max |b| over all results of the program: a from the graph's nodes, b unsharded.
double relative_error(const ShardedProgram& sharded, const std::vector<Array>& node_outputs,
                      const std::vector<Array>& values);

}  // namespace doppler::testing
