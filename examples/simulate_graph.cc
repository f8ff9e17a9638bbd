// Build a graph and simulate an assignment: two matrix products that feed a sum.
#include <iostream>

#include "datasets/clusters.h"
#include "executor/simulator/simulator.h"
#include "graphs/graph_builder.h"

int main() {
  using doppler::DeviceId;
  const double n = 4096;  // of each n x n matrix, float32
  const doppler::Tensor matrix{.bytes = 4 * n * n, .shape = {4096, 4096}};

  doppler::GraphBuilder builder("sum of products");
  doppler::Node product{.name = "left", .kind = "matmul", .flops = 2 * n * n * n};
  product.bytes_read = 2 * matrix.bytes;
  product.bytes_written = matrix.bytes;
  product.outputs = {matrix};
  const auto left = builder.add_node(product);
  product.name = "right";
  const auto right = builder.add_node(product);
  const auto sum = builder.add_node({.name = "sum",
                                     .kind = "add",
                                     .flops = n * n,
                                     .bytes_read = 2 * matrix.bytes,
                                     .bytes_written = matrix.bytes,
                                     .outputs = {matrix}});
  builder.add_edge(left, sum);
  builder.add_edge(right, sum);

  doppler::Simulator simulator(builder.build(), doppler::make_cluster("p100x4"),
                               doppler::CostModel::analytical(), {});
  const doppler::Assignment together(3, DeviceId{0});
  const doppler::Assignment apart({DeviceId{0}, DeviceId{1}, DeviceId{0}});
  for (const auto& assignment : {together, apart}) {
    const auto execution = simulator.run(assignment);
    std::cout << assignment << ": " << execution.makespan * 1e3 << " ms, "
              << execution.bytes_moved / 1e6 << " MB moved\n";
  }
}
