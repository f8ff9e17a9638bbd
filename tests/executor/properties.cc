// What holds for every execution by the rules, checked on random problems from the timeline alone.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "executor/simulator/noise.h"
#include "executor/simulator/simulator.h"
#include "graphs/analysis.h"
#include "graphs/graph_builder.h"
#include "graphs/lower_bound.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinRel;
using testing::RandomCase;

NodeId node_at(std::size_t index) { return NodeId{static_cast<std::int64_t>(index)}; }

Execution run(const RandomCase& problem) {
  return Simulator(problem.graph, problem.cluster, problem.cost_model, problem.options)
      .run(problem.assignment);
}

double duration(const RandomCase& problem, std::size_t v) {
  const RunOptions& options = problem.options;
  return problem.cost_model.compute(problem.graph, node_at(v), problem.cluster,
                                    problem.assignment.devices[v]) *
         noise_factor(options.noise, options.seed, LuckStream::node, v);
}

double factor(const RandomCase& problem, const TransferRun& run) {
  const RunOptions& options = problem.options;
  return run.of_input ? noise_factor(options.noise, options.seed, LuckStream::input,
                                     run.input.index(), run.to.index())
                      : noise_factor(options.noise, options.seed, LuckStream::transfer,
                                     run.tensor.index(), run.to.index());
}

// Nodes run where they should, for as long as they should, in slots that exist, one at a time.
void check_slots(const RandomCase& problem, const Execution& execution) {
  std::map<std::pair<DeviceId, std::int32_t>, std::vector<std::pair<double, double>>> slots;
  std::vector<double> busy(problem.cluster.n_devices(), 0);
  REQUIRE(execution.nodes.size() == problem.graph.n_nodes());
  double last = 0;
  for (std::size_t v = 0; v < execution.nodes.size(); ++v) {
    const NodeRun& node = execution.nodes[v];
    CHECK(node.device == problem.assignment.devices[v]);
    CHECK(node.slot >= 0);
    CHECK(node.slot < problem.cluster.device(node.device).streams);
    CHECK(node.ready <= node.start);
    CHECK(node.end == node.start + duration(problem, v));
    slots[{node.device, node.slot}].emplace_back(node.start, node.end);
    busy[node.device.index()] += duration(problem, v);
    last = std::max(last, node.end);
  }
  for (auto& [slot, runs] : slots) {
    std::sort(runs.begin(), runs.end());
    for (std::size_t i = 1; i < runs.size(); ++i) CHECK(runs[i - 1].second <= runs[i].first);
  }
  for (std::size_t d = 0; d < busy.size(); ++d) {
    CHECK_THAT(execution.devices[d].busy, WithinRel(busy[d], 1e-12));
  }
  if (execution.out_of_memory) {
    CHECK(std::isinf(execution.makespan));
  } else {
    CHECK(execution.makespan == last);
  }
}

// While a node waits, every slot of its device is taken.
void check_work_conserving(const RandomCase& problem, const Execution& execution) {
  for (const NodeRun& waiting : execution.nodes) {
    std::vector<double> instants = {waiting.ready};
    for (const NodeRun& other : execution.nodes) {
      if (other.device == waiting.device) instants.push_back(other.end);
    }
    for (const double t : instants) {
      if (t < waiting.ready || t >= waiting.start) continue;
      std::int32_t taken = 0;
      for (const NodeRun& other : execution.nodes) {
        if (other.device == waiting.device && other.start <= t && t < other.end) ++taken;
      }
      CHECK(taken == problem.cluster.device(waiting.device).streams);
    }
  }
}

// A node that starts while another has waited since before goes first by the choice rule.
void check_choice(const RandomCase& problem, const Execution& execution) {
  const RunOptions& options = problem.options;
  std::vector<double> priorities = options.priorities;
  if (priorities.empty()) {
    priorities =
        levels(problem.graph, CostTable(problem.graph, problem.cluster, problem.cost_model))
            .b_level;
  }
  for (std::size_t v = 0; v < execution.nodes.size(); ++v) {
    const NodeRun& first = execution.nodes[v];
    for (std::size_t u = 0; u < execution.nodes.size(); ++u) {
      const NodeRun& other = execution.nodes[u];
      if (other.device != first.device || other.ready >= first.start ||
          other.start <= first.start) {
        continue;
      }
      if (options.choice == Choice::priority && priorities[v] != priorities[u]) {
        CHECK(priorities[v] > priorities[u]);
        continue;
      }
      if (options.choice == Choice::random) {
        CHECK(luck_bits(options.seed, LuckStream::choice, v) <
              luck_bits(options.seed, LuckStream::choice, u));
        continue;
      }
      CHECK(std::pair(first.ready, v) < std::pair(other.ready, u));
    }
  }
}

