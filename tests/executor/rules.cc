// Each rule of an execution on an example small enough to work out by hand; the reference simulator
// and the simulator proper both have to give it.
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "executor/simulator/simulator.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/reference_simulator.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinRel;

// Runs an example by both simulators and returns what they agree on.
Execution run(const Graph& graph, const Cluster& cluster, std::initializer_list<int> devices,
              const RunOptions& options) {
  Assignment assignment;
  for (const int device : devices) assignment.devices.emplace_back(device);
  const Execution slow =
      testing::reference_run(graph, cluster, CostModel::raw(), assignment, options);
  const Execution fast = Simulator(graph, cluster, CostModel::raw(), options).run(assignment);
  CHECK(slow == fast);
  return fast;
}

struct NodeSpec {
  double seconds;
  double bytes = 0;  // of its only output
};

GraphBuilder builder_of(const std::vector<NodeSpec>& nodes,
                        const std::vector<std::pair<int, int>>& edges) {
  GraphBuilder builder;
  std::vector<double> compute;
  for (const NodeSpec& spec : nodes) {
    Node node;
    node.name = "n" + std::to_string(builder.n_nodes());
    node.outputs.resize(1);
    node.outputs[0].bytes = spec.bytes;
    builder.add_node(node);
    compute.push_back(spec.seconds);
  }
  for (const auto& [producer, reader] : edges) {
    builder.add_edge(NodeId{producer}, NodeId{reader});
  }
  builder.set_raw_compute(compute);
  return builder;
}

Graph graph_of(const std::vector<NodeSpec>& nodes, const std::vector<std::pair<int, int>>& edges) {
  return builder_of(nodes, edges).build();
}

// Devices whose links out share one channel of capacity 1 at bandwidth 1 and this latency.
Cluster shared_port(std::size_t n_devices, double latency = 0, std::int32_t streams = 1) {
  ClusterParts parts;
  parts.devices.resize(n_devices);
  for (Device& device : parts.devices) device.streams = streams;
  parts.default_link.emplace();
  parts.default_link->latency = latency;
  parts.default_link->bandwidth = 1;
  parts.default_link->channels = DefaultLink::Channels::egress;
  return Cluster(parts);
}

std::vector<double> starts(const Execution& execution) {
  std::vector<double> result;
  for (const NodeRun& node : execution.nodes) result.push_back(node.start);
  return result;
}

std::vector<std::pair<double, double>> travels(const Execution& execution) {
  std::vector<std::pair<double, double>> result;
  for (const TransferRun& transfer : execution.transfers) {
    result.emplace_back(transfer.start, transfer.end);
  }
  return result;
}

RunOptions with(Network network) {
  RunOptions options;
  options.network = network;
  return options;
}

TEST_CASE("nodes that are ready at one instant start by ascending id, later ones after them") {
  // 0 and 1 compete on device 0 at 0; 3 becomes ready there at 1 (its input ends elsewhere and
  // takes no time), 2 only at 2.
  const Graph graph = graph_of({{2}, {2}, {1}, {1}, {1}}, {{0, 2}, {4, 3}});
  const Execution execution =
      run(graph, Cluster::uniform(2), {0, 0, 0, 0, 1}, with(Network::independent));
  CHECK(starts(execution) == std::vector<double>{0, 2, 5, 4, 0});
  CHECK(execution.nodes[2].ready == 2);
  CHECK(execution.nodes[3].ready == 1);
  CHECK(execution.makespan == 6);
}

TEST_CASE("priorities and drawn keys override the order of readiness") {
  const Graph graph = graph_of({{1}, {1}, {1}, {5}}, {{1, 3}});
  const Cluster cluster = Cluster::uniform(1);
  RunOptions options = with(Network::independent);
  options.choice = Choice::priority;
  // By b-level: 1 (1 + 5), then 3 (5), then 0 and 2.
  CHECK(starts(run(graph, cluster, {0, 0, 0, 0}, options)) == std::vector<double>{6, 0, 7, 1});
  options.priorities = {0, -1, 3, 0};
  CHECK(starts(run(graph, cluster, {0, 0, 0, 0}, options)) == std::vector<double>{1, 2, 0, 3});
  options.choice = Choice::fifo;
  CHECK(starts(run(graph, cluster, {0, 0, 0, 0}, options)) == std::vector<double>{0, 1, 2, 3});
}

