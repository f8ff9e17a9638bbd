// The work-conserving simulator: discrete events, deterministic for a seed. DESIGN section 4.
//
// One instant t, exact equality of times: (1) every end and arrival at t is collected; (2) slots of
// ended nodes become free, nodes that became ready join their device's queue; (3) each free slot,
// lowest first, takes the first of the queue by the choice rule; (4) the ended nodes' transfers are
// requested by ascending producer, tensor, device; (5) again while 2-4 made events at t.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/engine.h"

namespace doppler {

// A simulator for one graph on one cluster: everything that does not depend on the assignment is
// computed once. Copies of graph and cluster share storage with the caller's. A Simulator may be
// used by one thread at a time, except makespans(), which runs its own threads. One that was moved
// from may only be assigned to or destroyed.
class Simulator {
 public:
  // Throws InvalidError if the parts do not fit each other. O((nodes + edges) log nodes).
  Simulator(const Graph& graph, const Cluster& cluster, CostModel cost_model, RunOptions options);
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  [[nodiscard]] const Graph& graph() const;
  [[nodiscard]] const Cluster& cluster() const;
  [[nodiscard]] const CostTable& costs() const;
  [[nodiscard]] const RunOptions& options() const;

  // Full record. Throws InvalidError for an assignment that does not fit.
  Execution run(const Assignment& assignment);
  Execution run(const Assignment& assignment, std::uint64_t seed);

  // The makespan alone, in seconds (infinity if memory is enforced and too small). No allocation
  // after the first call. The two-argument form takes another seed than the options'.
  double makespan(std::span<const DeviceId> assignment);
  double makespan(std::span<const DeviceId> assignment, std::uint64_t seed);

  // Makespans of k assignments, row-major [k, n_nodes], on `threads` threads (0: one a core); all
  // with the seed of the options. Throws InvalidError that names the row of an assignment that does
  // not fit.
  std::vector<double> makespans(std::span<const DeviceId> assignments, int threads = 1);

  // One-node changes: set_base() runs an assignment and remembers it; makespan_after_move() is the
  // makespan with one node elsewhere, resuming where the change first matters; accept_move() makes
  // such a change the new base. Same values as makespan(). What they refuse leaves the base as it
  // was; without a base the latter two throw UsageError.
  double set_base(std::span<const DeviceId> assignment);
  double makespan_after_move(NodeId node, DeviceId device);
  double accept_move(NodeId node, DeviceId device);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace doppler
