// A DeviceApi that is kept open from run to run: its streams, the loaded graph, and the graph
// inputs that lie in its memory. Private to executor/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "executor/runtime/device_api.h"
#include "executor/runtime/dispatcher.h"
#include "executor/runtime/run_plan.h"
#include "executor/simulator/model.h"
#include "graphs/cluster.h"

namespace doppler::runtime {

// Which transfers share a stream, on which one moves at a time, first requested first.
enum class Lanes : std::uint8_t {
  channels,  // those that hold the same channel of the cluster
  pairs      // those of the same two devices: the machine itself decides what contends
};

struct SessionOptions {
  Lanes lanes = Lanes::channels;
  Lookahead lookahead = {};
  // A transfer takes at least latency + bytes / bandwidth of its route.
  bool emulate_links = false;
  // Writes the data of a graph input.
  std::function<void(const Graph&, InputId, std::span<std::byte>)> make_input = {};
};

// The content of a tensor that nobody reads, after a run. Valid during the call.
using ResultReader = std::function<void(TensorId, std::span<const std::byte>)>;

class Session {
 public:
  // `cluster` says how many devices there are and how many compute slots each has.
  Session(std::unique_ptr<DeviceApi> api, const Cluster& cluster, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs the model's graph once; `devices` is by position. Inputs are put in place before the clock
  // starts, and stay for the next run. Throws InvalidError for a graph that the machine cannot run,
  // RunError (OutOfMemoryError) for a run that failed; the session is usable afterwards. `results`
  // may be empty.
  void run(const simulation::Model& model, std::span<const std::int32_t> devices,
           simulation::Timeline& timeline, const ResultReader& results = {});
  // Of the last run, as DeviceApi has it.
  [[nodiscard]] double clock_error() const { return api_->clock_error(); }

 private:
  void load(const Graph& graph);
  StreamSet streams_for(const RunPlan& plan);
  std::vector<Buffer> place_inputs(const RunPlan& plan);
  Buffer allocate_input(const RunPlan& plan, const PlannedInput& input);
  // Gives back the inputs that `plan` does not need; whether there were any.
  bool drop_inputs(const RunPlan* plan);
  void read_results(const RunPlan& plan, const Dispatcher& dispatcher, const ResultReader& results);

  std::unique_ptr<DeviceApi> api_;
  SessionOptions options_;
  Graph graph_;
  bool is_loaded_ = false;
  std::vector<std::vector<std::unique_ptr<Stream>>> slots_;                         // by device
  std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<Stream>> lanes_;  // by key
  std::map<std::pair<InputId, DeviceId>, Buffer> inputs_;
  std::vector<std::size_t> memory_;  // by device
};

}  // namespace doppler::runtime