// Every tensor that is wanted elsewhere travels once, when its producer has ended, and no node
// starts before its inputs are there.
void check_arrivals(const RandomCase& problem, const Execution& execution) {
  const Graph& graph = problem.graph;
  const Assignment& assignment = problem.assignment;
  const bool conserving = problem.options.schedule == Schedule::work_conserving;
  std::map<std::pair<std::int32_t, DeviceId>, double> tensor_arrives;
  std::map<std::pair<std::int32_t, DeviceId>, double> input_arrives;
  double moved = 0;
  double requested = 0;
  for (const TransferRun& transfer : execution.transfers) {
    const Route route = problem.cost_model.route(problem.cluster, transfer.from, transfer.to);
    CHECK(transfer.channel == route.channel);
    CHECK(transfer.requested >= requested);
    requested = transfer.requested;
    moved += transfer.bytes;
    if (transfer.of_input) {
      CHECK(transfer.bytes == graph.inputs()[transfer.input.index()].tensor.bytes);
      CHECK(transfer.requested == 0);
      CHECK(
          input_arrives.emplace(std::pair(transfer.input.value, transfer.to), transfer.end).second);
      continue;
    }
    const NodeRun& producer = execution.nodes[graph.tensor_producer(transfer.tensor).index()];
    CHECK(transfer.bytes == graph.tensor_bytes(transfer.tensor));
    CHECK(transfer.from == producer.device);
    CHECK(transfer.to != producer.device);
    if (conserving) CHECK(transfer.requested == producer.end);
    CHECK(transfer.requested >= producer.end);
    CHECK(
        tensor_arrives.emplace(std::pair(transfer.tensor.value, transfer.to), transfer.end).second);
  }

  std::set<std::pair<std::int32_t, DeviceId>> tensors_elsewhere;
  std::set<std::pair<std::int32_t, DeviceId>> inputs_elsewhere;
  std::set<std::int32_t> tensors_at_home;
  std::set<std::int32_t> inputs_at_home;
  std::vector<double> ready(graph.n_nodes(), 0);
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId{static_cast<std::int64_t>(e)});
    const TensorId tensor = graph.edge_tensor(EdgeId{static_cast<std::int64_t>(e)});
    const DeviceId where = assignment[edge.reader];
    double there = execution.nodes[edge.producer.index()].end;
    if (where == assignment[edge.producer]) {
      tensors_at_home.insert(tensor.value);
    } else {
      tensors_elsewhere.emplace(tensor.value, where);
      REQUIRE(tensor_arrives.count({tensor.value, where}) == 1);
      there = tensor_arrives.at({tensor.value, where});
    }
    ready[edge.reader.index()] = std::max(ready[edge.reader.index()], there);
  }
  for (std::size_t i = 0; i < problem.options.input_devices.size(); ++i) {
    for (const NodeId reader : graph.inputs()[i].readers) {
      const auto input = static_cast<std::int32_t>(i);
      if (assignment[reader] == problem.options.input_devices[i]) {
        inputs_at_home.insert(input);
        continue;
      }
      inputs_elsewhere.emplace(input, assignment[reader]);
      REQUIRE(input_arrives.count({input, assignment[reader]}) == 1);
      ready[reader.index()] =
          std::max(ready[reader.index()], input_arrives.at({input, assignment[reader]}));
    }
  }
  CHECK(tensor_arrives.size() == tensors_elsewhere.size());
  CHECK(input_arrives.size() == inputs_elsewhere.size());
  for (std::size_t v = 0; v < ready.size(); ++v) {
    CHECK(execution.nodes[v].start >= ready[v]);
    if (conserving) CHECK(execution.nodes[v].ready == ready[v]);
  }

  double local = 0;
  for (const std::int32_t tensor : tensors_at_home) local += graph.tensor_bytes(TensorId{tensor});
  for (const std::int32_t input : inputs_at_home) {
    local += graph.inputs()[static_cast<std::size_t>(input)].tensor.bytes;
  }
  CHECK_THAT(execution.bytes_moved, WithinRel(moved, 1e-12));
  CHECK_THAT(execution.bytes_local, WithinRel(local, 1e-12));
}

