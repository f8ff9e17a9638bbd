// What executions have shown of the system that a task runs on: its cost model, corrected.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "env/partial_schedule.h"
#include "executor/execution.h"

namespace doppler {

// Estimates by what factors the system departs from the task's costs (CostScales), from the
// timelines of its executions. Few executions say little of single nodes, so each factor is shrunk
// towards that of its group:
//   device d:               f_d = (T + k m f) / (M + k m), over all nodes that ran on d
//   nodes of one signature: the same over those, towards f_d
//   node v on all devices:  the same over its runs, each over the factor of its signature there
//   node v on d:            the same, towards the product of both
// with T the seconds measured, M those of the cost model, m its mean over the group and k a number
// of runs that stands for the trust in the group (f of the whole system is shrunk towards 1).
//   Transfers: the latency and the time per byte of the links each have a factor; least squares of
// the relative errors over all pairs of devices, shrunk towards 1, and then over each pair, shrunk
// towards that.
// A node or link that the cost model says takes no time has no factor and stays as it is.
class SystemModel {
 public:
  explicit SystemModel(std::shared_ptr<const PlacementModel> nominal);

  // Requires the timeline. O((nodes + transfers) log).
  void add(const Execution& execution);

  [[nodiscard]] std::int64_t n_executions() const { return n_executions_; }
  // O(nodes x devices).
  [[nodiscard]] CostScales scales() const;
  // The task with these scales. O((nodes + edges) log nodes).
  [[nodiscard]] std::shared_ptr<const PlacementModel> corrected() const;

  [[nodiscard]] nlohmann::json state() const;
  void restore(const nlohmann::json& state);  // requires state() of the same task

 private:
  // Sums of least squares for (latency factor, time per byte factor), weighted by 1 / seconds^2.
  struct LinkSums {
    double aa = 0;  // latency^2
    double ab = 0;
    double bb = 0;  // (bytes / bandwidth)^2
    double ay = 0;
    double by = 0;
    void add(const LinkSums& other);
  };
  struct LinkFactors {
    double latency = 1;
    double per_byte = 1;
  };
  static LinkFactors solve(const LinkSums& sums, const LinkFactors& prior, double trust);
  void write_compute(std::vector<double>& factors) const;
  void write_links(CostScales& scales) const;
  [[nodiscard]] double nominal_seconds(std::size_t node, std::size_t device) const;

  std::shared_ptr<const PlacementModel> nominal_;
  std::size_t n_devices_;
  std::vector<std::int32_t> signature_;  // [n_nodes] its number
  std::size_t n_signatures_ = 0;
  std::int64_t n_executions_ = 0;
  std::vector<double> seconds_;  // [n_nodes, n_devices] measured, summed
  std::vector<double> n_runs_;   // [n_nodes, n_devices]
  std::vector<LinkSums> links_;  // [n_devices, n_devices]
};

}  // namespace doppler
