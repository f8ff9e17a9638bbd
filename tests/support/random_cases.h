// Random graphs, clusters, options and assignments from a seed, with the corners that simulators
// get wrong: zero-cost nodes, equal times, several outputs, parallel edges, shuffled ids, transfers
// that take no time, shared channels, paths, unequal devices, several streams, no nodes at all.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>

#include "executor/run_options.h"
#include "graphs/assignment.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"
#include "graphs/hash.h"

namespace doppler::testing {

// A stream of draws that is the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(mix64(seed + 0x9e3779b97f4a7c15ULL)) {}

  std::uint64_t bits() { return mix64(seed_ + 0x9e3779b97f4a7c15ULL * ++count_); }
  // 0 to n - 1; n > 0.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  // From first to last, both included.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(below(static_cast<std::size_t>(last - first) + 1));
  }
  bool chance(double p) { return real() < p; }
  double real() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // in [0, 1)
  double one_of(std::span<const double> values) { return values[below(values.size())]; }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

// A regular value. How large the parts get and which of the corners are wanted.
struct CaseLimits {
  std::size_t max_nodes = 24;
  std::size_t max_devices = 8;
  bool noise = true;
  // Every cost a small integer, so that sums are exact.
  bool integers = false;
};

// A graph whose costs fit clusters of `n_devices`: raw (one a node, or one a node and device) or
// FLOPs and bytes.
Graph random_graph(Draws& draws, std::size_t n_devices, const CaseLimits& limits = {});
Cluster random_cluster(Draws& draws, std::size_t n_devices, const CaseLimits& limits = {});
Assignment random_assignment(Draws& draws, std::size_t n_nodes, std::size_t n_devices);
RunOptions random_options(Draws& draws, const Graph& graph, std::size_t n_devices,
                          const CaseLimits& limits = {});

// One whole problem.
struct RandomCase {
  Graph graph;
  Cluster cluster;
  CostModel cost_model;
  Assignment assignment;
  RunOptions options;
};
RandomCase random_case(std::uint64_t seed, const CaseLimits& limits = {});
// Everything on a few lines, for the message of a test that fails.
std::ostream& operator<<(std::ostream& out, const RandomCase& random_case);

}  // namespace doppler::testing