// A transfer by itself, or on a channel that carries one at a time in the order of requests.
void check_times_alone(const RandomCase& problem, const Execution& execution) {
  std::map<ChannelId, double> channel_free;
  for (const TransferRun& transfer : execution.transfers) {
    const Route route = problem.cost_model.route(problem.cluster, transfer.from, transfer.to);
    double start = transfer.requested;
    if (problem.options.network == Network::channel) {
      double& free = channel_free[transfer.channel];
      start = std::max(start, free);
      free = transfer.end;
    }
    CHECK(transfer.start == start);
    CHECK(transfer.end ==
          start + (route.latency + transfer.bytes / route.bandwidth) * factor(problem, transfer));
  }
}

// A transfer under `fair`: its link's bandwidth, when it moves, and how much.
struct Flow {
  double bandwidth;
  double begin;
  double end;
  double bytes;
  double moved = 0;
};

// The level at which min(bandwidth, level) adds up to the capacity, by halving.
double water_level(const std::vector<Flow*>& flows, double capacity) {
  double low = 0;
  double high = capacity;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const Flow* flow : flows) sum += std::min(flow->bandwidth, middle);
    (sum <= capacity ? low : high) = middle;
  }
  return low;
}

// Each flow's max-min fair rate, added up from when it begins to move until it arrives, is its
// bytes.
void check_fair(const RandomCase& problem, const Execution& execution) {
  std::map<ChannelId, std::vector<Flow>> channels;
  for (const TransferRun& transfer : execution.transfers) {
    const Route route = problem.cost_model.route(problem.cluster, transfer.from, transfer.to);
    const double scale = factor(problem, transfer);
    CHECK(transfer.start == transfer.requested);
    const double begin = transfer.requested + route.latency * scale;
    channels[transfer.channel].push_back(
        {route.bandwidth, begin, transfer.end, transfer.bytes * scale});
  }
  for (auto& [channel, flows] : channels) {
    const double capacity = problem.cluster.channel_capacity(channel);
    std::set<double> instants;
    for (const Flow& flow : flows) {
      CHECK(flow.begin <= flow.end);
      instants.insert({flow.begin, flow.end});
    }
    for (auto to = instants.begin(); to != instants.end(); ++to) {
      if (to == instants.begin()) continue;
      const double from = *std::prev(to);
      std::vector<Flow*> moving;
      for (Flow& flow : flows) {
        if (flow.begin <= from && *to <= flow.end) moving.push_back(&flow);
      }
      const double level = std::isinf(capacity) ? capacity : water_level(moving, capacity);
      for (Flow* flow : moving) flow->moved += std::min(flow->bandwidth, level) * (*to - from);
    }
    for (const Flow& flow : flows) {
      if (std::isinf(std::min(capacity, flow.bandwidth)) || flow.bytes == 0) {
        CHECK(flow.end == flow.begin);
      } else {
        CHECK(std::abs(flow.moved - flow.bytes) <= 1e-9 * (1 + flow.bytes));
      }
    }
  }
}

// All nodes of a depth are ready together, when every transfer of the depth before has arrived.
void check_barriers(const RandomCase& problem, const Execution& execution) {
  const Graph& graph = problem.graph;
  std::int32_t deepest = -1;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    deepest = std::max(deepest, graph.level(node_at(v)));
  }
  double barrier = 0;
  for (const TransferRun& transfer : execution.transfers) {
    if (transfer.of_input) barrier = std::max(barrier, transfer.end);
  }
  for (std::int32_t depth = 0; depth <= deepest; ++depth) {
    double ended = barrier;
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      if (graph.level(node_at(v)) != depth) continue;
      CHECK(execution.nodes[v].ready == barrier);
      ended = std::max(ended, execution.nodes[v].end);
    }
    barrier = ended;
    for (const TransferRun& transfer : execution.transfers) {
      if (transfer.of_input || graph.level(graph.tensor_producer(transfer.tensor)) != depth)
        continue;
      CHECK(transfer.requested == ended);
      barrier = std::max(barrier, transfer.end);
    }
  }
}

