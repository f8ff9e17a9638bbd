// HEFT beside a second one that looks at every interval, one after the other.
#include <algorithm>
#include <limits>
#include <utility>

#include "agents/agent.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using Busy = std::vector<std::pair<double, double>>;  // of a slot, by time

double earliest(const Busy& busy, double ready, double seconds) {
  double start = ready;
  for (const auto& [begin, end] : busy) {
    if (end <= ready) continue;
    if (start + seconds <= begin) break;
    start = end;
  }
  return start;
}

Assignment slow_heft(const Task& task) {
  const PlacementModel model(task);
  std::vector<std::pair<DeviceId, Busy>> slots;
  for (std::size_t d = 0; d < model.n_devices(); ++d) {
    const DeviceId device(static_cast<std::int64_t>(d));
    slots.resize(slots.size() + static_cast<std::size_t>(task.cluster.device(device).streams),
                 {device, Busy{}});
  }
  Assignment assignment(model.n_nodes(), DeviceId{0});
  std::vector<double> ends(model.n_nodes(), 0);
  for (NodeId node : model.b_level_order()) {
    double best = std::numeric_limits<double>::infinity();
    double best_start = 0;
    std::size_t best_slot = 0;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const DeviceId device = slots[s].first;
      double ready = 0;
      for (const PlacementModel::Feed& feed : model.feeds(node)) {
        ready = std::max(ready, ends[feed.producer.index()] +
                                    model.transfer(feed.bytes, assignment[feed.producer], device));
      }
      const double seconds = model.costs().compute(node, device);
      const double start = earliest(slots[s].second, ready, seconds);
      if (start + seconds >= best) continue;
      best = start + seconds;
      best_start = start;
      best_slot = s;
    }
    assignment[node] = slots[best_slot].first;
    ends[node.index()] = best;
    if (best_start == best) continue;
    Busy& busy = slots[best_slot].second;
    busy.emplace_back(best_start, best);
    std::sort(busy.begin(), busy.end());
  }
  return assignment;
}

TEST_CASE("HEFT's gaps are those of a search through every interval, zero-cost nodes included") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    // Integers: nodes without a pause between them are frequent.
    const testing::RandomCase c =
        testing::random_case(seed, {.max_nodes = 60, .max_devices = 4, .integers = seed % 3 != 0});
    const Task task{.name = "random",
                    .graph = c.graph,
                    .cluster = c.cluster,
                    .cost_model = c.cost_model,
                    .options = c.options};
    CHECK(assign(*make_agent("heft"), task).assignment == slow_heft(task));
  }
}

TEST_CASE("HEFT on millions of slots is HEFT on a slot a node") {
  testing::Draws draws(7);
  const Graph graph = testing::random_graph(draws, 2);
  const auto place = [&](std::size_t n_devices, std::int32_t streams) {
    Cluster cluster({.name = "slots",
                     .devices = std::vector<Device>(n_devices, {.kind = "k", .streams = streams}),
                     .default_link = DefaultLink{.bandwidth = 1}});
    CostModel costs = graph.raw_devices() > 1 ? CostModel() : CostModel::of(graph);
    const Task task{.name = "slots", .graph = graph, .cluster = cluster, .cost_model = costs};
    return assign(*make_agent("heft"), task).assignment;
  };
  const auto n_nodes = static_cast<std::int32_t>(graph.n_nodes());
  // Eight million slots; a list of them for each would be gigabytes.
  constexpr std::size_t kDevices = 2048;
  CHECK(place(kDevices, kMaxStreams) == place(kDevices, std::max(1, n_nodes)));
}

}  // namespace
}  // namespace doppler
