// What of a simulation does not depend on the assignment, flat and in topological order ("by
// position"): the arrays that the simulator's loops walk. Private to executor/simulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/run_options.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler::simulation {

// A tensor that somebody reads, or a graph input that does not lie everywhere.
struct Source {
  double bytes = 0;
  std::int32_t id = 0;             // TensorId, or InputId
  std::uint32_t first_reader = 0;  // in Model::readers
  std::uint32_t n_readers = 0;
};

// Immutable once made; shared by threads.
struct Model {
  Model(const Graph& simulated_graph, const Cluster& simulated_cluster, CostModel model_of_costs,
        RunOptions run_options);

  Graph graph;
  Cluster cluster;
  CostModel cost_model;
  RunOptions options;
  CostTable costs;

  std::size_t n_nodes = 0;
  std::size_t n_devices = 0;
  std::vector<std::int32_t> node;       // by position: its NodeId
  std::vector<double> compute;          // [position, column]: seconds; columns as in `costs`
  std::vector<std::int32_t> n_missing;  // by position: tensors and placed inputs that it waits for
  std::vector<double> priority;         // by position; empty unless Choice::priority
  std::vector<std::uint32_t> first_source;  // by position: its tensors are sources[first, next)
  std::vector<Source> sources;              // ascending tensor within a position
  std::vector<Source> inputs;               // placed graph inputs with readers; ascending
  std::vector<std::int32_t> input_device;   // of `inputs`
  std::vector<std::int32_t> readers;        // positions, ascending within a source
  std::vector<std::int32_t> slots;          // by device
  std::size_t n_slots = 0;
  // Transfers that one run can make at most.
  std::size_t max_transfers = 0;
  // Whether some assignment could exceed a device's memory. A device holds each tensor and input at
  // most once, so that the sum of all of them is a bound on its peak.
  bool memory_matters = false;

  [[nodiscard]] double seconds(std::size_t position, std::size_t device) const {
    return compute[position * costs.n_columns + costs.column[device]];
  }
  [[nodiscard]] std::span<const Source> sources_of(std::size_t position) const {
    return std::span<const Source>(sources).subspan(
        first_source[position], first_source[position + 1] - first_source[position]);
  }
  [[nodiscard]] std::span<const std::int32_t> readers_of(const Source& source) const {
    return std::span<const std::int32_t>(readers).subspan(source.first_reader, source.n_readers);
  }
};

// A transfer in a run.
struct Transfer {
  const Source* source = nullptr;
  bool of_input = false;
  std::int32_t from = 0;
  std::int32_t to = 0;
  double requested = 0;  // seconds
  double start = 0;
  double end = 0;
};

// What a run leaves behind, by position; slots and ready instants are filled on every run.
struct Timeline {
  double makespan = 0;
  std::vector<double> ready;
  std::vector<double> start;
  std::vector<double> end;
  std::vector<std::int32_t> slot;
  std::vector<Transfer> transfers;  // in the order of their requests
};

// The luck of one run: the factor on each duration and the keys of Choice::random.
class Luck {
 public:
  Luck(const Model& model, std::uint64_t seed) : noise_(model.options.noise), seed_(seed) {}
  [[nodiscard]] double node_factor(std::int32_t node) const;
  [[nodiscard]] double transfer_factor(const Transfer& transfer) const;
  [[nodiscard]] std::uint64_t key(std::int32_t node) const;

 private:
  double noise_;
  std::uint64_t seed_;
};

}  // namespace doppler::simulation
