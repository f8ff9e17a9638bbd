#include "graphs/lower_bound.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/literature.h"
#include "tests/support/random_cases.h"
#include "tests/support/reference_simulator.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinRel;

Graph raw_graph(const std::vector<double>& compute, const std::vector<std::pair<int, int>>& edges,
                std::size_t n_devices = 1) {
  GraphBuilder builder;
  for (std::size_t v = 0; v < compute.size() / n_devices; ++v) {
    Node node;
    node.name = "n" + std::to_string(v);
    node.outputs.resize(1);
    builder.add_node(node);
  }
  for (const auto& [producer, reader] : edges) builder.add_edge(NodeId{producer}, NodeId{reader});
  builder.set_raw_compute(compute, n_devices);
  return builder.build();
}

double bound_of(const Graph& graph, const Cluster& cluster) {
  return lower_bound(graph, cluster, CostTable(graph, cluster, CostModel::of(graph)));
}

// Two devices of two streams each.
Cluster two_streams() {
  ClusterParts parts;
  parts.devices.resize(2);
  for (Device& device : parts.devices) device.streams = 2;
  parts.default_link.emplace();
  return Cluster(parts);
}

// The least makespan over all assignments.
double least_makespan(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                      const RunOptions& options) {
  Assignment assignment(graph.n_nodes(), DeviceId{0});
  double least = std::numeric_limits<double>::infinity();
  for (bool more = true; more;) {
    least = std::min(
        least, testing::reference_run(graph, cluster, cost_model, assignment, options).makespan);
    more = false;
    for (DeviceId& device : assignment.devices) {
      if (device.index() + 1 < cluster.n_devices()) {
        ++device.value;
        more = true;
        break;
      }
      device.value = 0;
    }
  }
  return least;
}

TEST_CASE("the bound is the work of a slot, or the longest path of least compute") {
  CHECK(bound_of(Graph{}, Cluster::uniform(3)) == 0);
  CHECK_THAT(bound_of(raw_graph({4}, {}), Cluster::uniform(3)), WithinRel(4.0, 1e-12));
  CHECK_THAT(bound_of(raw_graph({1, 1, 1, 1, 1, 1}, {}), Cluster::uniform(2)),
             WithinRel(3.0, 1e-12));
  CHECK_THAT(bound_of(raw_graph({1, 1, 1, 1, 1, 1}, {}), two_streams()), WithinRel(1.5, 1e-12));
  CHECK_THAT(bound_of(raw_graph({1, 2, 3, 4}, {{0, 1}, {1, 2}, {2, 3}}), Cluster::uniform(4)),
             WithinRel(10.0, 1e-12));
  // Least compute of each node: 1 + 2.
  CHECK_THAT(bound_of(raw_graph({1, 9, 9, 2}, {{0, 1}}, 2), Cluster::uniform(2)),
             WithinRel(3.0, 1e-12));
}

TEST_CASE("what must come before and after wide work is added to it") {
  // A source of 1, six nodes of 1 and a sink of 1 on two devices: 1 + 3 + 1; longest path 3,
  // work 4.
  std::vector<std::pair<int, int>> edges;
  for (int v = 1; v <= 6; ++v) {
    edges.emplace_back(0, v);
    edges.emplace_back(v, 7);
  }
  CHECK_THAT(bound_of(raw_graph(std::vector<double>(8, 1), edges), Cluster::uniform(2)),
             WithinRel(5.0, 1e-12));
  // Two such stages behind one another, the sink of the first the source of the second.
  for (int v = 8; v <= 13; ++v) {
    edges.emplace_back(7, v);
    edges.emplace_back(v, 14);
  }
  CHECK_THAT(bound_of(raw_graph(std::vector<double>(15, 1), edges), Cluster::uniform(2)),
             WithinRel(9.0, 1e-12));
}

TEST_CASE("unequal devices share the work by their speed") {
  // Device 1 takes twice as long: 12 nodes, the best split is 8 and 4, makespan 8.
  std::vector<double> compute;
  for (int v = 0; v < 12; ++v) compute.insert(compute.end(), {1, 2});
  CHECK_THAT(bound_of(raw_graph(compute, {}, 2), Cluster::uniform(2)), WithinRel(8.0, 1e-12));
  // Half of the nodes are fast here, half there: each where it is fast is best, 6.
  compute.clear();
  for (int v = 0; v < 6; ++v) compute.insert(compute.end(), {1, 5});
  for (int v = 0; v < 6; ++v) compute.insert(compute.end(), {5, 1});
  CHECK_THAT(bound_of(raw_graph(compute, {}, 2), Cluster::uniform(2)), WithinRel(6.0, 1e-12));
  // Eight that only device 0 does well, and two for device 1: the best is 8, and moving a part of
  // a node elsewhere would save no more than 1 in 100.
  compute.clear();
  for (int v = 0; v < 8; ++v) compute.insert(compute.end(), {1, 100});
  for (int v = 0; v < 2; ++v) compute.insert(compute.end(), {1, 1});
  const double bound = bound_of(raw_graph(compute, {}, 2), Cluster::uniform(2));
  CHECK(bound <= 8 * (1 + 1e-12));
  CHECK(bound > 7.5);
}

