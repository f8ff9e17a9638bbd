#include "executor/simulator/bulk_synchronous.h"

#include <algorithm>
#include <cmath>

namespace doppler::simulation {

BulkSynchronous::BulkSynchronous(const Model& model)
    : model_(model), luck_(model, 0), network_(model) {
  for (std::int32_t slots : model.slots) {
    first_slot_.push_back(slots_.size());
    slots_.resize(slots_.size() + static_cast<std::size_t>(slots));
  }
  first_slot_.push_back(slots_.size());
}

void BulkSynchronous::run(std::span<const std::int32_t> devices, std::uint64_t seed,
                          Timeline& timeline) {
  devices_ = devices;
  timeline_ = &timeline;
  luck_ = Luck(model_, seed);
  network_.reset(luck_);
  timeline.makespan = 0;
  timeline.ready.resize(model_.n_nodes);
  timeline.start.resize(model_.n_nodes);
  timeline.end.resize(model_.n_nodes);
  timeline.slot.resize(model_.n_nodes);
  timeline.transfers.clear();

  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    network_.request(model_.inputs[i], true, model_.input_device[i], 0, devices,
                     timeline.transfers);
  }
  double now = finish_transfers(0);
  const auto level = [&](std::size_t p) { return model_.graph.level(NodeId(model_.node[p])); };
  for (std::size_t begin = 0; begin < model_.n_nodes;) {
    std::size_t end = begin;
    while (end < model_.n_nodes && level(end) == level(begin)) ++end;
    now = compute(begin, end, now);
    timeline.makespan = now;
    // Positions ascend by id within a level, so that requests are by ascending producer.
    for (std::size_t p = begin; p < end; ++p) {
      for (const Source& source : model_.sources_of(p)) {
        network_.request(source, false, devices[p], now, devices, timeline.transfers);
      }
    }
    now = finish_transfers(now);
    begin = end;
  }
}

double BulkSynchronous::compute(std::size_t begin, std::size_t end, double now) {
  items_.clear();
  for (std::size_t p = begin; p < end; ++p) {
    double first = 0;
    if (model_.options.choice == Choice::priority) first = -model_.priority[p];
    if (model_.options.choice == Choice::random) {
      first = static_cast<double>(luck_.key(model_.node[p]) >> 11);
    }
    items_.push_back({first, model_.node[p], static_cast<std::int32_t>(p)});
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return a.first != b.first ? a.first < b.first : a.node < b.node;
  });
  std::fill(slots_.begin(), slots_.end(), Slot{.free = now, .round = 0});
  double last = now;
  for (const Item& item : items_) {
    const auto p = static_cast<std::size_t>(item.position);
    const auto device = static_cast<std::size_t>(devices_[p]);
    const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(first_slot_[device]);
    const auto slot = std::min_element(
        first, slots_.begin() + static_cast<std::ptrdiff_t>(first_slot_[device + 1]));
    timeline_->ready[p] = now;
    timeline_->slot[p] = static_cast<std::int32_t>(slot - first);
    timeline_->start[p] = slot->free;
    timeline_->end[p] = slot->free + model_.seconds(p, device) * luck_.node_factor(item.node);
    slot->round = timeline_->end[p] > slot->free ? 0 : slot->round + 1;
    slot->free = timeline_->end[p];
    last = std::max(last, slot->free);
  }
  return last;
}

double BulkSynchronous::finish_transfers(double now) {
  while (network_.next() < INFINITY) {
    const double next = network_.next();
    arrived_.clear();
    network_.arrivals(next, timeline_->transfers, arrived_);
    // An arrival that was predicted, and then predicted anew, is no barrier.
    if (!arrived_.empty()) now = next;
  }
  return now;
}

}  // namespace doppler::simulation
