// The engine "simulator" as a system that departs from its cost model.
#include <algorithm>
#include <cmath>

#include "executor/engine.h"
#include "executor/simulator/simulator.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

// Two nodes of 3 and 4 s; the second reads 8 bytes of the first.
Graph two_nodes() {
  GraphBuilder builder("two");
  builder.add_node({.name = "a", .outputs = {{.bytes = 8}}});
  builder.add_node({.name = "b"});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.set_raw_compute({3, 4});
  return builder.build();
}

// Devices of latency 1 s, bandwidth 2 bytes/s.
Cluster pair(DefaultLink::Channels channels = DefaultLink::Channels::own) {
  return Cluster(ClusterParts{
      .devices = {{.kind = "x"}, {.kind = "x"}},
      .default_link = DefaultLink{.latency = 1, .bandwidth = 2, .channels = channels}});
}

double makespan(const std::string& engine, const RunOptions& options = {}) {
  return make_engine(engine)
      ->run(two_nodes(), pair(), CostModel::raw(), Assignment({DeviceId{0}, DeviceId{1}}), options)
      .makespan;
}

TEST_CASE("an altered simulator follows the formula of what was altered") {
  CHECK(makespan("simulator") == 3 + (1 + 8 / 2.0) + 4);
  CHECK(makespan("simulator(bandwidth=0.25)") == 3 + (1 + 8 / 0.5) + 4);
  CHECK(makespan("simulator(latency=3)") == 3 + (3 + 8 / 2.0) + 4);
  CHECK(makespan("simulator(slow_device=0,slowdown=2)") == 6 + (1 + 8 / 2.0) + 4);
  CHECK(makespan("simulator(slow_device=1,slowdown=2)") == 3 + (1 + 8 / 2.0) + 8);
  for (Network network : {Network::independent, Network::channel, Network::fair}) {
    CHECK(makespan("simulator(bandwidth=2,latency=0.5)", {.network = network}) ==
          3 + (0.5 + 8 / 4.0) + 4);
  }
}

TEST_CASE("its noise takes the place of the task's, with the luck of the task's seed") {
  const RunOptions noisy = {.noise = 0.3, .seed = 5};
  CHECK(makespan("simulator(noise=0.3)", {.seed = 5}) == makespan("simulator", noisy));
  CHECK(makespan("simulator(noise=0.1)", noisy) ==
        makespan("simulator", {.noise = 0.1, .seed = 5}));
}

TEST_CASE("channels that transfers share become slower with the links") {
  GraphBuilder builder("fork");
  builder.add_node({.name = "a", .outputs = {{.bytes = 8}, {.bytes = 8}}});
  for (const char* name : {"b", "c"}) builder.add_node({.name = name});
  builder.add_edge(NodeId{0}, NodeId{1}, 0);
  builder.add_edge(NodeId{0}, NodeId{2}, 1);
  builder.set_raw_compute({1, 1, 1});
  const Graph graph = builder.build();
  const Cluster shared = pair(DefaultLink::Channels::egress);
  const Assignment apart({DeviceId{0}, DeviceId{1}, DeviceId{1}});
  const auto run = [&](const std::string& engine) {
    return make_engine(engine)
        ->run(graph, shared, CostModel::raw(), apart, {.network = Network::fair})
        .makespan;
  };
  // Both tensors share the capacity 2: 8 s, or 32 s at a quarter of it; then two nodes of 1 s.
  CHECK(run("simulator") == 1 + (1 + 8) + 2);
  CHECK(run("simulator(bandwidth=0.25)") == 1 + (1 + 32) + 2);
}

TEST_CASE("a slow device that the cluster does not have is refused") {
  CHECK_THROWS_WITH(makespan("simulator(slow_device=2,slowdown=2)"),
                    Catch::Contains("slow_device is 2") && Catch::Contains("2 devices"));
  CHECK_THROWS_AS(make_engine("simulator(bandwidth=0)"), UsageError);
}

}  // namespace
}  // namespace doppler
