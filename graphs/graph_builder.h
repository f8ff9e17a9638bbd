// Builds a Graph and checks it as a whole.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

// Collects nodes, edges and inputs in any order and checks everything at once in build(). Not
// thread safe. One that was moved from may only be assigned to or destroyed. Memory: flat arrays,
// about 150 bytes a node and 12 an edge beside the strings.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string graph_name = "");
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;
  GraphBuilder& operator=(GraphBuilder&&) noexcept;

  void set_name(std::string graph_name);
  void reserve(std::size_t n_nodes, std::size_t n_edges);
  NodeId add_node(const Node& node);
  // `reader` reads output number `output` of `producer`. The nodes may be added later.
  EdgeId add_edge(NodeId producer, NodeId reader, std::int32_t output = 0);
  // Adds an output to a node that exists and returns its number; for edges that carry their own
  // value. Throws UsageError for a node that does not exist.
  std::int32_t add_output(NodeId node, const Tensor& tensor);
  InputId add_input(GraphInput input);
  void add_reader(InputId input, NodeId reader);
  // Raw compute seconds: n_nodes values, or n_nodes x n_devices row-major.
  void set_raw_compute(std::vector<double> seconds, std::size_t n_devices = 1);

  [[nodiscard]] std::size_t n_nodes() const;

  // The graph; the builder is empty afterwards. O(nodes + edges). Throws InvalidError that lists up
  // to ten faults, each with what, where and how to mend it: cycles (names the nodes of the cycle),
  // edges that dangle, loop or repeat (same tensor, same reader), empty names, costs or bytes that
  // are negative or not finite, totals that overflow, shapes that are negative or overflow, raw
  // costs of the wrong length.
  Graph build();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace doppler
