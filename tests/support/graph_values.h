// A graph's data on the host: graph inputs from a seed, and what the nodes make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datasets/programs/program.h"
#include "datasets/programs/sharding.h"
#include "graphs/graph.h"
#include "tests/support/tensor_evaluator.h"

namespace doppler::testing {

// A dense tensor's elements in its dtype.
using Bytes = std::vector<std::byte>;

// Elements of float32, float16 or bfloat16 as numbers, and back (rounded).
Array to_array(std::span<const std::byte> bytes, std::span<const std::int64_t> shape, DType dtype);
Bytes to_bytes(const Array& array, DType dtype);

// The data that engines give to each graph input.
std::vector<Bytes> filled_inputs(const Graph& graph, std::uint64_t seed);
std::vector<Array> input_arrays(const Graph& graph, const std::vector<Bytes>& inputs);

// The output of every node, by id: run one after another by the host's kernels.
std::vector<Bytes> run_on_host(const Graph& graph, const std::vector<Bytes>& inputs);
// The first output of each node as numbers; nothing for a node without bytes.
std::vector<Array> output_arrays(const Graph& graph, const std::vector<Bytes>& outputs);

// All values of the program, unsharded and in double, from the data of its blocks.
std::vector<Array> unsharded_values(const Program& program, const ShardedProgram& sharded,
                                    const std::vector<Bytes>& inputs);

// max |a - b| / max |b| over all results: a is what an engine left in each node's output, b the
// unsharded computation in double.
double error_against_unsharded(const Program& program, const ShardedProgram& sharded,
                               const std::vector<Bytes>& inputs, const std::vector<Bytes>& outputs);

}  // namespace doppler::testing
