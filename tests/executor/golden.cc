// Makespans and starts that others found: the golden data and the literature's example. The
// reference simulator and the simulator proper both have to give them.
#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/simulator/simulator.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/literature.h"
#include "tests/support/reference.h"
#include "tests/support/reference_simulator.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

using Runner = std::function<Execution(const Graph&, const Cluster&, const CostModel&,
                                       const Assignment&, const RunOptions&)>;

Execution simulator_run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                        const Assignment& assignment, const RunOptions& options) {
  return Simulator(graph, cluster, cost_model, options).run(assignment);
}

Graph golden_graph(const nlohmann::json& json) {
  GraphBuilder builder(json.at("graph").get<std::string>());
  std::vector<double> compute;
  for (const auto& entry : json.at("nodes")) {
    Node node;
    node.name = "n" + std::to_string(builder.n_nodes());
    node.outputs.resize(1);
    node.outputs[0].bytes = entry.at("output").get<double>();
    compute.push_back(entry.at("compute").get<double>());
    builder.add_node(node);
  }
  for (const auto& edge : json.at("edges")) {
    builder.add_edge(NodeId{edge.at(0).get<std::int64_t>()},
                     NodeId{edge.at(1).get<std::int64_t>()});
  }
  builder.set_raw_compute(compute);
  return builder.build();
}

void check_golden(const Runner& run) {
  const auto path = testing::reference_file("golden/makespans.json");
  if (!path) return;
  std::ifstream file(*path);
  std::size_t n_cases = 0;
  for (const auto& json : nlohmann::json::parse(file)) {
    const Graph graph = golden_graph(json);
    const Cluster cluster = Cluster::uniform(json.at("num_devices").get<std::int64_t>());
    for (const auto& entry : json.at("cases")) {
      Assignment assignment;
      for (const auto& device : entry.at("assignment")) {
        assignment.devices.emplace_back(device.get<std::int64_t>());
      }
      RunOptions options;
      options.network = Network::independent;
      INFO(graph.name() << ", " << entry.at("kind") << ", case " << n_cases);
      const Execution execution = run(graph, cluster, CostModel::raw(), assignment, options);
      CHECK_THAT(execution.makespan, WithinRel(entry.at("makespan").get<double>(), 1e-12));
      ++n_cases;
    }
  }
  CHECK(n_cases == 188);
}

void check_heft(const Runner& run) {
  const auto example = testing::literature_example();
  if (!example) return;
  for (const Choice choice : {Choice::fifo, Choice::priority}) {
    RunOptions options;
    options.network = Network::independent;
    options.choice = choice;
    const Execution execution =
        run(example->graph, Cluster::uniform(3), CostModel::raw(), example->heft, options);
    CHECK_THAT(execution.makespan, WithinAbs(example->heft_makespan, 1e-9));
    REQUIRE(execution.nodes.size() == example->heft_start.size());
    for (std::size_t v = 0; v < execution.nodes.size(); ++v) {
      INFO("node " << v);
      CHECK_THAT(execution.nodes[v].start, WithinAbs(example->heft_start[v], 1e-9));
    }
  }
}

// Every assignment of the example, row-major.
std::vector<DeviceId> all_assignments(const testing::LiteratureExample& example) {
  const std::size_t n = example.graph.n_nodes();
  std::size_t count = 1;
  for (std::size_t v = 0; v < n; ++v) count *= 3;
  std::vector<DeviceId> all;
  all.reserve(count * n);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t v = 0, rest = k; v < n; ++v, rest /= 3) {
      all.emplace_back(static_cast<std::int64_t>(rest % 3));
    }
  }
  return all;
}

TEST_CASE("the reference simulator gives every golden makespan") {
  check_golden(testing::reference_run);
}

TEST_CASE("the simulator gives every golden makespan") { check_golden(simulator_run); }

TEST_CASE("the reference simulator gives HEFT's published starts") {
  check_heft(testing::reference_run);
}

TEST_CASE("the simulator gives HEFT's published starts") { check_heft(simulator_run); }

TEST_CASE("the best of all assignments of the literature's example is its optimum") {
  const auto example = testing::literature_example();
  if (!example) return;
  const std::vector<DeviceId> all = all_assignments(*example);
  const std::size_t n = example->graph.n_nodes();
  for (const Choice choice : {Choice::fifo, Choice::priority}) {
    RunOptions options;
    options.network = Network::independent;
    options.choice = choice;
    options.record_timeline = false;
    Simulator simulator(example->graph, Cluster::uniform(3), CostModel::raw(), options);
    const std::vector<double> makespans = simulator.makespans(all);
    REQUIRE(makespans.size() * n == all.size());
    CHECK_THAT(*std::min_element(makespans.begin(), makespans.end()),
               WithinAbs(example->optimum, 1e-9));
    // The reference simulator agrees on a sample of them that steps through all parts.
    for (std::size_t k = 0; k < makespans.size(); k += 97) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(k * n);
      const Assignment assignment(
          std::vector<DeviceId>(first, first + static_cast<std::ptrdiff_t>(n)));
      const Execution slow = testing::reference_run(example->graph, Cluster::uniform(3),
                                                    CostModel::raw(), assignment, options);
      CHECK(slow.makespan == makespans[k]);
    }
  }
}

TEST_CASE("the reference simulator finds the literature's optimum among all assignments") {
  const auto example = testing::literature_example();
  if (!example) return;
  const std::size_t n = example->graph.n_nodes();
  const std::vector<DeviceId> all = all_assignments(*example);
  RunOptions options;
  options.network = Network::independent;
  double best = std::numeric_limits<double>::infinity();
  for (auto first = all.begin(); first != all.end(); first += static_cast<std::ptrdiff_t>(n)) {
    const Assignment assignment(
        std::vector<DeviceId>(first, first + static_cast<std::ptrdiff_t>(n)));
    best = std::min(best, testing::reference_run(example->graph, Cluster::uniform(3),
                                                 CostModel::raw(), assignment, options)
                              .makespan);
  }
  CHECK_THAT(best, WithinAbs(example->optimum, 1e-9));
}

}  // namespace
}  // namespace doppler
