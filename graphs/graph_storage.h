// The flat arrays behind a Graph. Private to graph.cc and graph_builder.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

// Lists of values, one after another: list i is values[first[i]] up to values[first[i + 1]].
template <class T>
struct Lists {
  std::vector<std::uint32_t> first = {0};
  std::vector<T> values = {};

  [[nodiscard]] std::span<const T> at(std::size_t i) const {
    return std::span<const T>(values).subspan(first[i], first[i + 1] - first[i]);
  }
  friend bool operator==(const Lists&, const Lists&) = default;
};

// "By position" is in topological order; everything else is in the user's order.
struct Graph::Storage {
  std::string name;
  std::vector<NodeId> order;             // by position
  std::vector<std::int32_t> position;    // by node
  std::vector<std::int32_t> level;       // by position
  std::vector<std::uint32_t> kind;       // by position; index into kinds
  std::vector<std::uint32_t> attribute;  // by position; index into attributes
  std::vector<std::int32_t> meta_op;     // by position
  std::vector<double> flops;             // by position
  std::vector<double> bytes_read;        // by position
  std::vector<double> bytes_written;     // by position
  std::vector<std::string> kinds;        // distinct, in order of first use
  std::vector<std::string> attributes;   // distinct, in order of first use
  std::string name_text;                 // the nodes' names, one after another
  std::vector<std::uint64_t> name_end;   // by node; where its name ends in name_text

  std::vector<std::uint32_t> first_tensor = {0};  // [n_nodes + 1]
  std::vector<double> tensor_bytes;
  std::vector<DType> tensor_dtype;
  std::vector<NodeId> tensor_producer;
  Lists<std::int64_t> tensor_shape;

  std::vector<Edge> edges;
  Lists<EdgeId> in_edges;      // by position
  Lists<EdgeId> out_edges;     // by position
  Lists<NodeId> predecessors;  // by position
  Lists<NodeId> successors;    // by position
  std::vector<GraphInput> inputs;

  std::vector<double> raw_compute;  // [n_nodes, raw_devices]
  std::size_t raw_devices = 0;

  mutable std::atomic<std::uint64_t> hash = 0;  // 0: not computed yet

  [[nodiscard]] std::size_t at(NodeId node) const {
    return static_cast<std::size_t>(position[node.index()]);
  }
};

}  // namespace doppler
