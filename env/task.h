// A task: a graph to place on a cluster, with everything that fixes what a makespan means.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "executor/run_options.h"
#include "executor/simulator/simulator.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

// Which agents may learn on a task.
enum class Split : std::uint8_t { none, train, test };
std::string_view to_string(Split split);

// A regular value. options.record_timeline plays no part in its meaning.
struct Task {
  std::string name = {};  // "llama-layer@p100x4"
  Graph graph = {};
  Cluster cluster = {};
  CostModel cost_model = {};
  RunOptions options = {};
  Split split = Split::none;

  // Throws InvalidError unless the parts fit each other.
  void check() const;
  // max(sum of mean compute / total slots, longest compute_only path), 1 s if that is 0.
  [[nodiscard]] double time_scale() const;
  [[nodiscard]] double lower_bound() const;
  [[nodiscard]] Simulator simulator() const;
  // Of everything but the name and split; equal on every machine.
  [[nodiscard]] std::uint64_t hash() const;

  friend bool operator==(const Task&, const Task&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Task& task);
};

}  // namespace doppler