TEST_CASE("below the bound means by more than 1e-9 relative") {
  CHECK(below_bound(1, 1.1));
  CHECK(below_bound(100 * (1 - 2e-9), 100));
  CHECK_FALSE(below_bound(100 * (1 - 0.5e-9), 100));
  CHECK_FALSE(below_bound(100, 100));
  CHECK_FALSE(below_bound(101, 100));
  CHECK_FALSE(below_bound(0, 0));
  CHECK_FALSE(below_bound(std::numeric_limits<double>::infinity(), 100));
}

TEST_CASE("no assignment beats the bound under any network, choice, schedule or placement") {
  testing::CaseLimits limits;
  limits.max_nodes = 6;
  limits.max_devices = 3;
  limits.noise = false;
  std::size_t n_tight = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    testing::RandomCase problem = testing::random_case(seed + 1000, limits);
    const CostTable costs(problem.graph, problem.cluster, problem.cost_model);
    const double bound = lower_bound(problem.graph, problem.cluster, costs);
    // Not below the two simple bounds.
    double path = 0;
    double work = 0;
    std::vector<double> end(problem.graph.n_nodes());
    for (const NodeId node : problem.graph.topological_order()) {
      for (const NodeId before : problem.graph.predecessors(node)) {
        end[node.index()] = std::max(end[node.index()], end[before.index()]);
      }
      end[node.index()] += costs.least[node.index()];
      path = std::max(path, end[node.index()]);
      work += costs.least[node.index()];
    }
    INFO("seed " << seed << ' ' << problem << "bound " << bound);
    CHECK_FALSE(below_bound(bound, path));
    CHECK_FALSE(below_bound(bound, work / static_cast<double>(problem.cluster.total_slots())));

    double best = std::numeric_limits<double>::infinity();
    problem.options.enforce_memory = false;
    for (const Network network : {Network::independent, Network::channel, Network::fair}) {
      for (const Schedule schedule : {Schedule::work_conserving, Schedule::bulk_synchronous}) {
        for (const Choice choice : {Choice::fifo, Choice::priority, Choice::random}) {
          // Every rule on few nodes; on many, one for each network and schedule.
          if (problem.graph.n_nodes() > 4 && choice != problem.options.choice) continue;
          RunOptions options = problem.options;
          options.network = network;
          options.schedule = schedule;
          options.choice = choice;
          options.record_timeline = false;
          best = std::min(
              best, least_makespan(problem.graph, problem.cluster, problem.cost_model, options));
        }
      }
    }
    CHECK_FALSE(below_bound(best, bound));
    if (best <= bound * (1 + 1e-9)) ++n_tight;
  }
  // A bound that is never reached would say little.
  CHECK(n_tight > 300);
}

TEST_CASE("the literature's optimum is not beaten by the bound") {
  const auto example = testing::literature_example();
  if (!example) return;
  const double bound = bound_of(example->graph, Cluster::uniform(3));
  CHECK(bound <= example->optimum);
  CHECK(bound >= 41);  // the longest path of least compute: 9 + 13 + 12 + 7
}

TEST_CASE("many nodes keep the bound exact to rounding") {
  // A chain of stages: one node, then many that run side by side.
  GraphBuilder builder;
  constexpr int kStages = 200;
  constexpr int kWide = 399;
  builder.reserve(kStages * (kWide + 1), kStages * kWide * 2);
  std::vector<double> compute;
  NodeId gate;
  for (int stage = 0; stage < kStages; ++stage) {
    Node node;
    node.name = "n";
    node.outputs.resize(1);
    const NodeId next = builder.add_node(node);
    compute.push_back(0.1);
    for (int i = 0; stage > 0 && i < kWide; ++i) {
      builder.add_edge(NodeId{next.value - kWide + i}, next);
    }
    gate = next;
    for (int i = 0; i < kWide; ++i) {
      builder.add_edge(gate, builder.add_node(node));
      compute.push_back(0.3);
    }
  }
  builder.set_raw_compute(compute);
  const Graph graph = builder.build();
  CHECK_THAT(bound_of(graph, Cluster::uniform(4)),
             WithinRel(kStages * (0.1 + kWide * 0.3 / 4), 1e-11));
}

}  // namespace
}  // namespace doppler
