#include "executor/simulator/model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "executor/simulator/noise.h"
#include "graphs/analysis.h"

namespace doppler::simulation {
namespace {

const CostModel& checked(const CostModel& cost_model, const Graph& graph, const Cluster& cluster) {
  cost_model.check(graph, cluster);
  return cost_model;
}

}  // namespace

Model::Model(const Graph& simulated_graph, const Cluster& simulated_cluster,
             CostModel model_of_costs, RunOptions run_options)
    : graph(simulated_graph),
      cluster(simulated_cluster),
      cost_model(std::move(model_of_costs)),
      options(std::move(run_options)),
      costs(graph, cluster, checked(cost_model, graph, cluster)) {
  options.check(graph, cluster);
  n_nodes = graph.n_nodes();
  n_devices = cluster.n_devices();
  const auto order = graph.topological_order();
  node.reserve(n_nodes);
  compute.reserve(n_nodes * costs.n_columns);
  n_missing.reserve(n_nodes);
  first_source.reserve(n_nodes + 1);
  std::vector<std::pair<TensorId, std::int32_t>> reads;
  for (NodeId v : order) {
    node.push_back(v.value);
    const auto row = std::span(costs.seconds).subspan(v.index() * costs.n_columns, costs.n_columns);
    compute.insert(compute.end(), row.begin(), row.end());
    n_missing.push_back(static_cast<std::int32_t>(graph.in_edges(v).size()));
    first_source.push_back(static_cast<std::uint32_t>(sources.size()));
    reads.clear();
    for (EdgeId e : graph.out_edges(v)) {
      reads.emplace_back(graph.edge_tensor(e), graph.position(graph.edge(e).reader));
    }
    std::sort(reads.begin(), reads.end());
    for (const auto& [tensor, reader] : reads) {
      if (sources.size() == first_source.back() || sources.back().id != tensor.value) {
        sources.push_back({.bytes = graph.tensor_bytes(tensor),
                           .id = tensor.value,
                           .first_reader = static_cast<std::uint32_t>(readers.size()),
                           .n_readers = 0});
      }
      readers.push_back(reader);
      ++sources.back().n_readers;
    }
  }
  first_source.push_back(static_cast<std::uint32_t>(sources.size()));
  max_transfers = readers.size();

  if (!options.input_devices.empty()) {
    for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
      const GraphInput& input = graph.inputs()[i];
      if (input.readers.empty()) continue;
      inputs.push_back({.bytes = input.tensor.bytes,
                        .id = static_cast<std::int32_t>(i),
                        .first_reader = static_cast<std::uint32_t>(readers.size()),
                        .n_readers = static_cast<std::uint32_t>(input.readers.size())});
      input_device.push_back(options.input_devices[i].value);
      for (NodeId reader : input.readers) {
        readers.push_back(graph.position(reader));
        ++n_missing[static_cast<std::size_t>(readers.back())];
      }
      std::sort(readers.end() - static_cast<std::ptrdiff_t>(input.readers.size()), readers.end());
    }
    max_transfers = readers.size();
  }

  if (options.choice == Choice::priority) {
    std::vector<double> by_node = options.priorities;
    if (by_node.empty()) by_node = levels(graph, costs).b_level;
    for (NodeId v : order) priority.push_back(by_node[v.index()]);
  }

  double least_memory = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < n_devices; ++d) {
    const Device& device = cluster.device(DeviceId(static_cast<std::int64_t>(d)));
    slots.push_back(device.streams);
    n_slots += static_cast<std::size_t>(device.streams);
    least_memory = std::min(least_memory, device.memory);
  }
  double all_bytes = 0;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    all_bytes += graph.tensor_bytes(TensorId(static_cast<std::int64_t>(t)));
  }
  for (const GraphInput& input : graph.inputs()) all_bytes += input.tensor.bytes;
  // Half as much again, so that no rounding of the sums can matter.
  memory_matters = options.enforce_memory && all_bytes * 1.5 > least_memory;
}

double Luck::node_factor(std::int32_t node) const {
  return noise_factor(noise_, seed_, LuckStream::node, static_cast<std::uint64_t>(node));
}

double Luck::transfer_factor(const Transfer& transfer) const {
  return noise_factor(noise_, seed_, transfer.of_input ? LuckStream::input : LuckStream::transfer,
                      static_cast<std::uint64_t>(transfer.source->id),
                      static_cast<std::uint64_t>(transfer.to));
}

std::uint64_t Luck::key(std::int32_t node) const {
  return luck_bits(seed_, LuckStream::choice, static_cast<std::uint64_t>(node));
}

}  // namespace doppler::simulation
