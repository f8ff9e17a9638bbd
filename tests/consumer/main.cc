// Builds a graph of two nodes, simulates an assignment of it and lets an agent find a better one.
#include <iostream>

#include "agents/agent.h"
#include "datasets/clusters.h"
#include "executor/simulator/simulator.h"
#include "graphs/graph_builder.h"

int main() {
  using doppler::DeviceId;
  doppler::GraphBuilder builder("pair");
  const auto producer = builder.add_node({.name = "producer", .outputs = {{.bytes = 4}}});
  const auto reader = builder.add_node({.name = "reader"});
  builder.add_edge(producer, reader);
  builder.set_raw_compute({2, 3});  // seconds

  const doppler::Task task{.name = "pair",
                           .graph = builder.build(),
                           .cluster = doppler::make_cluster("uniform(2)"),
                           .cost_model = doppler::CostModel::raw()};
  const doppler::Assignment apart({DeviceId{0}, DeviceId{1}});
  std::cout << apart << " takes " << task.simulator().run(apart).makespan << " s\n";

  const auto result = doppler::assign(*doppler::make_agent("heft"), task);
  std::cout << result.assignment << " takes " << result.makespan << " s\n";
}
