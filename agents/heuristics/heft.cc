// HEFT: nodes by decreasing upward rank, each on the device of its earliest finish, where it may
// fill a gap between nodes placed before.
//
// Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling for
// Heterogeneous Computing", IEEE TPDS 13(3), 2002, section 4.1. The upward rank is the b-level.
// Each slot of a device is a processor of the paper; ties go to the smaller id, device and slot; a
// tensor goes to a device once. Memory is not looked at.
#include <algorithm>
#include <iterator>
#include <limits>

#include "agents/heuristics/heuristics.h"

namespace doppler {

namespace {

// What one slot does, in time order.
class Timeline {
 public:
  // The earliest start from `ready` on of a gap of `seconds`.
  [[nodiscard]] double earliest(double ready, double seconds) const {
    // Between two nodes without a pause there is room for what takes no time, and for nothing else:
    // the rest skips whole blocks, or a wide graph would cost the square of its nodes.
    const double last = blocks_.empty() ? 0 : blocks_.back().end;
    const std::vector<Interval>& busy = last + seconds > last ? blocks_ : nodes_;
    auto next = std::upper_bound(busy.begin(), busy.end(), ready,
                                 [](double t, const Interval& i) { return t < i.end; });
    double start = ready;
    for (; next != busy.end() && start + seconds > next->start; ++next) start = next->end;
    return start;
  }
  void take(double start, double end) {
    if (start == end) return;
    nodes_.insert(after(nodes_, start), {start, end});
    auto next = after(blocks_, start);
    if (next != blocks_.end() && next->start == end) {
      end = next->end;
      next = blocks_.erase(next);
    }
    if (next != blocks_.begin() && std::prev(next)->end == start) {
      std::prev(next)->end = end;
    } else {
      blocks_.insert(next, {start, end});
    }
  }

 private:
  struct Interval {
    double start = 0;
    double end = 0;
  };
  static std::vector<Interval>::iterator after(std::vector<Interval>& intervals, double start) {
    return std::upper_bound(intervals.begin(), intervals.end(), start,
                            [](double t, const Interval& i) { return t < i.start; });
  }

  std::vector<Interval> nodes_;
  std::vector<Interval> blocks_;  // of nodes without a pause between them
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