TEST_CASE("the lowest free slot is taken first") {
  const Graph graph = graph_of({{3}, {1}, {2}, {1}, {1}}, {});
  const Execution execution =
      run(graph, shared_port(1, 0, 3), {0, 0, 0, 0, 0}, with(Network::independent));
  CHECK(starts(execution) == std::vector<double>{0, 0, 0, 1, 2});
  CHECK(execution.nodes[3].slot == 1);
  CHECK(execution.nodes[4].slot == 1);
  CHECK(execution.makespan == 3);
  CHECK(execution.devices[0].busy == 8);
}

TEST_CASE("a node without cost ends at once, and its readers join behind those who waited") {
  // 0 takes no time; 1 waits for it, 2 was ready in the first round of the same instant.
  const Graph graph = graph_of({{0}, {1}, {1}}, {{0, 1}});
  // One slot: 0 in the first round, then 1 and 2 are both ready since 0, the smaller id first.
  CHECK(starts(run(graph, Cluster::uniform(1), {0, 0, 0}, with(Network::independent))) ==
        std::vector<double>{0, 0, 1});
  // Elsewhere: 2 has the device before the tensor of no bytes is there.
  CHECK(starts(run(graph, Cluster::uniform(2), {1, 0, 0}, with(Network::independent))) ==
        std::vector<double>{0, 1, 0});
}

TEST_CASE("a tensor goes once to a device with several readers") {
  const Graph graph = graph_of({{1, 4}, {1}, {1}, {1}}, {{0, 1}, {0, 2}, {0, 3}});
  const Execution execution =
      run(graph, Cluster::uniform(3), {0, 2, 2, 0}, with(Network::independent));
  CHECK(travels(execution) == std::vector<std::pair<double, double>>{{1, 5}});
  CHECK(execution.bytes_moved == 4);
  CHECK(execution.bytes_local == 4);
  CHECK(starts(execution) == std::vector<double>{0, 5, 6, 1});
}

TEST_CASE("three networks carry two transfers over one port differently") {
  // Two tensors of 2 and 4 bytes leave device 0 at the same instant, 1, after a latency of 1.
  GraphBuilder builder = builder_of({{1, 2}, {1}, {1}}, {{0, 1}});
  Tensor second;
  second.bytes = 4;
  builder.add_edge(NodeId{0}, NodeId{2}, builder.add_output(NodeId{0}, second));
  const Graph graph = builder.build();
  const Cluster cluster = shared_port(3, 1);
  using Times = std::vector<std::pair<double, double>>;
  CHECK(travels(run(graph, cluster, {0, 1, 2}, with(Network::independent))) ==
        Times{{1, 4}, {1, 6}});
  // The first holds the port for 1 + 2, the second for 1 + 4.
  CHECK(travels(run(graph, cluster, {0, 1, 2}, with(Network::channel))) == Times{{1, 4}, {4, 9}});
  // Half a byte each from 2 on: the first is there at 6, the second has 2 left and goes on alone.
  CHECK(travels(run(graph, cluster, {0, 1, 2}, with(Network::fair))) == Times{{1, 6}, {1, 8}});
}

