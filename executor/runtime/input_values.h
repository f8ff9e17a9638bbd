// Data for a graph's inputs, from a seed. However many shards a workload is cut into, its blocks
// hold the same numbers: each number depends on the seed, the name of the whole tensor and the
// element's place in it alone.
//
// An input called "name[i,j]" with one number an axis is block (i, j) of tensor "name" if the
// graph's blocks of that name make a grid; any other input is a tensor of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

// Where the data of one graph input come from. A regular value.
struct InputValues {
  std::string tensor = {};               // name of the whole tensor
  std::vector<std::int64_t> whole = {};  // its shape
  std::vector<std::int64_t> start = {};  // first element of the input in it
  std::vector<std::int64_t> shape = {};  // of the input
  DType dtype = DType::float32;
  // Numbers are uniform in [-scale, scale). Their variance is 1, except that those which a
  // contraction sums over n elements have 1 / n, or 1 / sqrt(n) each if the other operand is a
  // graph input too, so that results stay of order 1. The first contraction that reads the tensor
  // counts.
  float scale = 1;

  friend bool operator==(const InputValues&, const InputValues&) = default;
};

// Of each graph input. Inputs of a dtype that engines do not compute with are refused when
// operations are parsed (operation.h), not here. O(graph inputs and their readers).
std::vector<InputValues> input_values(const Graph& graph);

// Writes the numbers of an input: dense, row-major, in its dtype (float32, float16 or bfloat16).
// Throws std::invalid_argument if `to` has another size. One thread; a few nanoseconds an element.
void fill_input(const InputValues& input, std::uint64_t seed, std::span<std::byte> to);

}  // namespace doppler
