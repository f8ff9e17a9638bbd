// The machine's time between dependent nodes, from a timeline.
#include "executor/runtime/gaps.h"

#include "executor/engine.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

// a -> b -> c and a -> d, all on one slot but for d.
Graph small_graph() {
  GraphBuilder builder("small");
  std::vector<NodeId> nodes;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    Node node;
    node.name = name;
    node.outputs = {{.bytes = 1}};
    nodes.push_back(builder.add_node(node));
  }
  builder.add_edge(nodes[0], nodes[1]);
  builder.add_edge(nodes[1], nodes[2]);
  builder.add_edge(nodes[0], nodes[3]);
  builder.set_raw_compute({1, 2, 3, 4, 5});
  return builder.build();
}

}  // namespace

TEST_CASE("The median gap is that between nodes that follow what they wait for on their slot") {
  Execution execution;
  const DeviceId one(1);
  // e comes after c without need; d runs elsewhere; b and c follow their producers.
  execution.nodes = {{.ready = 0, .start = 0, .end = 1},
                     {.ready = 1, .start = 1.25, .end = 2},
                     {.ready = 2, .start = 2.5, .end = 3},
                     {.device = one, .ready = 1.5, .start = 9, .end = 10},
                     {.ready = 0, .start = 8, .end = 9}};
  CHECK(median_gap(small_graph(), execution) == 0.5);
  // c waited for something that arrived after b had ended.
  execution.nodes[2].ready = 2.25;
  CHECK(median_gap(small_graph(), execution) == 0.25);
  execution.nodes[1].slot = 1;
  CHECK(median_gap(small_graph(), execution) == std::nullopt);
  execution.nodes.clear();
  CHECK(median_gap(small_graph(), execution) == std::nullopt);
}

TEST_CASE("The simulator's devices start a node when the one that it waits for ends") {
  const Graph graph = small_graph();
  const DeviceId other(1);
  const Execution run = make_engine("simulator")
                            ->run(graph, Cluster::uniform(2), CostModel::of(graph),
                                  Assignment(std::vector<DeviceId>{DeviceId(0), DeviceId(0),
                                                                   DeviceId(0), other, other}),
                                  {});
  CHECK(median_gap(graph, run) == 0.0);
}

}  // namespace doppler
