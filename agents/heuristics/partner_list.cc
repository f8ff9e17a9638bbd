// Partner list: a list scheduler that also pulls the inputs of one consumer together.
//
// The candidate of largest b-level, ties to the smaller id, goes to the device of the least
//   earliest start + 0.3 x sum of transfers from predecessors elsewhere
//                  - sum of transfers of placed partners there, each partner once,
// ties to the smaller device. The last term is what a scheduler that looks at one node at a time
// misses: where the other inputs of the node's consumers already are. Memory is not looked at.
#include "agents/heuristics/heuristics.h"
#include "agents/heuristics/order.h"

namespace doppler {

namespace {

constexpr double kIncomingWeight = 0.3;

class PartnerList : public Agent {
 public:
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t /*seed*/) override {
    order_.restart(model->b_level_order());
    for (auto* values : {&starts_, &incoming_, &partners_}) values->resize(model->n_devices());
  }
  NodeId select(const PartialSchedule& schedule) override { return order_.next(schedule); }
  DeviceId place(const PartialSchedule& schedule, NodeId node) override {
    schedule.earliest_starts(node, starts_);
    schedule.incoming_transfers(node, incoming_);
    schedule.partner_transfers(node, partners_);
    std::size_t best = 0;
    for (std::size_t d = 1; d < starts_.size(); ++d) {
      if (cost(d) < cost(best)) best = d;
    }
    return DeviceId(static_cast<std::int64_t>(best));
  }

 private:
  [[nodiscard]] double cost(std::size_t d) const {
    return starts_[d] + kIncomingWeight * incoming_[d] - partners_[d];
  }

  NodeOrder order_;
  std::vector<double> starts_;  // by device, as the other two
  std::vector<double> incoming_;
  std::vector<double> partners_;
};

}  // namespace

AgentEntry partner_list_entry() {
  AgentEntry entry;
  entry.name = "partner-list";
  entry.summary = "largest b-level first, near its predecessors and the partners of its consumers";
  entry.source = "own";
  entry.family = "heuristic";
  entry.deterministic = true;
  entry.make = [](const Parameters&) { return std::make_unique<PartnerList>(); };
  return entry;
}

}  // namespace doppler
