// Small tasks whose optimum is known, and what tests of trainers ask.
#pragma once

#include <memory>
#include <string>

#include "agents/training.h"
#include "graphs/graph_builder.h"

namespace doppler::testing {

inline std::shared_ptr<const PlacementModel> model_of(Task task) {
  return std::make_shared<const PlacementModel>(std::move(task));
}

// `n` nodes of 1 s in a chain, or without edges; tensors of `bytes` seconds.
inline std::shared_ptr<const PlacementModel> simple_model(std::size_t n, double bytes, bool chain,
                                                          std::int64_t n_devices) {
  GraphBuilder builder("simple");
  for (std::size_t v = 0; v < n; ++v) {
    builder.add_node({.name = "n" + std::to_string(v), .outputs = {{.bytes = bytes}}});
    if (chain && v > 0) {
      builder.add_edge(NodeId(static_cast<std::int64_t>(v - 1)),
                       NodeId(static_cast<std::int64_t>(v)));
    }
  }
  builder.set_raw_compute(std::vector<double>(n, 1));
  return model_of({.name = "simple",
                   .graph = builder.build(),
                   .cluster = Cluster::uniform(n_devices),
                   .cost_model = CostModel::raw()});
}

inline double value_of(const TrainProgress& progress, const std::string& name) {
  for (const auto& [key, value] : progress.values) {
    if (key == name) return value;
  }
  throw std::logic_error("no value " + name);
}

}  // namespace doppler::testing
