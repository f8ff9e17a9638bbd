// Uniform choices: a candidate, then a device. What every other agent must beat.
#include "agents/draws.h"
#include "agents/heuristics/heuristics.h"

namespace doppler {

namespace {

class Random : public Agent {
 public:
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) override {
    n_devices_ = model->n_devices();
    draws_ = Draws(seed);
  }
  NodeId select(const PartialSchedule& schedule) override {
    const auto candidates = schedule.candidates();
    return candidates[draws_.below(candidates.size())];
  }
  DeviceId place(const PartialSchedule& /*schedule*/, NodeId /*node*/) override {
    return DeviceId(static_cast<std::int64_t>(draws_.below(n_devices_)));
  }

 private:
  std::size_t n_devices_ = 1;
  Draws draws_;
};

}  // namespace

AgentEntry random_entry() {
  AgentEntry entry;
  entry.name = "random";
  entry.summary = "each node on a device drawn uniformly";
  entry.source = "own";
  entry.family = "heuristic";
  entry.make = [](const Parameters&) { return std::make_unique<Random>(); };
  return entry;
}

}  // namespace doppler
