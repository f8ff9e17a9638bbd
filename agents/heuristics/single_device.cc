// Everything on one device: no transfers, no parallelism.
//
// Unless told which, it takes the device on which the nodes compute least in total per slot. Where
// memory is enforced, only devices that hold all tensors and inputs at once are looked at, or, if
// there is none, those of the largest memory. Ties go to the smaller device.
#include <string>

#include "agents/heuristics/heuristics.h"
#include "agents/heuristics/order.h"

namespace doppler {

namespace {

double total_bytes(const Graph& graph) {
  double sum = 0;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    sum += graph.tensor_bytes(TensorId(static_cast<std::int64_t>(t)));
  }
  for (const GraphInput& input : graph.inputs()) sum += input.tensor.bytes;
  return sum;
}

DeviceId least_compute(const PlacementModel& model) {
  const Task& task = model.task();
  std::vector<double> column_sums(model.costs().n_columns, 0);
  for (std::size_t i = 0; i < model.costs().seconds.size(); ++i) {
    column_sums[i % column_sums.size()] += model.costs().seconds[i];
  }
  double memory = 0;
  if (task.options.enforce_memory) {
    for (const Device& device : task.cluster.parts().devices) {
      memory = std::max(memory, device.memory);
    }
    memory = std::min(memory, total_bytes(task.graph));
  }
  std::optional<DeviceId> best;
  double best_seconds = 0;
  for (std::size_t d = 0; d < model.n_devices(); ++d) {
    const Device& device = task.cluster.parts().devices[d];
    const double seconds = column_sums[model.costs().column[d]] / device.streams;
    if (device.memory < memory || (best && seconds >= best_seconds)) continue;
    best = DeviceId(static_cast<std::int64_t>(d));
    best_seconds = seconds;
  }
  return *best;  // the device of the largest memory always qualifies
}

class SingleDevice : public Agent {
 public:
  explicit SingleDevice(std::int64_t device) : asked_(device) {}

  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t /*seed*/) override {
    const auto n_devices = static_cast<std::int64_t>(model->n_devices());
    if (asked_ >= n_devices) {
      throw UsageError("single-device(device=" + std::to_string(asked_) + "): the cluster has " +
                       std::to_string(n_devices) + " devices; give 0 to " +
                       std::to_string(n_devices - 1) + ", or -1 for the one that suits best");
    }
    device_ = asked_ >= 0 ? DeviceId(asked_) : least_compute(*model);
    order_.restart(model->task().graph.topological_order());
  }
  NodeId select(const PartialSchedule& schedule) override { return order_.next(schedule); }
  DeviceId place(const PartialSchedule& /*schedule*/, NodeId /*node*/) override { return device_; }

 private:
  std::int64_t asked_;
  DeviceId device_;
  NodeOrder order_;
};

}  // namespace

AgentEntry single_device_entry() {
  AgentEntry entry;
  entry.name = "single-device";
  entry.summary = "every node on one device";
  entry.source = "own";
  entry.family = "heuristic";
  entry.deterministic = true;
  entry.parameters = {{.name = "device",
                       .summary = "which; -1: the one that computes all nodes in the least time",
                       .default_value = std::int64_t{-1},
                       .minimum = -1}};
  entry.make = [](const Parameters& parameters) {
    return std::make_unique<SingleDevice>(parameters.get<std::int64_t>("device"));
  };
  return entry;
}

}  // namespace doppler