TEST_CASE("every execution obeys the rules") {
  std::size_t n_fair = 0;
  std::size_t n_bulk = 0;
  std::size_t n_transfers = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    testing::CaseLimits limits;
    limits.integers = seed % 3 == 0;
    const RandomCase problem = testing::random_case(seed, limits);
    INFO("seed " << seed << ' ' << problem);
    const Execution execution = run(problem);
    check_slots(problem, execution);
    check_work_conserving(problem, execution);
    check_choice(problem, execution);
    check_arrivals(problem, execution);
    if (problem.options.network == Network::fair) {
      ++n_fair;
      check_fair(problem, execution);
    } else {
      check_times_alone(problem, execution);
    }
    if (problem.options.schedule == Schedule::bulk_synchronous) {
      ++n_bulk;
      check_barriers(problem, execution);
    }
    if (problem.options.noise == 0) {
      const CostTable costs(problem.graph, problem.cluster, problem.cost_model);
      CHECK_FALSE(
          below_bound(execution.makespan, lower_bound(problem.graph, problem.cluster, costs)));
    }
    n_transfers += execution.transfers.size();
  }
  CHECK(n_fair > 1000);
  CHECK(n_bulk > 600);
  CHECK(n_transfers > 20'000);
}

TEST_CASE("on one device with one slot the makespan is the sum") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::Draws draws(seed);
    testing::RandomCase problem;
    problem.graph = testing::random_graph(draws, 1);
    problem.cost_model = CostModel::of(problem.graph);
    problem.assignment = Assignment(problem.graph.n_nodes(), DeviceId{0});
    problem.options = testing::random_options(draws, problem.graph, 1);
    double sum = 0;
    for (std::size_t v = 0; v < problem.graph.n_nodes(); ++v) sum += duration(problem, v);
    INFO("seed " << seed << ' ' << problem);
    const Execution execution = run(problem);
    CHECK_THAT(execution.makespan, WithinRel(sum, 1e-12));
    CHECK(execution.transfers.empty());
    CHECK(execution.bytes_moved == 0);
  }
}

TEST_CASE("a seed gives the same result on every run and another one another luck") {
  std::size_t n_differ = 0;
  std::size_t n_noisy = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomCase problem = testing::random_case(seed);
    INFO("seed " << seed << ' ' << problem);
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    const Execution execution = simulator.run(problem.assignment);
    CHECK(simulator.run(problem.assignment) == execution);
    CHECK(simulator.run(problem.assignment, problem.options.seed) == execution);
    CHECK(run(problem) == execution);
    const Execution other = simulator.run(problem.assignment, problem.options.seed + 1);
    CHECK(simulator.run(problem.assignment) == execution);
    problem.options.seed += 1;
    CHECK(run(problem) == other);
    if (problem.options.noise > 0 && execution.devices[0].busy > 0) {
      ++n_noisy;
      if (other.devices[0].busy != execution.devices[0].busy) ++n_differ;
    }
  }
  CHECK(n_noisy > 20);
  CHECK(n_differ == n_noisy);
}

TEST_CASE("without the timeline everything else stays") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomCase problem = testing::random_case(seed);
    INFO("seed " << seed << ' ' << problem);
    Execution expected = run(problem);
    expected.nodes.clear();
    expected.transfers.clear();
    problem.options.record_timeline = false;
    CHECK(run(problem) == expected);
  }
}

TEST_CASE("many assignments give the same makespans on any number of threads") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomCase problem = testing::random_case(seed);
    if (problem.graph.n_nodes() == 0) continue;
    INFO("seed " << seed << ' ' << problem);
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    testing::Draws draws(seed);
    std::vector<DeviceId> rows;
    std::vector<double> expected;
    for (int k = 0; k < 37; ++k) {
      const Assignment assignment =
          testing::random_assignment(draws, problem.graph.n_nodes(), problem.cluster.n_devices());
      rows.insert(rows.end(), assignment.devices.begin(), assignment.devices.end());
      expected.push_back(simulator.run(assignment).makespan);
      CHECK(simulator.makespan(assignment.devices) == expected.back());
    }
    for (const int threads : {1, 2, 5}) CHECK(simulator.makespans(rows, threads) == expected);
    CHECK(simulator.makespans({}, 2).empty());
  }
}

