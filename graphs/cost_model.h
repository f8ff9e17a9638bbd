// Seconds for nodes and transfers.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graphs/cluster.h"
#include "graphs/graph.h"

namespace doppler {

// A measured profile, as `doppler-gym profile` writes it: seconds by node signature and device
// kind.
struct Profile {
  // The signature of a node: its kind, dtype, FLOPs, bytes read and written, first output's shape.
  static std::string signature(const Graph& graph, NodeId node);

  struct LinkTime {
    double latency = 0;             // seconds; >= 0
    double bandwidth = kUnlimited;  // bytes/s; > 0
    friend bool operator==(const LinkTime&, const LinkTime&) = default;
  };
  std::map<std::string, std::map<std::string, double>> compute;  // [device kind][signature] seconds
  std::map<std::pair<DeviceId, DeviceId>, LinkTime> links;       // those measured; others as routed
  friend bool operator==(const Profile&, const Profile&) = default;
};

// By what factors a system departs from its cost model: seconds of compute, latency and bandwidth
// are multiplied. Every factor is above 0.
struct CostScales {
  std::vector<double> compute = {};    // [n_devices] or [n_nodes, n_devices]; empty: 1
  std::vector<double> latency = {};    // [n_devices, n_devices] from, to; empty: 1
  std::vector<double> bandwidth = {};  // the same

  // The factor of `node` on `device`, on a cluster of `n_devices`.
  [[nodiscard]] double of(NodeId node, DeviceId device, std::size_t n_devices) const {
    if (compute.empty()) return 1;
    const std::size_t row = compute.size() == n_devices ? 0 : node.index() * n_devices;
    return compute[row + device.index()];
  }
  friend bool operator==(const CostScales&, const CostScales&) = default;
};

// Where the seconds come from. A regular value; const members are thread safe.
//   analytical: launch overhead + max(FLOPs / effective rate, (bytes read + written) / bandwidth)
//   profile: measured seconds; a node without a measurement falls back to analytical
//   raw: the graph's own numbers (Graph::raw_compute), the same on every device or one a device
// A transfer of x bytes over a route takes latency + x / bandwidth in each. Scales multiply them.
class CostModel {
 public:
  enum class Kind : std::uint8_t { analytical, profile, raw };

  CostModel() = default;  // analytical
  static CostModel analytical() { return {}; }
  static CostModel raw();
  // Throws InvalidError for times or bandwidths that a profile cannot hold.
  static CostModel measured(Profile profile);
  // raw if the graph carries raw costs, analytical otherwise.
  static CostModel of(const Graph& graph);
  // This model with these scales in place of its own. Throws InvalidError for a factor that is not
  // finite or not above 0; check() tells whether the numbers of factors fit.
  [[nodiscard]] CostModel scaled(CostScales scales) const;

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const CostScales& scales() const { return scales_; }

  // Seconds of `node` on `device`; finite and >= 0. Requires a graph and cluster that pass check().
  [[nodiscard]] double compute(const Graph& graph, NodeId node, const Cluster& cluster,
                               DeviceId device) const;
  // Latency and bandwidth between two different devices, as this model sees them.
  [[nodiscard]] Route route(const Cluster& cluster, DeviceId from, DeviceId to) const;

  // Throws InvalidError unless this model can price the graph on the cluster (raw costs or scales
  // of another number of devices, raw without costs, times that overflow).
  void check(const Graph& graph, const Cluster& cluster) const;

  [[nodiscard]] std::uint64_t hash() const;
  friend bool operator==(const CostModel&, const CostModel&) = default;
  friend std::ostream& operator<<(std::ostream& out, const CostModel& cost_model);

 private:
  Kind kind_ = Kind::analytical;
  Profile profile_;
  CostScales scales_;
};

// All compute times of a graph on a cluster in flat arrays: devices that are alike share a column.
// Made once, read in hot loops. Throws as CostModel::check() for what it cannot price.
struct CostTable {
  CostTable(const Graph& graph, const Cluster& cluster, const CostModel& cost_model);

  [[nodiscard]] double compute(NodeId node, DeviceId device) const {
    return seconds[node.index() * n_columns + column[device.index()]];
  }

  std::size_t n_columns = 0;
  std::vector<std::uint32_t> column;  // [n_devices]
  std::vector<double> seconds;        // [n_nodes, n_columns], in the user's order of nodes
  std::vector<double> mean;           // [n_nodes] mean over the devices
  std::vector<double> least;          // [n_nodes] minimum over the devices
  double mean_latency = 0;            // of a transfer, over ordered pairs of different devices
  double mean_seconds_per_byte = 0;

  // The mean time to send `bytes` between two different devices; 0 on one device.
  [[nodiscard]] double mean_transfer(double bytes) const {
    return mean_latency + bytes * mean_seconds_per_byte;
  }
};

}  // namespace doppler
