#include "executor/simulator/event_loop.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace doppler::simulation {
namespace {

bool before(const ReadyQueues::Item& a, const ReadyQueues::Item& b) {
  if (a.first != b.first) return a.first < b.first;
  if (a.ready != b.ready) return a.ready < b.ready;
  return a.node < b.node;
}

constexpr std::size_t kWord = 64;

}  // namespace

ReadyQueues::ReadyQueues(std::size_t n_nodes, std::size_t n_devices)
    : first_(n_devices + 1, 0), n_(n_devices, 0), items_(n_nodes) {}

void ReadyQueues::reset(std::span<const std::int32_t> devices) {
  std::fill(first_.begin(), first_.end(), 0);
  std::fill(n_.begin(), n_.end(), 0);
  for (std::int32_t device : devices) ++first_[static_cast<std::size_t>(device) + 1];
  for (std::size_t d = 0; d < n_.size(); ++d) first_[d + 1] += first_[d];
}

void ReadyQueues::push(std::size_t device, const Item& item) {
  Item* heap = items_.data() + first_[device];
  std::size_t hole = n_[device]++;
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 2;
    if (!before(item, heap[parent])) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = item;
}

ReadyQueues::Item ReadyQueues::pop(std::size_t device) {
  Item* heap = items_.data() + first_[device];
  const Item top = heap[0];
  const std::size_t n = --n_[device];
  const Item last = heap[n];
  std::size_t hole = 0;
  for (std::size_t child = 1; child < n; child = 2 * hole + 1) {
    if (child + 1 < n && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], last)) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = last;
  return top;
}

EventLoop::EventLoop(const Model& model)
    : model_(model),
      luck_(model, 0),
      network_(model),
      queues_(model.n_nodes, model.n_devices),
      is_touched_(model.n_devices, false) {
  for (std::int32_t slots : model.slots) {
    first_word_.push_back(static_cast<std::uint32_t>(all_free_.size()));
    for (std::size_t left = static_cast<std::size_t>(slots); left > 0;) {
      const std::size_t here = std::min(left, kWord);
      all_free_.push_back(here == kWord ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1);
      left -= here;
    }
  }
  first_word_.push_back(static_cast<std::uint32_t>(all_free_.size()));
  ends_.reserve(std::min(model.n_slots, model.n_nodes));
  const std::size_t most = std::max(model.n_nodes, model.max_transfers);
  for (auto* list : {&ended_, &arrived_, &touched_}) list->reserve(most);
}

void EventLoop::begin(std::span<const std::int32_t> devices, std::uint64_t seed,
                      Timeline& timeline) {
  devices_ = devices;
  timeline_ = &timeline;
  luck_ = Luck(model_, seed);
  network_.reset(luck_);
  queues_.reset(devices);
  ends_.clear();
  n_missing_ = model_.n_missing;
  free_ = all_free_;
  timeline.makespan = 0;
  timeline.ready.resize(model_.n_nodes);
  timeline.start.resize(model_.n_nodes);
  timeline.end.resize(model_.n_nodes);
  timeline.slot.resize(model_.n_nodes);
  timeline.transfers.clear();
  timeline.transfers.reserve(model_.max_transfers);
}

void EventLoop::run(std::span<const std::int32_t> devices, std::uint64_t seed, Timeline& timeline) {
  begin(devices, seed, timeline);
  double now = 0;
  for (std::size_t p = 0; p < model_.n_nodes; ++p) {
    if (n_missing_[p] == 0) make_ready(p, now);
  }
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    deliver(model_.inputs[i], model_.input_device[i], now);
  }
  for (std::uint32_t device : touched_) start_nodes(device, now);
  touched_.clear();
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    network_.request(model_.inputs[i], true, model_.input_device[i], now, devices,
                     timeline.transfers);
  }

  for (now = std::min(ends_.next(), network_.next()); now < INFINITY;
       now = std::min(ends_.next(), network_.next())) {
    collect(now);
    for (std::uint32_t p : ended_) {
      for (const Source& source : model_.sources_of(p)) deliver(source, devices_[p], now);
    }
    for (std::uint32_t t : arrived_) {
      deliver(*timeline.transfers[t].source, timeline.transfers[t].to, now);
    }
    for (std::uint32_t device : touched_) start_nodes(device, now);
    touched_.clear();
    for (std::uint32_t p : ended_) {
      for (const Source& source : model_.sources_of(p)) {
        network_.request(source, false, devices_[p], now, devices, timeline.transfers);
      }
    }
  }
}

void EventLoop::collect(double now) {
  ended_.clear();
  arrived_.clear();
  while (ends_.next() == now) {
    const std::uint32_t p = ends_.take();
    ended_.push_back(p);
    const auto slot = static_cast<std::size_t>(timeline_->slot[p]);
    const auto device = static_cast<std::size_t>(devices_[p]);
    free_[first_word_[device] + slot / kWord] |= std::uint64_t{1} << (slot % kWord);
    touch(device);
  }
  if (!ended_.empty()) timeline_->makespan = now;
  if (ended_.size() > 1) {
    std::sort(ended_.begin(), ended_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return model_.node[a] < model_.node[b]; });
  }
  network_.arrivals(now, timeline_->transfers, arrived_);
}

void EventLoop::deliver(const Source& source, std::int32_t device, double now) {
  for (std::int32_t reader : model_.readers_of(source)) {
    const auto p = static_cast<std::size_t>(reader);
    if (devices_[p] == device && --n_missing_[p] == 0) make_ready(p, now);
  }
}

void EventLoop::make_ready(std::size_t position, double now) {
  timeline_->ready[position] = now;
  const auto device = static_cast<std::size_t>(devices_[position]);
  const std::int32_t node = model_.node[position];
  double first = 0;
  switch (model_.options.choice) {
    case Choice::fifo:
      break;
    case Choice::priority:
      first = -model_.priority[position];
      break;
    case Choice::random:
      // 53 bits are exact in a double; the low bits of a 64-bit key do not matter.
      first = static_cast<double>(luck_.key(node) >> 11);
      break;
  }
  queues_.push(device, {.first = first,
                        .ready = now,
                        .node = node,
                        .position = static_cast<std::int32_t>(position)});
  touch(device);
}

void EventLoop::start_nodes(std::size_t device, double now) {
  is_touched_[device] = false;
  for (std::size_t word = first_word_[device]; word < first_word_[device + 1]; ++word) {
    while (free_[word] != 0 && !queues_.empty(device)) {
      const ReadyQueues::Item item = queues_.pop(device);
      const auto p = static_cast<std::size_t>(item.position);
      const auto bit = static_cast<std::size_t>(std::countr_zero(free_[word]));
      free_[word] &= free_[word] - 1;
      timeline_->slot[p] = static_cast<std::int32_t>((word - first_word_[device]) * kWord + bit);
      timeline_->start[p] = now;
      timeline_->end[p] = now + model_.seconds(p, device) * luck_.node_factor(item.node);
      ends_.add(timeline_->end[p], static_cast<std::uint32_t>(p));
    }
  }
}

void EventLoop::touch(std::size_t device) {
  if (is_touched_[device]) return;
  is_touched_[device] = true;
  touched_.push_back(static_cast<std::uint32_t>(device));
}

}  // namespace doppler::simulation