TEST_CASE("the makespan after a move is that of the moved assignment") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomCase problem = testing::random_case(seed);
    if (problem.graph.n_nodes() == 0) continue;
    INFO("seed " << seed << ' ' << problem);
    Simulator simulator(problem.graph, problem.cluster, problem.cost_model, problem.options);
    Simulator fresh(problem.graph, problem.cluster, problem.cost_model, problem.options);
    CHECK(simulator.set_base(problem.assignment.devices) ==
          fresh.makespan(problem.assignment.devices));
    testing::Draws draws(seed);
    for (int k = 0; k < 30; ++k) {
      const NodeId node = node_at(draws.below(problem.graph.n_nodes()));
      const DeviceId device{static_cast<std::int64_t>(draws.below(problem.cluster.n_devices()))};
      Assignment moved = problem.assignment;
      moved[node] = device;
      const double expected = fresh.makespan(moved.devices);
      CHECK(simulator.makespan_after_move(node, device) == expected);
      if (draws.chance(0.3)) {
        CHECK(simulator.accept_move(node, device) == expected);
        problem.assignment = moved;
      }
      // A run of something else in between does not disturb the base.
      if (draws.chance(0.1)) {
        CHECK(simulator.makespan(moved.devices) == expected);
        CHECK(simulator.run(moved).makespan == expected);
      }
    }
  }
}

Graph nodes_without_edges(std::size_t n) {
  GraphBuilder builder;
  Node node;
  node.name = "n";
  for (std::size_t v = 0; v < n; ++v) builder.add_node(node);
  builder.set_raw_compute(std::vector<double>(n, 1));
  return builder.build();
}

TEST_CASE("an empty graph, one node and nodes without edges run") {
  for (const Schedule schedule : {Schedule::work_conserving, Schedule::bulk_synchronous}) {
    for (const Network network : {Network::independent, Network::channel, Network::fair}) {
      RunOptions options;
      options.schedule = schedule;
      options.network = network;
      const Graph empty;
      Simulator none(empty, Cluster::uniform(3), CostModel::of(empty), options);
      const Execution execution = none.run(Assignment{});
      CHECK(execution.makespan == 0);
      CHECK(execution.nodes.empty());
      CHECK(execution.devices == std::vector<DeviceUse>(3));
      CHECK(none.makespan({}) == 0);

      Simulator one(nodes_without_edges(1), Cluster::uniform(3), CostModel::raw(), options);
      CHECK(one.run(Assignment(1, DeviceId{2})).makespan == 1);
      CHECK(one.run(Assignment(1, DeviceId{2})).devices[2].busy == 1);

      Simulator several(nodes_without_edges(7), Cluster::uniform(3), CostModel::raw(), options);
      Assignment assignment(7, DeviceId{0});
      CHECK(several.run(assignment).makespan == 7);
      for (std::size_t v = 0; v < 7; ++v) {
        assignment.devices[v] = DeviceId{static_cast<std::int64_t>(v % 3)};
      }
      CHECK(several.run(assignment).makespan == 3);
    }
  }
}

TEST_CASE("1024 devices: a tensor for each of them, by every network") {
  // A source whose tensor of 2 bytes all others read, each on a device of its own.
  GraphBuilder builder;
  Node node;
  node.name = "n";
  node.outputs.resize(1);
  node.outputs[0].bytes = 2;
  for (int v = 0; v < 1024; ++v) builder.add_node(node);
  for (int v = 1; v < 1024; ++v) builder.add_edge(NodeId{0}, NodeId{v});
  builder.set_raw_compute(std::vector<double>(1024, 1));
  const Graph graph = builder.build();
  Assignment assignment;
  for (int v = 0; v < 1024; ++v) assignment.devices.emplace_back(v);

  ClusterParts parts;
  parts.devices.resize(1024);
  parts.default_link.emplace();
  parts.default_link->bandwidth = 1;
  parts.default_link->channels = DefaultLink::Channels::egress;
  const Cluster shared(parts);
  const auto makespan = [&](const Cluster& cluster, Network network) {
    RunOptions options;
    options.network = network;
    return Simulator(graph, cluster, CostModel::raw(), options).run(assignment).makespan;
  };
  const Cluster own = Cluster::uniform(1024);
  CHECK(makespan(own, Network::independent) == 4);
  CHECK(makespan(own, Network::channel) == 4);
  CHECK(makespan(own, Network::fair) == 4);
  // One port: one after the other, or all at once with a 1023rd of it each.
  CHECK(makespan(shared, Network::independent) == 4);
  CHECK(makespan(shared, Network::channel) == 1 + 2 * 1023 + 1);
  CHECK_THAT(makespan(shared, Network::fair), WithinRel(1.0 + 2 * 1023 + 1, 1e-12));
}

}  // namespace
}  // namespace doppler
