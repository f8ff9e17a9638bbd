// The fast path without events gives what the event loop gives, bit for bit, wherever it applies.
#include "executor/simulator/list_scheduler.h"

#include "executor/simulator/event_loop.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler::simulation {
namespace {

using testing::Draws;

// A random case made fit for the fast path: positive costs of few distinct values, so that instants
// often coincide, and no contention.
Model fast_model(Draws& draws, std::size_t n_devices) {
  Graph graph = testing::random_graph(draws, n_devices, {.max_nodes = 60});
  std::vector<Device> devices;
  for (std::size_t d = 0; d < n_devices; ++d) {
    devices.push_back({.kind = "d" + std::to_string(d),
                       .flops = {{DType::float32, static_cast<double>(draws.between(1, 2))}},
                       .launch_overhead = 1,
                       .streams = static_cast<std::int32_t>(draws.between(1, 3))});
  }
  Cluster cluster({.name = "fast",
                   .devices = std::move(devices),
                   .default_link = DefaultLink{.latency = 1, .bandwidth = 2}});
  const auto choice = static_cast<Choice>(draws.below(3));
  return {std::move(graph),
          std::move(cluster),
          CostModel::analytical(),
          {.network = Network::independent, .choice = choice}};
}

TEST_CASE("list scheduling agrees with the event loop, and resumed runs with whole ones") {
  std::size_t n_resumed = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Draws draws(seed);
    const auto n_devices = static_cast<std::size_t>(draws.between(1, 5));
    const Model model = fast_model(draws, n_devices);
    CAPTURE(seed, model.options, model.graph);
    REQUIRE(ListScheduler::applies(model));
    EventLoop events(model);
    ListScheduler fast(model);
    Timeline timeline;
    std::vector<std::int32_t> devices(model.n_nodes);
    for (auto& device : devices) device = static_cast<std::int32_t>(draws.below(n_devices));
    events.run(devices, seed, timeline);
    REQUIRE(fast.makespan(devices, seed) == timeline.makespan);
    if (!fast.can_resume() || model.n_nodes == 0) continue;
    REQUIRE(fast.set_base(devices) == timeline.makespan);
    for (int i = 0; i < 10; ++i) {
      const std::size_t position = draws.below(model.n_nodes);
      const auto device = static_cast<std::int32_t>(draws.below(n_devices));
      auto moved = devices;
      moved[position] = device;
      events.run(moved, seed, timeline);
      REQUIRE(fast.after_move(position, device) == timeline.makespan);
      ++n_resumed;
    }
  }
  CHECK(n_resumed > 3000);
}

TEST_CASE("the fast path is refused where a duration could vanish in rounding") {
  GraphBuilder builder;
  builder.add_node({.name = "a", .flops = 1, .outputs = {{.bytes = 1}}});
  builder.add_node({.name = "b", .flops = 1});
  builder.add_edge(NodeId{0}, NodeId{1});
  const Graph graph = builder.build();
  const auto applies = [&](double overhead, double latency) {
    Cluster cluster({.name = "two",
                     .devices = {{.kind = "a", .launch_overhead = overhead}, {.kind = "b"}},
                     .default_link = DefaultLink{.latency = latency}});
    return ListScheduler::applies(
        {graph, cluster, CostModel::analytical(), {.network = Network::independent}});
  };
  CHECK(applies(1, 1));
  CHECK_FALSE(applies(1e300, 1));
  CHECK_FALSE(applies(0, 0));
}

}  // namespace
}  // namespace doppler::simulation
