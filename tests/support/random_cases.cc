#include "tests/support/random_cases.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "graphs/graph_builder.h"

namespace doppler::testing {
namespace {

constexpr std::array<double, 6> kLatencies = {0, 0, 0, 0.5, 1, 2};
constexpr std::array<double, 6> kBandwidths = {0.5, 1, 1, 2, 4, kUnlimited};
constexpr std::array<double, 5> kCapacities = {0.5, 1, 2, 3, kUnlimited};

// How costs are drawn: many zeros, small integers with many ties, or reals.
enum class Costs { zeros, integers, reals };

double draw_cost(Draws& draws, Costs costs) {
  switch (costs) {
    case Costs::zeros:
      return draws.chance(0.5) ? 0 : static_cast<double>(draws.between(0, 2));
    case Costs::integers:
      return static_cast<double>(draws.between(0, 4));
    case Costs::reals:
      return draws.chance(0.1) ? 0 : 4 * draws.real();
  }
  return 0;
}

Costs draw_costs(Draws& draws, const CaseLimits& limits) {
  if (limits.integers) return draws.chance(0.3) ? Costs::zeros : Costs::integers;
  return static_cast<Costs>(draws.below(3));
}

// Pairs (producer, reader), producer < reader, by shape.
std::vector<std::pair<std::size_t, std::size_t>> draw_pairs(Draws& draws, std::size_t n) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  switch (draws.below(5)) {
    case 0:  // no edges
      break;
    case 1: {  // parallel chains
      const std::size_t n_chains = 1 + draws.below(4);
      for (std::size_t v = n_chains; v < n; ++v) pairs.emplace_back(v - n_chains, v);
      break;
    }
    case 2: {  // layers, neighbours joined at random
      const std::size_t width = 1 + draws.below(5);
      for (std::size_t v = width; v < n; ++v) {
        const std::size_t before = (v / width - 1) * width;
        for (std::size_t p = before; p < before + width; ++p) {
          if (draws.chance(0.5)) pairs.emplace_back(p, v);
        }
      }
      break;
    }
    case 3:  // fork and join, again and again
      for (std::size_t v = 1; v < n; ++v) {
        const std::size_t fork = (v - 1) / 4 * 4;
        pairs.emplace_back(fork, v);
        if (v == fork + 4) {
          for (std::size_t p = fork + 1; p < v; ++p) pairs.emplace_back(p, v);
        }
      }
      break;
    default: {  // any
      const double density = draws.real() * 0.5;
      for (std::size_t v = 1; v < n; ++v) {
        for (std::size_t p = 0; p < v; ++p) {
          if (draws.chance(density)) pairs.emplace_back(p, v);
        }
      }
    }
  }
  return pairs;
}

// Links both ways round a ring, so that every device is reached, and some more.
void draw_links(Draws& draws, ClusterParts& parts) {
  const std::size_t n = parts.devices.size();
  const bool complete = draws.chance(0.3);
  const bool shared = draws.chance(0.5);
  for (std::size_t c = 0; shared && c < 1 + n / 2; ++c) {
    parts.channels.push_back({"shared " + std::to_string(c), draws.one_of(kCapacities)});
  }
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const bool ring = to == (from + 1) % n;
      if (from == to || !(ring || complete || draws.chance(0.2))) continue;
      if (!shared) {
        parts.channels.push_back(
            {std::to_string(from) + " to " + std::to_string(to), draws.one_of(kCapacities)});
      }
      const std::size_t channel =
          shared ? draws.below(parts.channels.size()) : parts.channels.size() - 1;
      parts.links.push_back({DeviceId{static_cast<std::int64_t>(from)},
                             DeviceId{static_cast<std::int64_t>(to)}, draws.one_of(kLatencies),
                             draws.one_of(kBandwidths),
                             ChannelId{static_cast<std::int64_t>(channel)}});
    }
  }
}

}  // namespace

Graph random_graph(Draws& draws, std::size_t n_devices, const CaseLimits& limits) {
  const std::size_t n = draws.chance(0.05) ? draws.below(2) : 1 + draws.below(limits.max_nodes);
  GraphBuilder builder("random");
  if (n == 0) return builder.build();

  const Costs costs = draw_costs(draws, limits);
  const bool raw = draws.chance(0.7);
  std::vector<NodeId> id(n);  // of the node at each place of the shape
  for (std::size_t i = 0; i < n; ++i) id[i] = NodeId{static_cast<std::int64_t>(i)};
  if (draws.chance(0.7)) {
    for (std::size_t i = n - 1; i > 0; --i) std::swap(id[i], id[draws.below(i + 1)]);
  }
  const bool several_outputs = draws.chance(0.4);
  std::vector<std::size_t> n_outputs(n);
  for (std::size_t v = 0; v < n; ++v) {
    Node node;
    node.name = "n" + std::to_string(v);
    if (!raw) {
      node.flops = draw_cost(draws, costs);
      node.bytes_read = draw_cost(draws, costs);
      node.bytes_written = draw_cost(draws, costs);
    }
    n_outputs[v] = several_outputs ? draws.below(4) : 1;
    for (std::size_t i = 0; i < n_outputs[v]; ++i) {
      Tensor tensor;
      tensor.bytes = draw_cost(draws, costs);
      node.outputs.push_back(tensor);
    }
    builder.add_node(node);
  }
  for (const auto& [producer, reader] : draw_pairs(draws, n)) {
    const std::size_t outputs = n_outputs[id[producer].index()];
    if (outputs == 0) continue;
    const std::size_t output = draws.below(outputs);
    builder.add_edge(id[producer], id[reader], static_cast<std::int32_t>(output));
    if (outputs > 1 && draws.chance(0.3)) {
      builder.add_edge(id[producer], id[reader], static_cast<std::int32_t>((output + 1) % outputs));
    }
  }
  for (std::size_t i = draws.chance(0.5) ? draws.below(5) : 0; i > 0; --i) {
    GraphInput input;
    input.name = "input " + std::to_string(i);
    input.tensor.bytes = draw_cost(draws, costs);
    for (std::size_t v = 0; v < n; ++v) {
      if (draws.chance(0.2)) input.readers.push_back(NodeId{static_cast<std::int64_t>(v)});
    }
    builder.add_input(std::move(input));
  }
  if (raw) {
    const std::size_t columns = draws.chance(0.5) ? n_devices : 1;
    std::vector<double> seconds(n * columns);
    for (double& x : seconds) x = draw_cost(draws, costs);
    builder.set_raw_compute(std::move(seconds), columns);
  }
  return builder.build();
}

