// What of an environment never changes: its tasks, its static arrays, its spec. Shared by every Env
// made of it; const members are thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "env/env_options.h"
#include "env/partial_schedule.h"
#include "env/spec.h"
#include "env/task.h"
#include "executor/engine.h"

namespace doppler {

// Assignment of the critical-path heuristic: the candidate of largest b-level, on the device of its
// earliest start, ties to the smaller ids. What makespans are compared with.
Assignment critical_path_assignment(std::shared_ptr<const PlacementModel> model);

// One task of an environment.
struct EnvTask {
  std::shared_ptr<const PlacementModel> placement;
  double lower_bound = 0;             // seconds
  double critical_path_makespan = 0;  // seconds, on the simulator, without noise
  // Static arrays in the order of the spec's static ones; float32 and int32 alike as raw bytes.
  std::vector<std::vector<std::byte>> static_arrays;
  std::vector<double> device_speed;     // [n_devices] least total compute over devices / its own
  std::vector<std::int32_t> node_kind;  // [n_nodes] index in the environment's list of kinds
  std::vector<double> output_bytes;     // [n_nodes] of all its tensors
};

// The makespan of an assignment by the environment's engine.
struct Measurement {
  double makespan = 0;  // seconds; infinity: out of memory
  std::string failure;  // why the makespan is infinite; empty otherwise
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

class EnvModel {
 public:
  // Throws InvalidError or UsageError: no tasks, tasks that do not fit their parts, unknown names,
  // limits below what the tasks need, action spaces beyond 100,000 actions.
  EnvModel(std::vector<Task> tasks, EnvOptions options);
  ~EnvModel();
  EnvModel(const EnvModel&) = delete;
  EnvModel& operator=(const EnvModel&) = delete;

  [[nodiscard]] const EnvOptions& options() const { return options_; }
  [[nodiscard]] const EnvSpec& spec() const { return spec_; }
  [[nodiscard]] std::span<const EnvTask> tasks() const { return tasks_; }
  [[nodiscard]] const std::vector<std::string>& kinds() const { return kinds_; }
  [[nodiscard]] std::size_t max_nodes() const { return max_nodes_; }
  [[nodiscard]] std::size_t max_edges() const { return max_edges_; }
  [[nodiscard]] std::size_t max_devices() const { return max_devices_; }
  [[nodiscard]] std::size_t n_device_features() const;

  // One evaluation on the engine, with the given luck. Threads have simulators of their own; for a
  // real engine they queue. O(run). Without `explain` the failure is left empty, and the simulator
  // allocates nothing after the first call.
  Measurement measure(std::size_t task, const Assignment& assignment, std::uint64_t seed,
                      bool explain = true) const;
  // Of the tasks and options: what a serialized state is tied to.
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

 private:
  struct Engines;
  void find_limits();
  void make_spec();
  void make_static_arrays(EnvTask& task) const;

  EnvOptions options_;
  std::vector<EnvTask> tasks_;
  std::vector<std::string> kinds_;
  std::size_t max_nodes_ = 1;
  std::size_t max_edges_ = 1;
  std::size_t max_devices_ = 1;
  EnvSpec spec_;
  std::uint64_t hash_ = 0;
  std::unique_ptr<Engines> engines_;
};

}  // namespace doppler