TEST_CASE("in fair what a slow link cannot use goes to the others") {
  // From device 0: to 1 at most 1 byte/s, to 2 and 3 at most 10, of 5 together: 1, 2 and 2.
  ClusterParts parts;
  parts.devices.resize(4);
  parts.channels.push_back({"port", 5});
  for (int to = 1; to < 4; ++to) {
    parts.links.push_back({DeviceId{0}, DeviceId{to}, 0, to == 1 ? 1.0 : 10.0, ChannelId{0}});
  }
  parts.default_link.emplace();
  const Cluster cluster(parts);
  const Graph graph = graph_of({{0, 8}, {1}, {1}, {1}}, {{0, 1}, {0, 2}, {0, 3}});
  const Execution execution = run(graph, cluster, {0, 1, 2, 3}, with(Network::fair));
  REQUIRE(execution.transfers.size() == 3);
  CHECK_THAT(execution.transfers[0].end, WithinRel(8.0, 1e-12));
  CHECK_THAT(execution.transfers[1].end, WithinRel(4.0, 1e-12));
  CHECK_THAT(execution.transfers[2].end, WithinRel(4.0, 1e-12));
}

TEST_CASE("a path holds the channel of its slowest link and adds latencies") {
  // On a ring of four, device 0 reaches 2 over 1; two transfers to 2 and one to 1 meet on the way.
  const Graph graph = graph_of({{0, 3}, {0, 3}, {0, 3}, {1}, {1}, {1}}, {{0, 3}, {1, 4}, {2, 5}});
  const Execution execution =
      run(graph, Cluster::ring(4), {0, 0, 1, 2, 1, 2}, with(Network::channel));
  // Those from device 0 use the channel from 0 to 1, the first slowest link of the path.
  CHECK(execution.transfers[0].channel == execution.transfers[2].channel);
  CHECK(execution.transfers[0].channel != execution.transfers[1].channel);
  // Zero-cost nodes 0 and 2 end in one round, 1 in the next of the same instant.
  CHECK(travels(execution) == std::vector<std::pair<double, double>>{{0, 3}, {0, 3}, {3, 6}});
}

TEST_CASE("graph inputs travel from where they are placed, before tensors") {
  GraphBuilder builder = builder_of({{0, 2}, {1}, {1}}, {{0, 1}});
  GraphInput weight;
  weight.name = "weight";
  weight.tensor.bytes = 5;
  weight.readers = {NodeId{1}, NodeId{2}};
  builder.add_input(weight);
  const Graph graph = builder.build();
  RunOptions options = with(Network::channel);
  // Replicated: only the tensor travels; 1 and 2 hold the input where they run.
  const Execution everywhere = run(graph, shared_port(2), {0, 1, 0}, options);
  CHECK(starts(everywhere) == std::vector<double>{0, 2, 0});
  CHECK(everywhere.bytes_moved == 2);
  CHECK(everywhere.bytes_local == 0);
  CHECK(everywhere.devices[0].peak_memory == 5 + 2);
  CHECK(everywhere.devices[1].peak_memory == 5 + 2);
  // On device 0: it takes the port first.
  options.input_devices = {DeviceId{0}};
  const Execution placed = run(graph, shared_port(2), {0, 1, 0}, options);
  CHECK(travels(placed) == std::vector<std::pair<double, double>>{{0, 5}, {5, 7}});
  CHECK(placed.transfers[0].of_input);
  CHECK(starts(placed) == std::vector<double>{0, 7, 0});
  CHECK(placed.bytes_moved == 7);
  CHECK(placed.bytes_local == 5);
}

TEST_CASE("bulk-synchronous waits at barriers where the work-conserving rules do not") {
  // Two chains, 1 + 9 and 9 + 1, on a device each, and a transfer of 4 between them.
  const Graph graph = graph_of({{1, 4}, {9}, {9}, {1}}, {{0, 1}, {0, 3}, {2, 3}});
  RunOptions options = with(Network::independent);
  CHECK(starts(run(graph, Cluster::uniform(2), {0, 0, 1, 1}, options)) ==
        std::vector<double>{0, 1, 0, 9});
  options.schedule = Schedule::bulk_synchronous;
  const Execution bulk = run(graph, Cluster::uniform(2), {0, 0, 1, 1}, options);
  CHECK(starts(bulk) == std::vector<double>{0, 13, 0, 13});
  CHECK(bulk.transfers[0].requested == 9);
  CHECK(bulk.makespan == 22);
}

