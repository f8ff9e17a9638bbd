// The devices in turn, over the nodes in topological order.
#include "agents/heuristics/heuristics.h"
#include "agents/heuristics/order.h"

namespace doppler {

namespace {

class RoundRobin : public Agent {
 public:
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t /*seed*/) override {
    n_devices_ = model->n_devices();
    order_.restart(model->task().graph.topological_order());
  }
  NodeId select(const PartialSchedule& schedule) override { return order_.next(schedule); }
  DeviceId place(const PartialSchedule& schedule, NodeId /*node*/) override {
    return DeviceId(static_cast<std::int64_t>(schedule.n_placed() % n_devices_));
  }

 private:
  std::size_t n_devices_ = 1;
  NodeOrder order_;
};

}  // namespace

AgentEntry round_robin_entry() {
  AgentEntry entry;
  entry.name = "round-robin";
  entry.summary = "the devices in turn, over the nodes in topological order";
  entry.source = "own";
  entry.family = "heuristic";
  entry.deterministic = true;
  entry.make = [](const Parameters&) { return std::make_unique<RoundRobin>(); };
  return entry;
}

}  // namespace doppler
