// What is fitted to executions, against engines whose times are known: the simulator.
#include <cmath>
#include <string>
#include <vector>

#include "datasets/tasks.h"
#include "executor/calibration/fit.h"
#include "executor/calibration/measure.h"
#include "executor/engine.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("A line of transfer times is found again, and figures are never negative") {
  std::vector<TransferTime> transfers;
  for (const double bytes : {0.0, 1e3, 1e5, 1e7}) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      // One in three is disturbed; medians do not see it.
      transfers.push_back({bytes, (2e-5 + bytes / 5e9) * (repeat == 1 ? 9 : 1)});
    }
  }
  const Profile::LinkTime link = fit_link(transfers);
  CHECK_THAT(link.latency, WithinRel(2e-5, 1e-9));
  CHECK_THAT(link.bandwidth, WithinRel(5e9, 1e-9));

  // One size: all of it is bandwidth. No bytes: all of it is latency.
  const Profile::LinkTime one_size = fit_link(std::vector<TransferTime>{{1e6, 1e-3}, {1e6, 1e-3}});
  CHECK(one_size.latency == 0);
  CHECK_THAT(one_size.bandwidth, WithinRel(1e9, 1e-12));
  const Profile::LinkTime no_bytes = fit_link(std::vector<TransferTime>{{0, 3e-6}});
  CHECK_THAT(no_bytes.latency, WithinRel(3e-6, 1e-12));
  CHECK(no_bytes.bandwidth == kUnlimited);
  // Larger is faster: the least bad that there can be is a latency alone.
  const Profile::LinkTime falling = fit_link(std::vector<TransferTime>{{1e3, 2e-3}, {1e6, 1e-3}});
  CHECK(falling.latency > 0);
  CHECK(falling.bandwidth == kUnlimited);
  // A line through two points would begin below 0.
  const Profile::LinkTime steep = fit_link(std::vector<TransferTime>{{1e3, 1e-6}, {2e3, 3e-6}});
  CHECK(steep.latency == 0);
  CHECK(steep.bandwidth > 0);
  CHECK(fit_link({}) == Profile::LinkTime{});
}

TEST_CASE("A profile fitted to simulated executions has the times that were simulated") {
  const Task task = make_task("llama-block(sequence=64,width=32,heads=4,hidden=48)@v100x8");
  Simulator simulator = task.simulator();
  testing::Draws draws(3);
  std::vector<Execution> executions;
  for (int i = 0; i < 4; ++i) {
    executions.push_back(simulator.run(testing::random_assignment(draws, task.graph.n_nodes(), 8)));
  }
  const Profile profile = fit_profile(task.graph, task.cluster, executions);
  const CostModel costs = CostModel::measured(profile);
  for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    const auto& times = profile.compute.at("v100");
    REQUIRE(times.contains(Profile::signature(task.graph, node)));
    CHECK_THAT(
        costs.compute(task.graph, node, task.cluster, DeviceId(0)),
        WithinRel(task.cost_model.compute(task.graph, node, task.cluster, DeviceId(0)), 1e-6));
  }
  // And so has every makespan.
  Simulator fitted(task.graph, task.cluster, costs, task.options);
  const Assignment other = testing::random_assignment(draws, task.graph.n_nodes(), 8);
  CHECK_THAT(fitted.run(other).makespan, WithinRel(simulator.run(other).makespan, 0.02));

  Execution bare = executions.front();
  bare.nodes.clear();
  CHECK_THROWS_AS(fit_profile(task.graph, task.cluster, {&bare, 1}), InvalidError);
}

TEST_CASE("A measured profile has the times of its engine") {
  const Task task = make_task("chainmm(n=64,shards=2)@mixed");
  const auto engine = make_engine("simulator");
  const Profile profile = measure_profile(*engine, task.graph, task.cluster);
  const CostModel costs = CostModel::measured(profile);
  CHECK(profile.compute.size() == 2);
  for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    for (std::int64_t d = 0; d < 4; ++d) {
      CHECK_THAT(
          costs.compute(task.graph, node, task.cluster, DeviceId(d)),
          WithinRel(task.cost_model.compute(task.graph, node, task.cluster, DeviceId(d)), 1e-6));
      for (std::int64_t to = 0; to < 4; ++to) {
        if (to == d) continue;
        const Route measured = costs.route(task.cluster, DeviceId(d), DeviceId(to));
        const Route route = task.cluster.route(DeviceId(d), DeviceId(to));
        CHECK_THAT(measured.latency, WithinRel(route.latency, 1e-6));
        CHECK_THAT(measured.bandwidth, WithinRel(route.bandwidth, 1e-6));
      }
    }
  }
}

// A machine whose figures are known, whatever cluster it is asked to be.
class KnownMachine final : public Engine {
 public:
  explicit KnownMachine(Cluster truth) : truth_(std::move(truth)) {}
  Execution run(const Graph& graph, const Cluster& cluster, const CostModel& costs,
                const Assignment& assignment, const RunOptions& options) override {
    REQUIRE(cluster.n_devices() == truth_.n_devices());
    return Simulator(graph, truth_, costs, options).run(assignment);
  }

 private:
  Cluster truth_;
};

TEST_CASE("A measured cluster has the figures of the machine") {
  ClusterParts parts;
  Device device{.kind = "cpu"};
  device.flops = {{DType::float32, 41e9}};
  device.bandwidth = 12e9;
  device.launch_overhead = 3e-7;
  parts.devices.assign(3, device);
  parts.default_link = DefaultLink{.latency = 8e-6, .bandwidth = 9e9};
  KnownMachine machine{Cluster(parts)};
  const Cluster measured = measure_cluster(machine, "cpu", 3, 2e9);
  REQUIRE(measured.n_devices() == 3);
  const Device& found = measured.device(DeviceId(2));
  CHECK(found.kind == "cpu");
  CHECK(found.memory == 2e9);
  CHECK_THAT(found.flops.at(DType::float32), WithinRel(41e9, 1e-6));
  CHECK_THAT(found.bandwidth, WithinRel(12e9, 1e-6));
  CHECK_THAT(found.launch_overhead, WithinRel(3e-7, 1e-6));
  const Route route = measured.route(DeviceId(0), DeviceId(2));
  CHECK_THAT(route.latency, WithinRel(8e-6, 1e-6));
  CHECK_THAT(route.bandwidth, WithinRel(9e9, 1e-6));
  CHECK(measured.parts().enforce_memory);
  CHECK_THROWS_AS(measure_cluster(machine, "cpu", 17, 1), UsageError);
}

TEST_CASE("A graph too large for one device is measured on all of its kind") {
  const Task task = make_task("chainmm(n=64,shards=2)@uniform(2)");
  // Room for what is needed at once, so that one device is too small and two are not.
  class Small final : public Engine {
   public:
    Execution run(const Graph& graph, const Cluster& cluster, const CostModel& costs,
                  const Assignment& assignment, const RunOptions& options) override {
      const auto first = assignment.devices.front();
      bool spread = false;
      for (const DeviceId d : assignment.devices) spread = spread || d != first;
      if (!spread && graph.n_nodes() > 1 && graph.name() == "chainmm") {
        throw OutOfMemoryError({}, "too small");
      }
      return Simulator(graph, cluster, costs, options).run(assignment);
    }
  } engine;
  const Profile profile = measure_profile(engine, task.graph, task.cluster);
  CHECK(profile.compute.at("uniform").size() > 0);
}

}  // namespace
}  // namespace doppler
