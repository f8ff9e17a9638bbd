#include "executor/calibration/measure.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/calibration/fit.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "graphs/node_attributes.h"

namespace doppler {
namespace {

constexpr std::array<std::int64_t, 7> kTransferBytes = {0,       4096,    65536,   1 << 20,
                                                        4 << 20, 8 << 20, 32 << 20};
constexpr std::int64_t kRepeats = 3;  // of each node or transfer in a graph
constexpr std::array<std::int64_t, 3> kMatrixSizes = {256, 512, 1024};
constexpr std::array<std::int64_t, 2> kVectorSizes = {1 << 20, 4 << 20};
constexpr std::int64_t kEmptyNodes = 1000;
constexpr double kElement = 4;  // bytes of a float32

DeviceId device_id(std::size_t device) { return DeviceId(static_cast<std::int64_t>(device)); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// A graph that is made together with where its nodes go.
struct PlacedGraph {
  GraphBuilder builder;
  Assignment assignment;

  NodeId add(const Node& node, DeviceId device) {
    assignment.devices.push_back(device);
    return builder.add_node(node);
  }
};

// Transfers of every pair and size, each after the one before, between nodes that do nothing.
PlacedGraph transfer_graph(std::size_t n_devices) {
  PlacedGraph placed;
  placed.builder.set_name("transfers");
  NodeId last(-1);
  for (std::size_t from = 0; from < n_devices; ++from) {
    for (std::size_t to = 0; to < n_devices; ++to) {
      if (from == to) continue;
      for (std::int64_t repeat = 0; repeat < kRepeats; ++repeat) {
        for (const std::int64_t bytes : kTransferBytes) {
          const NodeId sender =
              placed.add({.name = "send", .outputs = {{.bytes = static_cast<double>(bytes)}}},
                         device_id(from));
          const NodeId reader = placed.add({.name = "receive", .outputs = {{}}}, device_id(to));
          placed.builder.add_edge(sender, reader);
          if (last.value >= 0) placed.builder.add_edge(last, sender);
          last = reader;
        }
      }
    }
  }
  return placed;
}

std::map<std::pair<DeviceId, DeviceId>, Profile::LinkTime> measure_links(Engine& engine,
                                                                         const Cluster& cluster,
                                                                         std::int64_t runs) {
  const std::size_t n_devices = cluster.n_devices();
  if (n_devices < 2 || n_devices > kMaxMeasuredDevices) return {};
  PlacedGraph placed = transfer_graph(n_devices);
  const Graph graph = placed.builder.build();
  std::vector<Execution> executions;
  for (std::int64_t i = 0; i < runs; ++i) {
    executions.push_back(
        engine.run(graph, cluster, CostModel::analytical(), placed.assignment, {}));
  }
  return fit_profile(graph, cluster, executions).links;
}

// The whole graph on the first device of the kind; if it is too large, over all of the kind.
std::vector<Execution> run_on_kind(Engine& engine, const Graph& graph, const Cluster& cluster,
                                   const std::vector<DeviceId>& devices, std::int64_t runs) {
  Assignment assignment(graph.n_nodes(), devices.front());
  std::vector<Execution> executions;
  const auto repeat = [&] {
    for (std::int64_t i = 0; i < runs; ++i) {
      executions.push_back(engine.run(graph, cluster, CostModel::analytical(), assignment,
                                      {.enforce_memory = true}));
    }
  };
  try {
    repeat();
  } catch (const OutOfMemoryError&) {
    if (devices.size() == 1) throw;
    executions.clear();
    std::size_t next = 0;
    for (const NodeId node : graph.topological_order()) {
      assignment[node] = devices[next++ % devices.size()];
    }
    repeat();
  }
  return executions;
}

OperandPiece whole_input(InputId input, const std::vector<std::int64_t>& shape) {
  return {.source = OperandPiece::Source::input,
          .index = input.value,
          .start = std::vector<std::int64_t>(shape.size(), 0),
          .shape = shape,
          .to = std::vector<std::int64_t>(shape.size(), 0)};
}

// Two graph inputs of the shape and, on every device, nodes that join them.
void add_binary(PlacedGraph& placed, std::size_t n_devices, const std::string& kind,
                const std::string& index, const std::vector<std::int64_t>& shape, double flops) {
  double bytes = kElement;
  for (const std::int64_t size : shape) bytes *= static_cast<double>(size);
  NodeAttributes attributes;
  attributes.index = index;
  std::array<InputId, 2> inputs;
  for (InputId& input : inputs) {
    input = placed.builder.add_input({.name = kind + std::to_string(placed.assignment.size()) +
                                              (&input == &inputs[0] ? "left" : "right"),
                                      .tensor = {.bytes = bytes, .shape = shape}});
    attributes.operands.push_back({.shape = shape, .pieces = {whole_input(input, shape)}});
  }
  for (std::int64_t repeat = 0; repeat < kRepeats; ++repeat) {
    for (std::size_t d = 0; d < n_devices; ++d) {
      const NodeId node = placed.add({.name = kind,
                                      .kind = kind,
                                      .flops = flops,
                                      .bytes_read = 2 * bytes,
                                      .bytes_written = bytes,
                                      .outputs = {{.bytes = bytes, .shape = shape}},
                                      .attributes = to_json(attributes)},
                                     device_id(d));
      for (const InputId input : inputs) placed.builder.add_reader(input, node);
    }
  }
}

// FLOP/s of matrix products; bytes/s of sums of vectors. All devices work at once.
std::pair<double, double> measure_rates(Engine& engine, const Cluster& cluster, double overhead) {
  PlacedGraph placed;
  placed.builder.set_name("rates");
  for (const std::int64_t n : kMatrixSizes) {
    const auto size = static_cast<double>(n);
    add_binary(placed, cluster.n_devices(), "einsum", "i k, k j -> i j", {n, n},
               2 * size * size * size);
  }
  for (const std::int64_t n : kVectorSizes) {
    add_binary(placed, cluster.n_devices(), "add", "i, i -> i", {n}, static_cast<double>(n));
  }
  const Graph graph = placed.builder.build();
  const Execution execution =
      engine.run(graph, cluster, CostModel::analytical(), placed.assignment, {});
  const Profile profile = fit_profile(graph, cluster, {&execution, 1});
  const auto& times = profile.compute.begin()->second;
  std::vector<double> flops;
  std::vector<double> bandwidth;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    const double all = times.at(Profile::signature(graph, node));
    const double seconds = all > 2 * overhead ? all - overhead : all;
    if (graph.kind(node) == "einsum") {
      flops.push_back(graph.flops(node) / seconds);
    } else {
      bandwidth.push_back((graph.bytes_read(node) + graph.bytes_written(node)) / seconds);
    }
  }
  return {median(std::move(flops)), median(std::move(bandwidth))};
}

double measure_overhead(Engine& engine, const Cluster& cluster) {
  PlacedGraph placed;
  placed.builder.set_name("empty nodes");
  for (std::int64_t v = 0; v < kEmptyNodes; ++v) {
    placed.add({.name = "empty", .outputs = {{}}}, DeviceId(0));
    if (v > 0) placed.builder.add_edge(NodeId(v - 1), NodeId(v));
  }
  const Graph graph = placed.builder.build();
  return engine.run(graph, cluster, CostModel::analytical(), placed.assignment, {}).makespan /
         static_cast<double>(kEmptyNodes);
}

}  // namespace

Profile measure_profile(Engine& engine, const Graph& graph, const Cluster& cluster,
                        std::int64_t runs) {
  std::map<std::string, std::vector<DeviceId>> devices_of;
  for (std::size_t d = 0; d < cluster.n_devices(); ++d) {
    devices_of[cluster.device(device_id(d)).kind].push_back(device_id(d));
  }
  Profile profile;
  for (const auto& [kind, devices] : devices_of) {
    const std::vector<Execution> executions = run_on_kind(engine, graph, cluster, devices, runs);
    profile.compute.merge(fit_profile(graph, cluster, executions).compute);
  }
  profile.links = measure_links(engine, cluster, runs);
  return profile;
}

Cluster measure_cluster(Engine& engine, const std::string& kind, std::int64_t n_devices,
                        double memory) {
  if (n_devices < 1 || n_devices > static_cast<std::int64_t>(kMaxMeasuredDevices)) {
    throw UsageError(std::to_string(n_devices) + " devices cannot be measured; give 1 to " +
                     std::to_string(kMaxMeasuredDevices));
  }
  ClusterParts parts;
  parts.name = kind + std::to_string(n_devices);
  parts.devices.assign(static_cast<std::size_t>(n_devices), Device{.kind = kind});
  // No limits, so that an engine that emulates links adds nothing.
  parts.default_link = DefaultLink{};
  const Cluster bare(parts);
  const double overhead = measure_overhead(engine, bare);
  const auto [flops, bandwidth] = measure_rates(engine, bare, overhead);
  for (Device& device : parts.devices) {
    device.flops = {{DType::float32, flops}};
    device.bandwidth = bandwidth;
    device.launch_overhead = overhead;
    device.memory = memory;
  }
  const std::string device = "devices." + kind + ".";
  parts.sources = {
      {device + "flops", "measured: products of square matrices of 256 to 1024 rows, median"},
      {device + "bandwidth", "measured: sums of vectors of 1 and 4 million float32, median"},
      {device + "launch_overhead", "measured: a chain of 1000 empty nodes"},
      {device + "memory", "by definition: what was asked for when this was measured"},
      {device + "streams", "by definition: one node at a time on a device"}};
  parts.enforce_memory = true;
  if (n_devices > 1) {
    const auto links = measure_links(engine, bare, kRepeats);
    std::vector<double> latencies;
    std::vector<double> seconds_per_byte;
    for (const auto& [pair, time] : links) {
      latencies.push_back(time.latency);
      seconds_per_byte.push_back(1 / time.bandwidth);
    }
    const double per_byte = median(std::move(seconds_per_byte));
    parts.default_link = DefaultLink{.latency = median(std::move(latencies)),
                                     .bandwidth = per_byte > 0 ? 1 / per_byte : kUnlimited};
    parts.sources.push_back(
        {"default_link",
         "measured: transfers of 0 bytes to 32 MiB, one at a time, median of pairs"});
    parts.sources.push_back(
        {"default_link.channels", "by definition: each ordered pair of devices has its own"});
  }
  return Cluster(std::move(parts));
}

}  // namespace doppler
