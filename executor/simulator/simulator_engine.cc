#include "executor/simulator/simulator_engine.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "executor/simulator/simulator.h"

namespace doppler {
namespace {

// How the simulated system departs from what it is given.
struct Departure {
  double bandwidth = 1;  // factor of all bandwidths and channel capacities
  double latency = 1;
  std::int64_t slow_device = -1;  // -1: none
  double slowdown = 1;            // factor of its compute times
  double noise = 0;               // 0: as RunOptions say

  [[nodiscard]] bool any() const {
    return bandwidth != 1 || latency != 1 || slow_device >= 0 || noise > 0;
  }
};

class SimulatorEngine final : public Engine {
 public:
  explicit SimulatorEngine(const Departure& departure) : departure_(departure) {}

  Execution run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                const Assignment& assignment, const RunOptions& options) override {
    if (!departure_.any()) return Simulator(graph, cluster, cost_model, options).run(assignment);
    RunOptions changed = options;
    if (departure_.noise > 0) changed.noise = departure_.noise;
    return Simulator(graph, with_capacities(cluster), changed_costs(cluster, cost_model),
                     std::move(changed))
        .run(assignment);
  }

 private:
  [[nodiscard]] Cluster with_capacities(const Cluster& cluster) const {
    if (departure_.bandwidth == 1) return cluster;
    ClusterParts parts = cluster.parts();
    for (Channel& channel : parts.channels) channel.capacity *= departure_.bandwidth;
    if (parts.default_link) {
      DefaultLink& link = *parts.default_link;
      const double capacity = std::isinf(link.capacity) ? link.bandwidth : link.capacity;
      link.capacity = capacity * departure_.bandwidth;
    }
    return Cluster(std::move(parts));
  }

  [[nodiscard]] CostModel changed_costs(const Cluster& cluster, const CostModel& costs) const {
    const std::size_t n_devices = cluster.n_devices();
    CostScales scales = costs.scales();
    const auto scale_links = [&](double factor, std::vector<double>& factors) {
      if (factor == 1) return;
      if (factors.empty()) factors.assign(n_devices * n_devices, 1);
      for (double& f : factors) f *= factor;
    };
    scale_links(departure_.bandwidth, scales.bandwidth);
    scale_links(departure_.latency, scales.latency);
    if (departure_.slow_device >= 0) {
      if (departure_.slow_device >= static_cast<std::int64_t>(n_devices)) {
        throw InvalidError("slow_device is " + std::to_string(departure_.slow_device) +
                           ", but the cluster has " + std::to_string(n_devices) +
                           " devices, numbered from 0");
      }
      if (scales.compute.empty()) scales.compute.assign(n_devices, 1);
      for (auto i = static_cast<std::size_t>(departure_.slow_device); i < scales.compute.size();
           i += n_devices) {
        scales.compute[i] *= departure_.slowdown;
      }
    }
    return costs.scaled(std::move(scales));
  }

  Departure departure_;
};

ParameterSpec factor(std::string name, std::string summary) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .default_value = 1.0,
          .minimum = 1e-6,
          .maximum = 1e6};
}

}  // namespace

EngineEntry simulator_engine_entry() {
  EngineEntry entry;
  entry.name = "simulator";
  entry.summary = "discrete-event simulation of a work-conserving system";
  entry.source = "DOPPLER paper, section 4.1 (work-conserving execution)";
  entry.parameters = {factor("bandwidth", "factor of every bandwidth and channel capacity"),
                      factor("latency", "factor of every latency"),
                      {.name = "slow_device",
                       .summary = "a device that departs from its cost model; -1: none",
                       .default_value = std::int64_t{-1},
                       .minimum = -1,
                       .maximum = static_cast<double>(kMaxDevices)},
                      factor("slowdown", "factor of the compute times of slow_device"),
                      {.name = "noise",
                       .summary = "of every duration, in place of the task's; 0: the task's",
                       .default_value = 0.0,
                       .minimum = 0,
                       .maximum = 10}};
  entry.make = [](const Parameters& parameters) -> std::unique_ptr<Engine> {
    return std::make_unique<SimulatorEngine>(
        Departure{.bandwidth = parameters.get<double>("bandwidth"),
                  .latency = parameters.get<double>("latency"),
                  .slow_device = parameters.get<std::int64_t>("slow_device"),
                  .slowdown = parameters.get<double>("slowdown"),
                  .noise = parameters.get<double>("noise")});
  };
  return entry;
}

}  // namespace doppler
