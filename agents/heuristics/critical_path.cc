// Critical path: the candidate of largest b-level goes to the device of its earliest start, ties at
// random in both.
//
// Yao et al., "DOPPLER: Dual-Policy Learning for Device Assignment in Asynchronous Dataflow
// Graphs", 2025: the list scheduler after Kwok and Ahmad (ACM Computing Surveys 31(4), 1999,
// section 6) that serves there as a baseline and as the teacher of the first stage. Each episode is
// one draw of its ties; memory is not looked at.
#include "agents/draws.h"
#include "agents/heuristics/heuristics.h"
#include "agents/heuristics/order.h"

namespace doppler {

namespace {

class CriticalPathAgent : public Agent {
 public:
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) override {
    draws_ = Draws(seed);
    keys_.resize(model->n_nodes());
    for (std::uint64_t& key : keys_) key = draws_.next();
    model->b_level_order(keys_, order_.restart());
    starts_.resize(model->n_devices());
  }
  NodeId select(const PartialSchedule& schedule) override { return order_.next(schedule); }
  DeviceId place(const PartialSchedule& schedule, NodeId node) override {
    schedule.earliest_starts(node, starts_);
    std::size_t best = 0;
    std::uint64_t n_tied = 1;
    for (std::size_t d = 1; d < starts_.size(); ++d) {
      if (starts_[d] > starts_[best]) continue;
      n_tied = starts_[d] == starts_[best] ? n_tied + 1 : 1;
      // The k-th of the tied replaces the one kept with probability 1 / k.
      if (n_tied == 1 || draws_.below(n_tied) == 0) best = d;
    }
    return DeviceId(static_cast<std::int64_t>(best));
  }

 private:
  Draws draws_;
  std::vector<std::uint64_t> keys_;
  NodeOrder order_;
  std::vector<double> starts_;
};

}  // namespace

AgentEntry critical_path_entry() {
  AgentEntry entry;
  entry.name = "critical-path";
  entry.summary = "largest b-level first, on the device of the earliest start, ties at random";
  entry.source = "Yao et al., DOPPLER, 2025; Kwok and Ahmad, ACM Computing Surveys 31(4), 1999";
  entry.family = "heuristic";
  entry.make = [](const Parameters&) { return std::make_unique<CriticalPathAgent>(); };
  return entry;
}

}  // namespace doppler
