#include "tests/support/literature.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "graphs/graph_builder.h"
#include "tests/support/reference.h"

namespace doppler::testing {

std::optional<LiteratureExample> literature_example() {
  const auto path = reference_file("literature/topcuoglu2002.json");
  if (!path) return std::nullopt;
  std::ifstream file(*path);
  const auto json = nlohmann::json::parse(file);

  GraphBuilder builder("topcuoglu2002");
  std::vector<double> compute;
  for (const auto& row : json.at("compute")) {
    Node node;
    node.name = "n" + std::to_string(builder.n_nodes());
    builder.add_node(node);
    for (const auto& seconds : row) compute.push_back(seconds.get<double>());
  }
  for (const auto& edge : json.at("edges")) {
    const NodeId producer{edge.at(0).get<std::int64_t>()};
    const NodeId reader{edge.at(1).get<std::int64_t>()};
    Tensor tensor;
    tensor.bytes = edge.at(2).get<double>();
    builder.add_edge(producer, reader, builder.add_output(producer, tensor));
  }
  builder.set_raw_compute(compute, 3);

  LiteratureExample example;
  example.graph = builder.build();
  for (const auto& device : json.at("HEFT").at("assignment")) {
    example.heft.devices.emplace_back(device.get<std::int64_t>());
  }
  example.heft_start = json.at("HEFT").at("start").get<std::vector<double>>();
  example.heft_makespan = json.at("known").at("HEFT").get<double>();
  example.optimum = json.at("known").at("optimum").get<double>();
  return example;
}

}  // namespace doppler::testing
