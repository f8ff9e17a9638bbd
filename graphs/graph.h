// The dataflow graph: operations (nodes) that produce tensors and read those of others (edges).
//
// A Graph is an immutable value: copying shares storage, equality compares content, and every const
// member is thread safe. GraphBuilder (graph_builder.h) makes one and checks it. Nodes keep the
// order in which the user added them (NodeId); storage is in a topological order (positions), flat
// arrays both ways, so that engines walk memory forward.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/ids.h"

namespace doppler {

enum class DType : std::uint8_t {
  float32,
  float16,
  bfloat16,
  float64,
  int8,
  int32,
  int64,
  boolean
};

// Bytes of one element, and the name as written in files ("float32").
[[nodiscard]] int size_of(DType dtype);
[[nodiscard]] std::string_view to_string(DType dtype);
// Throws UsageError for an unknown name.
[[nodiscard]] DType parse_dtype(std::string_view name);

// One output of a node, or a graph input. `bytes` is what a transfer moves; a graph with raw costs
// may have any number there, so it is not tied to the shape.
struct Tensor {
  double bytes = 0;                      // >= 0, finite
  std::vector<std::int64_t> shape = {};  // empty: unknown or scalar
  DType dtype = DType::float32;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// One operation. `attributes` is a JSON text with what an engine needs to run it (for an einsum
// block: index expression, sizes, and the part of each operand that it reads); empty if unknown.
struct Node {
  std::string name = {};      // not empty; unique names are not required
  std::string kind = {};      // "einsum", "add", ...; may be empty
  std::int32_t meta_op = -1;  // the tensor operation whose shard this is; -1: none
  double flops = 0;           // floating-point operations; >= 0, finite
  double bytes_read = 0;      // >= 0, finite
  double bytes_written = 0;   // >= 0, finite
  std::vector<Tensor> outputs = {};
  std::string attributes = {};

  friend bool operator==(const Node&, const Node&) = default;
};

// A data dependency: `reader` needs output number `output` of `producer`.
struct Edge {
  NodeId producer = {};
  NodeId reader = {};
  std::int32_t output = 0;

  friend bool operator==(const Edge&, const Edge&) = default;
};

// A tensor that exists before the run: a weight or an activation fed from outside.
struct GraphInput {
  std::string name = {};
  Tensor tensor = {};
  std::vector<NodeId> readers = {};  // ascending

  friend bool operator==(const GraphInput&, const GraphInput&) = default;
};

class GraphBuilder;

class Graph {
 public:
  Graph();  // the empty graph
  // Copies share storage. There is no move: what was moved from is still the same graph.
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::size_t n_nodes() const;
  [[nodiscard]] std::size_t n_edges() const;
  [[nodiscard]] std::size_t n_tensors() const;
  [[nodiscard]] std::size_t n_inputs() const;

  // --- by node, in the user's order; O(1) unless said ---
  [[nodiscard]] std::string_view name(NodeId node) const;
  [[nodiscard]] std::string_view kind(NodeId node) const;
  [[nodiscard]] std::int32_t meta_op(NodeId node) const;
  [[nodiscard]] double flops(NodeId node) const;
  [[nodiscard]] double bytes_read(NodeId node) const;
  [[nodiscard]] double bytes_written(NodeId node) const;
  [[nodiscard]] std::string_view attributes(NodeId node) const;
  [[nodiscard]] DType dtype(NodeId node) const;  // of its first output; float32 without one
  // Everything about one node as a value; allocates.
  [[nodiscard]] Node node(NodeId node) const;

  // Tensors of a node are consecutive: output i of `node` is tensor first_tensor(node) + i. Tensors
  // are numbered in the user's order of nodes.
  [[nodiscard]] std::size_t n_outputs(NodeId node) const;
  [[nodiscard]] TensorId first_tensor(NodeId node) const;
  [[nodiscard]] double tensor_bytes(TensorId tensor) const;
  [[nodiscard]] DType tensor_dtype(TensorId tensor) const;
  [[nodiscard]] std::span<const std::int64_t> tensor_shape(TensorId tensor) const;
  [[nodiscard]] NodeId tensor_producer(TensorId tensor) const;

  // --- edges, in the user's order ---
  [[nodiscard]] Edge edge(EdgeId edge) const;
  [[nodiscard]] TensorId edge_tensor(EdgeId edge) const;
  [[nodiscard]] double edge_bytes(EdgeId edge) const;  // of the tensor that the edge carries
  // Edges into (out of) a node, in the order in which they were added; in-edges are its operands.
  [[nodiscard]] std::span<const EdgeId> in_edges(NodeId node) const;
  [[nodiscard]] std::span<const EdgeId> out_edges(NodeId node) const;
  // Distinct predecessors (successors) of a node, ascending.
  [[nodiscard]] std::span<const NodeId> predecessors(NodeId node) const;
  [[nodiscard]] std::span<const NodeId> successors(NodeId node) const;

  // --- graph inputs ---
  [[nodiscard]] std::span<const GraphInput> inputs() const;

  // Nodes so that every producer stands before its readers: by level (longest path in edges from a
  // node without predecessors), then by id.
  [[nodiscard]] std::span<const NodeId> topological_order() const;
  // The place of a node in topological_order().
  [[nodiscard]] std::int32_t position(NodeId node) const;
  // The level of a node: the number of edges on the longest path that ends there.
  [[nodiscard]] std::int32_t level(NodeId node) const;

  // Raw compute costs in seconds that came with the graph (a file of numbers, rate 1): none, one a
  // node, or one a node and device (row-major, n_nodes x raw_devices()). In the user's order.
  [[nodiscard]] std::span<const double> raw_compute() const;
  [[nodiscard]] std::size_t raw_devices() const;  // 0: none; 1: one a node

  // A number that is equal for equal graphs, on every machine; O(size) once, then cached.
  [[nodiscard]] std::uint64_t hash() const;

  friend bool operator==(const Graph& a, const Graph& b);
  // One line: name, nodes, edges, inputs, levels, FLOPs.
  friend std::ostream& operator<<(std::ostream& out, const Graph& graph);

 private:
  friend class GraphBuilder;
  struct Storage;
  explicit Graph(std::shared_ptr<const Storage> storage);
  std::shared_ptr<const Storage> storage_;
};

}  // namespace doppler