TEST_CASE("memory is held from a node's start to its last reader and outgoing transfer") {
  // 0 (8 bytes) is read by 1 at home and by 2 elsewhere; 1 (1 byte) by 3 at home; nobody reads
  // 2, 3.
  const Graph graph = graph_of({{1, 8}, {1, 1}, {1, 2}, {2, 4}}, {{0, 1}, {0, 2}, {1, 3}});
  const Execution execution =
      run(graph, Cluster::uniform(2), {0, 0, 1, 0}, with(Network::independent));
  // Device 0: 8 from 0 to the transfer's end at 9; 1 from 1 to 4; 4 from 2 on.
  CHECK(execution.devices[0].peak_memory == 8 + 1 + 4);
  // Device 1: the copy from 1 to 10, the output of 2 from 9 on.
  CHECK(execution.devices[1].peak_memory == 8 + 2);
}

TEST_CASE("at one instant memory is freed before it is taken") {
  // First in first out: 0, 2, 1; the tensor of 0 is held until 1 has read it.
  const Graph graph = graph_of({{1, 8}, {1, 1}, {1, 8}}, {{0, 1}});
  CHECK(run(graph, Cluster::uniform(1), {0, 0, 0}, with(Network::independent))
            .devices[0]
            .peak_memory == 8 + 8 + 1);
  RunOptions options = with(Network::independent);
  options.choice = Choice::priority;
  // 0, 1, 2: the tensor of 2 takes the place of that of 0.
  options.priorities = {3, 2, 1};
  CHECK(run(graph, Cluster::uniform(1), {0, 0, 0}, options).devices[0].peak_memory == 8 + 1);
}

TEST_CASE("an assignment that needs too much memory is told with device and bytes") {
  ClusterParts parts;
  parts.devices.resize(2);
  parts.devices[1].memory = 9;
  parts.default_link.emplace();
  const Cluster cluster(parts);
  const Graph graph = graph_of({{1, 8}, {1, 2}}, {});
  RunOptions options = with(Network::independent);
  options.enforce_memory = true;
  CHECK(run(graph, cluster, {0, 1}, options).makespan == 1);
  const Execution execution = run(graph, cluster, {1, 1}, options);
  CHECK(execution.makespan == std::numeric_limits<double>::infinity());
  REQUIRE(execution.out_of_memory);
  CHECK(*execution.out_of_memory == OutOfMemory{DeviceId{1}, 10, 9});
  CHECK(execution.nodes[1].end == 2);
  options.enforce_memory = false;
  CHECK(run(graph, cluster, {1, 1}, options).makespan == 2);
  CHECK(run(graph, cluster, {1, 1}, options).devices[1].peak_memory == 10);
}

TEST_CASE("Any number of transfers that begin at one instant share the channel from then on") {
  constexpr int kProducers = 20000;
  std::vector<NodeSpec> nodes(kProducers, {.seconds = 0, .bytes = 1});
  std::vector<std::pair<int, int>> edges;
  for (int p = 0; p < kProducers; ++p) edges.emplace_back(p, kProducers);
  nodes.push_back({.seconds = 3});
  const Graph graph = graph_of(nodes, edges);
  Assignment assignment(graph.n_nodes(), DeviceId{0});
  assignment[NodeId{kProducers}] = DeviceId{1};
  for (const Schedule schedule : {Schedule::work_conserving, Schedule::bulk_synchronous}) {
    const Execution execution = Simulator(graph, Cluster::uniform(2), CostModel::raw(),
                                          {.network = Network::fair, .schedule = schedule})
                                    .run(assignment);
    CHECK_THAT(execution.makespan, WithinRel(kProducers + 3.0, 1e-12));
    for (const TransferRun& transfer : execution.transfers) {
      if (transfer.start != 0 || transfer.end != execution.makespan - 3) FAIL_CHECK("not together");
    }
  }
}

}  // namespace
}  // namespace doppler
