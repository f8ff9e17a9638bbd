// HEFT: nodes by decreasing upward rank, each on the device of its earliest finish, where it may
// fill a gap between nodes placed before.
//
// Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling for
// Heterogeneous Computing", IEEE TPDS 13(3), 2002, section 4.1. The upward rank is the b-level.
// Each slot of a device is a processor of the paper; ties go to the smaller id, device and slot; a
// tensor goes to a device once. Memory is not looked at.
#include <algorithm>
#include <limits>

#include "agents/heuristics/heuristics.h"

namespace doppler {

namespace {

// What one slot does, in time order.
class Timeline {
 public:
  // The earliest start from `ready` on of a gap of `seconds`.
  [[nodiscard]] double earliest(double ready, double seconds) const {
    auto next = std::upper_bound(busy_.begin(), busy_.end(), ready,
                                 [](double t, const Interval& i) { return t < i.end; });
    double start = ready;
    for (; next != busy_.end() && start + seconds > next->start; ++next) start = next->end;
    return start;
  }
  void take(double start, double end) {
    if (start == end) return;
    const auto after = std::upper_bound(busy_.begin(), busy_.end(), start,
                                        [](double t, const Interval& i) { return t < i.start; });
    busy_.insert(after, {start, end});
  }

 private:
  struct Interval {
    double start = 0;
    double end = 0;
  };
  std::vector<Interval> busy_;
};

class Heft : public Agent {
 public:
  [[nodiscard]] bool has_steps() const override { return false; }

  // O(edges x devices + nodes x slots x log nodes), and the gaps that are tried.
  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& /*options*/) override {
    const std::size_t n_devices = model->n_devices();
    std::vector<std::vector<Timeline>> slots;
    for (std::size_t d = 0; d < n_devices; ++d) {
      slots.emplace_back(
          static_cast<std::size_t>(model->task().cluster.parts().devices[d].streams));
    }
    Assignment assignment(model->n_nodes(), DeviceId{0});
    std::vector<double> end(model->n_nodes(), 0);
    for (NodeId node : model->b_level_order()) {
      double best_end = std::numeric_limits<double>::infinity();
      double best_start = 0;
      Timeline* best_slot = nullptr;
      for (std::size_t d = 0; d < n_devices; ++d) {
        const DeviceId device{static_cast<std::int64_t>(d)};
        double ready = 0;
        for (const PlacementModel::Feed& feed : model->feeds(node)) {
          ready =
              std::max(ready, end[feed.producer.index()] +
                                  model->transfer(feed.bytes, assignment[feed.producer], device));
        }
        const double seconds = model->costs().compute(node, device);
        for (Timeline& slot : slots[d]) {
          const double start = slot.earliest(ready, seconds);
          if (best_slot != nullptr && start + seconds >= best_end) continue;
          best_end = start + seconds;
          best_start = start;
          best_slot = &slot;
          assignment[node] = device;
        }
      }
      best_slot->take(best_start, best_end);
      end[node.index()] = best_end;
    }
    return {.assignment = std::move(assignment)};
  }
};

}  // namespace

AgentEntry heft_entry() {
  AgentEntry entry;
  entry.name = "heft";
  entry.summary = "largest b-level first, on the device of the earliest finish, gaps filled";
  entry.source = "Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.1";
  entry.family = "heuristic";
  entry.deterministic = true;
  entry.make = [](const Parameters&) { return std::make_unique<Heft>(); };
  return entry;
}

}  // namespace doppler
