// A graph small enough to follow by hand.
#pragma once

#include "env/task.h"
#include "graphs/graph_builder.h"

namespace doppler::testing {

// a -> b, a -> c, b -> d, c -> d; compute 1, 2, 3, 4 s; tensors of 2, 1, 3 bytes, one byte a second
// between two like devices. Time scale: the path a c d, 8 s.
inline Task diamond() {
  GraphBuilder builder("diamond");
  builder.add_node({.name = "a", .kind = "load", .outputs = {{.bytes = 2}}});
  builder.add_node({.name = "b", .kind = "add", .outputs = {{.bytes = 1}}});
  builder.add_node({.name = "c", .kind = "multiply", .outputs = {{.bytes = 3}}});
  builder.add_node({.name = "d", .kind = "add"});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.add_edge(NodeId{0}, NodeId{2});
  builder.add_edge(NodeId{1}, NodeId{3});
  builder.add_edge(NodeId{2}, NodeId{3});
  builder.set_raw_compute({1, 2, 3, 4});
  return {.name = "diamond@uniform(2)",
          .graph = builder.build(),
          .cluster = Cluster::uniform(2),
          .cost_model = CostModel::raw()};
}

// A single node of 3 s on three devices.
inline Task lone_node() {
  GraphBuilder builder("lone");
  builder.add_node({.name = "a", .kind = "load"});
  builder.set_raw_compute({3});
  return {.name = "lone@uniform(3)",
          .graph = builder.build(),
          .cluster = Cluster::uniform(3),
          .cost_model = CostModel::raw()};
}

// The diamond on devices of so many bytes, which are enforced.
inline Task tight_diamond(double memory) {
  Task task = diamond();
  ClusterParts parts = task.cluster.parts();
  for (Device& device : parts.devices) device.memory = memory;
  task.cluster = Cluster(parts);
  task.options.enforce_memory = true;
  return task;
}

}  // namespace doppler::testing
