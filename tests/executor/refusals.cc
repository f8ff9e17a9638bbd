// What a simulator refuses leaves it as it was.
#include <vector>

#include "executor/simulator/simulator.h"
#include "graphs/error.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

// An assignment whose only fault is the device of one node.
std::vector<DeviceId> with_fault(std::vector<DeviceId> devices, std::size_t node,
                                 std::int64_t device) {
  devices[node] = DeviceId{device};
  return devices;
}

TEST_CASE("A base that is refused leaves the base before it, or none") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const testing::RandomCase c = testing::random_case(seed);
    const std::size_t n_nodes = c.graph.n_nodes();
    if (n_nodes == 0) continue;
    CAPTURE(seed);
    const auto n_devices = static_cast<std::int64_t>(c.cluster.n_devices());
    const std::vector<DeviceId>& devices = c.assignment.devices;
    const std::vector<std::vector<DeviceId>> refused = {
        with_fault(devices, n_nodes - 1, n_devices),
        with_fault(devices, n_nodes / 2, -1),
        std::vector<DeviceId>(n_nodes, DeviceId{1'000'000}),
        std::vector<DeviceId>(n_nodes + 1, DeviceId{0}),
        {}};
    const NodeId node(static_cast<std::int64_t>(seed % n_nodes));
    const DeviceId device(static_cast<std::int64_t>(seed) % n_devices);

    Simulator simulator(c.graph, c.cluster, c.cost_model, c.options);
    for (const auto& fault : refused) {
      CHECK_THROWS_AS(simulator.set_base(fault), InvalidError);
      CHECK_THROWS_AS(simulator.makespan_after_move(node, device), UsageError);
      CHECK_THROWS_AS(simulator.accept_move(node, device), UsageError);
    }
    const double before = simulator.set_base(devices);
    std::vector<DeviceId> changed = devices;
    changed[node.index()] = device;
    const double after = simulator.makespan(changed);
    for (const auto& fault : refused) {
      CHECK_THROWS_AS(simulator.set_base(fault), InvalidError);
      CHECK_THROWS_AS(simulator.accept_move(node, DeviceId{n_devices}), InvalidError);
      CHECK_THROWS_AS(simulator.accept_move(NodeId{-1}, device), InvalidError);
      CHECK(simulator.makespan_after_move(node, device) == after);
      CHECK(simulator.makespan_after_move(node, devices[node.index()]) == before);
    }
    CHECK(simulator.accept_move(node, device) == after);
  }
}

}  // namespace
}  // namespace doppler
