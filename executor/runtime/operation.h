// What one node computes: its attributes (docs/node-attributes.md), checked, as steps that every
// engine can run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/runtime/steps.h"
#include "graphs/graph.h"

namespace doppler {

// A dense row-major tensor that a step reads or writes.
struct OperationBuffer {
  std::int64_t elements = 0;
  DType dtype = DType::float32;

  [[nodiscard]] std::int64_t bytes() const { return elements * size_of(dtype); }
  friend bool operator==(const OperationBuffer&, const OperationBuffer&) = default;
};

// `buffers` are, in this order: the tensor of every in-edge of the node (Graph::in_edges), the
// graph inputs that it reads (ascending InputId), its output, scratch. The steps run one after the
// other.
//
// A node without attributes, and without cost or of kind `synthetic`, is the empty operation: no
// buffers, no steps. It writes nothing, what its outputs hold is not defined, and no node that
// computes may read them.
struct NodeOperation {
  std::string name = {};  // of the node
  std::string kind = {};
  std::vector<InputId> graph_inputs = {};  // that list it as a reader, ascending
  std::int32_t n_edges = 0;
  std::vector<OperationBuffer> buffers = {};
  std::vector<steps::Step> steps = {};

  [[nodiscard]] bool is_empty() const { return buffers.empty(); }
  [[nodiscard]] std::size_t n_inputs() const { return n_edges + graph_inputs.size(); }
  [[nodiscard]] std::size_t output() const { return n_inputs(); }  // its place in buffers
  // Memory beside inputs and output while it runs; 256 bytes are added for each buffer's alignment.
  [[nodiscard]] std::int64_t scratch_bytes() const;
};

// The operations of all nodes, by id. Throws InvalidError that names the node, its kind and how to
// mend it: a kind or dtype that no engine runs (dtypes: float32, float16, bfloat16), attributes
// that do not fit the node's edges, inputs and output, a tensor whose bytes are not those of its
// shape, an operand that comes from a node without attributes. O(graph, with its attributes).
std::vector<NodeOperation> parse_operations(const Graph& graph);

}  // namespace doppler
