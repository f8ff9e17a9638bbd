// GraphBuilder's checks and what a Graph tells, against graphs whose answers are known by hand.
#include "graphs/graph.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Node node(const std::string& name, double flops = 1, double bytes = 4) {
  return {.name = name, .kind = "op", .flops = flops, .outputs = {{.bytes = bytes}}};
}

// c and d read a; d reads b; added in an order that is not topological: d, c, b, a.
GraphBuilder diamond() {
  GraphBuilder builder("diamond");
  for (const char* name : {"d", "c", "b", "a"}) builder.add_node(node(name));
  builder.add_edge(NodeId{3}, NodeId{1});
  builder.add_edge(NodeId{3}, NodeId{0});
  builder.add_edge(NodeId{2}, NodeId{0});
  builder.add_edge(NodeId{1}, NodeId{0});
  return builder;
}

std::string fault_of(GraphBuilder& builder) {
  try {
    builder.build();
  } catch (const InvalidError& error) {
    return error.what();
  }
  return "no fault";
}

void check_contains(const std::string& text, const std::string& part) {
  INFO(text << "\nlacks: " << part);
  CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("a graph keeps the user's order outside and a topological order inside") {
  const Graph graph = diamond().build();
  REQUIRE(graph.n_nodes() == 4);
  REQUIRE(graph.n_edges() == 4);
  CHECK(graph.name(NodeId{0}) == "d");
  CHECK(graph.name(NodeId{3}) == "a");
  const auto order = graph.topological_order();
  CHECK(std::vector<NodeId>(order.begin(), order.end()) ==
        std::vector<NodeId>{NodeId{2}, NodeId{3}, NodeId{1}, NodeId{0}});
  for (std::size_t p = 0; p < order.size(); ++p) {
    CHECK(graph.position(order[p]) == static_cast<std::int32_t>(p));
  }
  CHECK(graph.level(NodeId{3}) == 0);
  CHECK(graph.level(NodeId{1}) == 1);
  CHECK(graph.level(NodeId{0}) == 2);
  const auto predecessors = graph.predecessors(NodeId{0});
  CHECK(std::vector<NodeId>(predecessors.begin(), predecessors.end()) ==
        std::vector<NodeId>{NodeId{1}, NodeId{2}, NodeId{3}});
  const auto in_edges = graph.in_edges(NodeId{0});
  CHECK(std::vector<EdgeId>(in_edges.begin(), in_edges.end()) ==
        std::vector<EdgeId>{EdgeId{1}, EdgeId{2}, EdgeId{3}});
  CHECK(graph.successors(NodeId{3}).size() == 2);
  CHECK(graph.out_edges(NodeId{0}).empty());
}

TEST_CASE("tensors are numbered by node, whenever their outputs were added") {
  GraphBuilder builder;
  builder.add_node({.name = "a"});
  builder.add_node({.name = "b", .outputs = {{.bytes = 7, .shape = {7}, .dtype = DType::int8}}});
  CHECK(builder.add_output(NodeId{0}, {.bytes = 12, .shape = {3}}) == 0);
  CHECK(builder.add_output(NodeId{0}, {.bytes = 16, .shape = {2, 2}}) == 1);
  builder.add_edge(NodeId{0}, NodeId{1}, 1);
  const Graph graph = builder.build();
  REQUIRE(graph.n_tensors() == 3);
  CHECK(graph.tensor_bytes(TensorId{0}) == 12);
  CHECK(graph.tensor_bytes(TensorId{1}) == 16);
  CHECK(graph.tensor_bytes(TensorId{2}) == 7);
  CHECK(graph.tensor_shape(TensorId{1}).size() == 2);
  CHECK(graph.tensor_shape(TensorId{2})[0] == 7);
  CHECK(graph.tensor_producer(TensorId{1}) == NodeId{0});
  CHECK(graph.first_tensor(NodeId{1}) == TensorId{2});
  CHECK(graph.edge_tensor(EdgeId{0}) == TensorId{1});
  CHECK(graph.edge_bytes(EdgeId{0}) == 16);
  CHECK(graph.dtype(NodeId{1}) == DType::int8);
  CHECK(graph.node(NodeId{0}).outputs.size() == 2);
}

TEST_CASE("graphs are regular values: equal content, equal hash; any change tells") {
  const Graph graph = diamond().build();
  const Graph same = diamond().build();
  CHECK(graph == same);
  CHECK(graph.hash() == same.hash());
  CHECK(Graph() == GraphBuilder().build());
  CHECK(graph != Graph());
  std::vector<Graph> changed;
  const auto change = [&](auto&& edit) {
    GraphBuilder builder = diamond();
    edit(builder);
    changed.push_back(builder.build());
  };
  change([](GraphBuilder& b) { b.add_node(node("e")); });
  change([](GraphBuilder& b) { b.add_edge(NodeId{2}, NodeId{1}); });
  change([](GraphBuilder& b) { b.add_output(NodeId{0}, {.bytes = 1}); });
  change([](GraphBuilder& b) { b.add_input({.name = "w", .tensor = {.bytes = 1}}); });
  change([](GraphBuilder& b) { b.set_raw_compute({1, 2, 3, 4}); });
  for (const Graph& other : changed) {
    CHECK(other != graph);
    CHECK(other.hash() != graph.hash());
  }
  std::ostringstream text;
  text << graph;
  CHECK(text.str() == "Graph 'diamond': 4 nodes, 4 edges, 0 inputs, 3 levels, 4 FLOPs");
}

TEST_CASE("a cycle is named by its nodes in the order of its edges") {
  GraphBuilder builder;
  for (const char* name : {"x", "p", "q", "r", "tail"}) builder.add_node(node(name));
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.add_edge(NodeId{1}, NodeId{2});
  builder.add_edge(NodeId{2}, NodeId{3});
  builder.add_edge(NodeId{3}, NodeId{1});
  builder.add_edge(NodeId{3}, NodeId{4});
  check_contains(fault_of(builder),
                 "a cycle of 3 nodes: node 1 'p' -> node 2 'q' -> node 3 'r' -> node 1");
}

TEST_CASE("every kind of fault is told with its place, all in one message") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  GraphBuilder builder("bad");
  builder.add_node(node("a"));
  builder.add_node(node(""));
  builder.add_node(node("negative", -1));
  builder.add_node(node("huge", 1, infinity));
  builder.add_node({.name = "shape", .outputs = {{.bytes = 1, .shape = {-1}}}});
  builder.add_edge(NodeId{0}, NodeId{9});
  builder.add_edge(NodeId{0}, NodeId{0});
  builder.add_edge(NodeId{0}, NodeId{1}, 3);
  builder.add_input({.name = "w", .tensor = {.bytes = nan}, .readers = {NodeId{0}, NodeId{0}}});
  const std::string text = fault_of(builder);
  for (const char* part :
       {"graph 'bad' has", "node 1 has an empty name", "node 2 'negative' has flops = -1",
        "node 3 'huge' has inf bytes", "node 4 'shape' has a shape", "to node 9 dangles",
        "is a loop", "carries output 3", "graph input 0 'w' has bytes", "twice as its reader"}) {
    check_contains(text, part);
  }
}

