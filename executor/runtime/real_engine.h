// An engine that really executes: sessions on a machine, warm-up runs, repeats, the machine's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "executor/engine.h"
#include "executor/runtime/device_api.h"
#include "executor/runtime/session.h"

namespace doppler::runtime {

struct RealEngineOptions {
  // Opens the machine's devices. If `limit_memory`, a device has no more memory than the cluster
  // says. Throws RunError if the machine does not have them.
  std::function<std::unique_ptr<DeviceApi>(const Cluster& cluster, bool limit_memory)> open = {};
  Lanes lanes = Lanes::channels;
  Lookahead lookahead = {};
  bool emulate_links = false;
  std::int64_t warm_up = 1;      // runs before those that count
  std::int64_t repeats = 3;      // runs that count; the median is returned; >= 1
  std::uint64_t input_seed = 0;  // of the graph inputs' data
};

// Engine::run() of a real machine. The devices stay open from run to run, graph inputs stay in
// their memory while the graph is the same. Runs of one engine take turns, also those of different
// threads; those of all engines on a machine do (MachineLock).
class RealEngine final : public Engine {
 public:
  explicit RealEngine(RealEngineOptions options);
  ~RealEngine() override;

  // The run whose makespan is the median (the smaller of two in the middle);
  // Execution::makespans has all. Throws as Engine::run(), and OutOfMemoryError.
  Execution run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                const Assignment& assignment, const RunOptions& options) override;

  // One run without warm-up; `results` gets the content of every tensor that nobody reads.
  Execution run_once(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                     const Assignment& assignment, const RunOptions& options,
                     const ResultReader& results);

 private:
  struct State;
  RealEngineOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace doppler::runtime