Cluster random_cluster(Draws& draws, std::size_t n_devices, const CaseLimits& limits) {
  const auto n = static_cast<std::int64_t>(n_devices);
  switch (draws.below(8)) {
    case 0:
      return Cluster::uniform(n);
    case 1:
      return Cluster::ring(n);
    case 2:
      return Cluster::mesh(n);
    default:
      break;
  }
  ClusterParts parts;
  parts.name = "random";
  const bool unequal = draws.chance(0.5);
  const bool streams = draws.chance(0.5);
  const bool scarce = draws.chance(0.3);
  for (std::size_t d = 0; d < n_devices; ++d) {
    Device device;
    device.kind = "random";
    if (unequal) {
      const std::size_t kind = draws.below(3);
      device.kind += std::to_string(kind);
      // Powers of 2, so that times of integers stay exact.
      device.flops = {{DType::float32, static_cast<double>(1 << kind)}};
      device.bandwidth = kind == 1 ? 0.5 : kUnlimited;
      device.launch_overhead = kind == 2 ? 1 : 0;
    }
    if (streams) device.streams = static_cast<std::int32_t>(draws.between(1, 3));
    if (scarce) device.memory = static_cast<double>(draws.between(0, 20));
    parts.devices.push_back(device);
  }
  if (draws.chance(0.5)) {
    DefaultLink link;
    link.latency = draws.one_of(kLatencies);
    link.bandwidth = draws.one_of(kBandwidths);
    link.channels = draws.chance(0.5) ? DefaultLink::Channels::own : DefaultLink::Channels::egress;
    link.capacity = draws.one_of(kCapacities);
    parts.default_link = link;
  }
  if (n_devices > 1 && (!parts.default_link || draws.chance(0.3))) draw_links(draws, parts);
  if (!limits.integers && draws.chance(0.5)) {
    const auto blur = [&](double& x) { x *= 0.5 + draws.real(); };
    for (Channel& channel : parts.channels) blur(channel.capacity);
    for (Link& link : parts.links) {
      blur(link.latency);
      blur(link.bandwidth);
    }
    if (parts.default_link) {
      blur(parts.default_link->latency);
      blur(parts.default_link->bandwidth);
      blur(parts.default_link->capacity);
    }
  }
  return Cluster(std::move(parts));
}

Assignment random_assignment(Draws& draws, std::size_t n_nodes, std::size_t n_devices) {
  Assignment assignment(n_nodes, DeviceId{static_cast<std::int64_t>(draws.below(n_devices))});
  constexpr std::array<double, 4> kMoved = {0, 0.3, 1, 1};
  const double moved = draws.one_of(kMoved);
  for (DeviceId& device : assignment.devices) {
    if (draws.chance(moved)) device = DeviceId{static_cast<std::int64_t>(draws.below(n_devices))};
  }
  return assignment;
}

RunOptions random_options(Draws& draws, const Graph& graph, std::size_t n_devices,
                          const CaseLimits& limits) {
  RunOptions options;
  options.network = static_cast<Network>(draws.below(3));
  options.choice = static_cast<Choice>(draws.below(3));
  if (draws.chance(0.2)) options.schedule = Schedule::bulk_synchronous;
  if (options.choice == Choice::priority && draws.chance(0.6)) {
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      options.priorities.push_back(static_cast<double>(draws.between(-2, 2)));
    }
  }
  if (draws.chance(0.5)) {
    for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
      options.input_devices.push_back(DeviceId{static_cast<std::int64_t>(draws.below(n_devices))});
    }
  }
  if (limits.noise && draws.chance(0.3)) options.noise = draws.chance(0.5) ? 0.1 : 1;
  options.seed = draws.bits();
  options.enforce_memory = draws.chance(0.3);
  return options;
}

RandomCase random_case(std::uint64_t seed, const CaseLimits& limits) {
  Draws draws(seed);
  const std::size_t n_devices = 1 + draws.below(limits.max_devices);
  RandomCase result;
  result.graph = random_graph(draws, n_devices, limits);
  result.cluster = random_cluster(draws, n_devices, limits);
  result.cost_model = CostModel::of(result.graph);
  result.assignment = random_assignment(draws, result.graph.n_nodes(), n_devices);
  result.options = random_options(draws, result.graph, n_devices, limits);
  return result;
}

std::ostream& operator<<(std::ostream& out, const RandomCase& random_case) {
  const Graph& graph = random_case.graph;
  out << graph << '\n';
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId{static_cast<std::int64_t>(e)});
    out << edge.producer << '.' << edge.output << "->" << edge.reader << ' ';
  }
  out << '\n' << random_case.cluster << '\n' << random_case.options << "\nassignment";
  for (const DeviceId device : random_case.assignment.devices) out << ' ' << device;
  return out << '\n';
}

}  // namespace doppler::testing