TEST_CASE("repeated edges, raw costs of the wrong length and overflowing totals are refused") {
  GraphBuilder repeated = diamond();
  repeated.add_edge(NodeId{3}, NodeId{1});
  check_contains(fault_of(repeated), "edges 0 and 4 are the same");
  GraphBuilder raw = diamond();
  raw.set_raw_compute({1, 2, 3});
  check_contains(fault_of(raw), "3 numbers for 4 nodes and 1 devices");
  GraphBuilder total;
  total.add_node(node("a", 1e308));
  total.add_node(node("b", 1e308));
  check_contains(fault_of(total), "the total of flops overflows");
  GraphBuilder shape;
  shape.add_node({.name = "s", .outputs = {{.bytes = 1, .shape = {1 << 30, 1 << 30, 1 << 30}}}});
  check_contains(fault_of(shape), "too many elements");
  GraphBuilder empty;
  CHECK_THROWS_AS(empty.add_output(NodeId{0}, {}), UsageError);
  CHECK_THROWS_AS(empty.add_reader(InputId{0}, NodeId{0}), UsageError);
}

TEST_CASE("a long list of faults stays readable") {
  GraphBuilder builder;
  for (int i = 0; i < 500; ++i) builder.add_node(node(std::string(1000, 'n'), -1));
  const std::string text = fault_of(builder);
  check_contains(text, "500 faults");
  check_contains(text, "and 490 more");
  CHECK(text.size() < 2000);
}

TEST_CASE("two edges may carry different tensors of one producer to one reader") {
  GraphBuilder builder;
  builder.add_node({.name = "a", .outputs = {{.bytes = 1}, {.bytes = 2}}});
  builder.add_node(node("b"));
  builder.add_edge(NodeId{0}, NodeId{1}, 0);
  builder.add_edge(NodeId{0}, NodeId{1}, 1);
  const Graph graph = builder.build();
  CHECK(graph.in_edges(NodeId{1}).size() == 2);
  CHECK(graph.predecessors(NodeId{1}).size() == 1);
}

}  // namespace
}  // namespace doppler
