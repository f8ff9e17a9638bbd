#include "executor/simulator/list_scheduler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace doppler::simulation {
namespace {

constexpr std::size_t kMaxDevices = 256;  // the table of classes is quadratic
constexpr std::size_t kMaxClasses = 64;
constexpr std::size_t kMaxTable = std::size_t{1} << 24;      // entries of transfer_seconds_
constexpr std::size_t kMaxKeptBytes = std::size_t{1} << 26;  // of all kept states
constexpr std::size_t kMaxKept = 24;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The distinct (latency, bandwidth) of a cluster, numbered in order of first use; empty if
// there are too many.
std::map<std::pair<double, double>, std::uint8_t> link_classes(const Model& model) {
  std::map<std::pair<double, double>, std::uint8_t> classes;
  for (std::size_t a = 0; a < model.n_devices; ++a) {
    for (std::size_t b = 0; b < model.n_devices; ++b) {
      if (a == b) continue;
      const Route route = model.cost_model.route(model.cluster, DeviceId(static_cast<int>(a)),
                                                 DeviceId(static_cast<int>(b)));
      const auto number = static_cast<std::uint8_t>(classes.size());
      classes.try_emplace({route.latency, route.bandwidth}, number);
      if (classes.size() > kMaxClasses) return {};
    }
  }
  return classes;
}

}  // namespace

bool ListScheduler::applies(const Model& model) {
  const RunOptions& options = model.options;
  if (options.network != Network::independent || options.schedule != Schedule::work_conserving ||
      options.noise != 0 || !model.inputs.empty() || model.memory_matters ||
      model.n_devices > kMaxDevices) {
    return false;
  }
  const auto classes = link_classes(model);
  if (model.n_devices > 1 && classes.empty()) return false;
  if (classes.size() * model.sources.size() > kMaxTable) return false;
  double least = kInfinity;
  double most = 0;  // no run is longer
  for (std::size_t p = 0; p < model.n_nodes; ++p) {
    double longest = 0;
    for (std::size_t c = 0; c < model.costs.n_columns; ++c) {
      const double seconds = model.compute[p * model.costs.n_columns + c];
      least = std::min(least, seconds);
      longest = std::max(longest, seconds);
    }
    most += longest;
  }
  for (const auto& [link, number] : classes) {
    for (const Source& source : model.sources) {
      const double seconds = link.first + source.bytes / link.second;
      least = std::min(least, seconds);
      most += seconds;
    }
  }
  // Adding the least duration to the latest instant must change it.
  return most == 0 || (least > 0 && least > most * 0x1p-50);
}

ListScheduler::ListScheduler(const Model& model)
    : model_(model), chosen_(model.n_nodes, model.n_devices) {
  const std::size_t n = model.n_nodes;
  const std::size_t n_devices = model.n_devices;
  const auto classes = link_classes(model);
  n_classes_ = std::max<std::size_t>(classes.size(), 1);
  class_.assign(n_devices * n_devices, 0);
  for (std::size_t a = 0; a < n_devices; ++a) {
    for (std::size_t b = 0; b < n_devices; ++b) {
      if (a == b) continue;
      const Route route = model.cost_model.route(model.cluster, DeviceId(static_cast<int>(a)),
                                                 DeviceId(static_cast<int>(b)));
      class_[a * n_devices + b] = classes.at({route.latency, route.bandwidth});
    }
  }
  transfer_seconds_.assign(model.sources.size() * n_classes_, 0);
  for (std::size_t s = 0; s < model.sources.size(); ++s) {
    for (const auto& [link, number] : classes) {
      transfer_seconds_[s * n_classes_ + number] =
          link.first + model.sources[s].bytes / link.second;
    }
  }
  first_in_.assign(n + 1, 0);
  for (std::size_t p = 0; p < n; ++p) {
    first_out_.push_back(static_cast<std::uint32_t>(out_.size()));
    for (std::size_t s = model.first_source[p]; s < model.first_source[p + 1]; ++s) {
      for (std::int32_t reader : model.readers_of(model.sources[s])) {
        out_.push_back({reader, static_cast<std::uint32_t>(s)});
        ++first_in_[static_cast<std::size_t>(reader) + 1];
      }
    }
  }
  first_out_.push_back(static_cast<std::uint32_t>(out_.size()));
  for (std::size_t p = 0; p < n; ++p) first_in_[p + 1] += first_in_[p];
  in_.resize(out_.size());
  std::vector<std::uint32_t> next(first_in_.begin(), first_in_.end() - 1);
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t e = first_out_[p]; e < first_out_[p + 1]; ++e) {
      in_[next[static_cast<std::size_t>(out_[e].reader)]++] = {static_cast<std::int32_t>(p),
                                                               out_[e].tensor};
    }
  }
  std::size_t n_slots = 0;
  for (std::int32_t slots : model.slots) {
    first_slot_.push_back(n_slots);
    n_slots += static_cast<std::size_t>(slots);
    one_slot_ = one_slot_ && slots == 1;
  }
  first_slot_.push_back(n_slots);

  last_start_.resize(n_devices);
  first_item_.resize(n_devices + 1);
  now_.nodes.resize(n);
  now_.queue.resize(n + n_devices);  // room for one more a device than it has nodes
  now_.n_queued.resize(n_devices);
  now_.slot_free.resize(n_slots);
  now_.next_start.resize(n_devices);
  if (model.options.choice == Choice::priority) {
    for (double priority : model.priority) first_.push_back(-priority);
  } else if (model.options.choice == Choice::random) {
    first_.resize(n);
  }
}

double ListScheduler::makespan(std::span<const std::int32_t> devices, std::uint64_t seed) {
  begin(devices, seed);
  dispatch<false>();
  return now_.makespan;
}

template <bool kRecord>
void ListScheduler::dispatch() {
  if (model_.options.choice == Choice::fifo) {
    one_slot_ ? run<false, true, kRecord>() : run<false, false, kRecord>();
  } else {
    one_slot_ ? run<true, true, kRecord>() : run<true, false, kRecord>();
  }
}

void ListScheduler::begin(std::span<const std::int32_t> devices, std::uint64_t seed) {
  std::fill(first_item_.begin(), first_item_.end(), 0);
  for (std::size_t p = 0; p < devices.size(); ++p) {
    now_.nodes[p] = {.ready = 0, .n_missing = model_.n_missing[p], .device = devices[p]};
    ++first_item_[static_cast<std::size_t>(devices[p]) + 1];
  }
  for (std::size_t d = 0; d < model_.n_devices; ++d) first_item_[d + 1] += first_item_[d] + 1;
  std::fill(now_.n_queued.begin(), now_.n_queued.end(), 0);
  std::fill(now_.slot_free.begin(), now_.slot_free.end(), 0.0);
  std::fill(now_.next_start.begin(), now_.next_start.end(), kInfinity);
  now_.makespan = 0;
  now_.n_started = 0;
  if (model_.options.choice != Choice::fifo) chosen_.reset(devices);
  std::fill(last_start_.begin(), last_start_.end(), 0.0);
  if (model_.options.choice == Choice::random) {
    const Luck luck(model_, seed);
    for (std::size_t p = 0; p < model_.n_nodes; ++p) {
      first_[p] = static_cast<double>(luck.key(model_.node[p]) >> 11);
    }
  }
  for (std::size_t p = 0; p < model_.n_nodes && model_.n_missing[p] == 0; ++p) {
    const auto device = static_cast<std::size_t>(now_.nodes[p].device);
    push(device, p);
    now_.next_start[device] = 0;
  }
}

// The hot loop.
template <bool kTwoStage, bool kOneSlot, bool kRecord>
void ListScheduler::run() {
  const std::size_t n = model_.n_nodes;
  const std::size_t n_devices = model_.n_devices;
  for (std::size_t k = now_.n_started; k < n; ++k) {
    if constexpr (kRecord) {
      if (k % stride_ == 0 && k / stride_ < kept_.size()) {
        now_.n_started = k;
        kept_[k / stride_] = now_;
      }
    }
    const std::size_t device = earliest_device();
    const double start = now_.next_start[device];
    std::size_t p;
    if constexpr (kTwoStage) {
      Key* const queue = now_.queue.data() + first_item_[device];
      while (now_.n_queued[device] > 0 &&
             std::bit_cast<double>(static_cast<std::uint64_t>(queue[0] >> 64)) <= start) {
        const auto ready = static_cast<std::size_t>(static_cast<std::uint32_t>(pop(device)));
        chosen_.push(device, {.first = first_[ready],
                              .ready = now_.nodes[ready].ready,
                              .node = model_.node[ready],
                              .position = static_cast<std::int32_t>(ready)});
      }
      p = static_cast<std::size_t>(chosen_.pop(device).position);
      last_start_[device] = start;
    } else {
      p = static_cast<std::uint32_t>(pop(device));
    }
    const double end = start + model_.seconds(p, device);
    if constexpr (kRecord) {
      start_of_[k] = start;
      base_ready_[p] = now_.nodes[p].ready;
      base_end_[p] = end;
      nth_[p] = static_cast<std::uint32_t>(k);
    }
    now_.makespan = std::max(now_.makespan, end);
    if constexpr (kOneSlot) {
      now_.slot_free[device] = end;
    } else {
      *std::min_element(
          now_.slot_free.begin() + static_cast<std::ptrdiff_t>(first_slot_[device]),
          now_.slot_free.begin() + static_cast<std::ptrdiff_t>(first_slot_[device + 1])) = end;
    }
    const std::uint8_t* const class_from = class_.data() + device * n_devices;
    for (std::size_t e = first_out_[p]; e < first_out_[p + 1]; ++e) {
      const auto p_reader = static_cast<std::size_t>(out_[e].reader);
      NodeState& reader = now_.nodes[p_reader];
      const auto to = static_cast<std::size_t>(reader.device);
      const double away = transfer_seconds_[out_[e].tensor * n_classes_ + class_from[to]];
      const double arrival = to == device ? end : end + away;
      reader.ready = std::max(reader.ready, arrival);
      if (--reader.n_missing == 0) {
        push(to, p_reader);
        if (to != device) set_next_start(to);
      }
    }
    set_next_start(device);
  }
}

double ListScheduler::slot_free(std::size_t device) const {
  if (one_slot_) return now_.slot_free[device];
  return *std::min_element(
      now_.slot_free.begin() + static_cast<std::ptrdiff_t>(first_slot_[device]),
      now_.slot_free.begin() + static_cast<std::ptrdiff_t>(first_slot_[device + 1]));
}

void ListScheduler::set_next_start(std::size_t device) {
  double ready = kInfinity;
  if (now_.n_queued[device] > 0) {
    ready =
        std::bit_cast<double>(static_cast<std::uint64_t>(now_.queue[first_item_[device]] >> 64));
  }
  if (model_.options.choice != Choice::fifo && !chosen_.empty(device)) ready = last_start_[device];
  now_.next_start[device] = std::max(slot_free(device), ready);
}

std::size_t ListScheduler::earliest_device() const {
  std::size_t best = 0;
  double least = now_.next_start[0];
  for (std::size_t d = 1; d < model_.n_devices; ++d) {
    const bool less = now_.next_start[d] < least;
    best = less ? d : best;
    least = less ? now_.next_start[d] : least;
  }
  return best;
}

void ListScheduler::push(std::size_t device, std::size_t position) {
  // Instants are not negative, so that their bits order as they do.
  const Key key =
      (static_cast<Key>(std::bit_cast<std::uint64_t>(now_.nodes[position].ready)) << 64) |
      (static_cast<Key>(static_cast<std::uint32_t>(model_.node[position])) << 32) |
      static_cast<Key>(static_cast<std::uint32_t>(position));
  Key* const heap = now_.queue.data() + first_item_[device];
  std::size_t hole = now_.n_queued[device]++;
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 2;
    if (heap[parent] < key) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = key;
}

ListScheduler::Key ListScheduler::pop(std::size_t device) {
  Key* const heap = now_.queue.data() + first_item_[device];
  const Key top = heap[0];
  const std::size_t n = --now_.n_queued[device];
  const Key last = heap[n];
  std::size_t hole = 0;
  for (std::size_t child = 1; child < n; child = 2 * hole + 1) {
    if (child + 1 < n) child += heap[child + 1] < heap[child] ? 1 : 0;
    if (last < heap[child]) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = last;
  return top;
}

void ListScheduler::remove(std::size_t device, std::size_t position) {
  Key* const heap = now_.queue.data() + first_item_[device];
  const std::size_t n = now_.n_queued[device];
  std::size_t i = 0;
  while (static_cast<std::uint32_t>(heap[i]) != position) ++i;
  heap[i] = heap[n - 1];
  now_.n_queued[device] = static_cast<std::uint32_t>(n - 1);
  std::make_heap(heap, heap + n - 1, [](Key a, Key b) { return b < a; });
}

double ListScheduler::set_base(std::span<const std::int32_t> devices) {
  const std::size_t n = model_.n_nodes;
  if (nth_.size() != n) {
    start_of_.resize(n);
    base_ready_.resize(n);
    base_end_.resize(n);
    nth_.resize(n);
    const std::size_t bytes = n * (sizeof(NodeState) + sizeof(Key)) + 1;
    const std::size_t n_kept = std::clamp<std::size_t>(kMaxKeptBytes / bytes, 1, kMaxKept);
    stride_ = std::max<std::size_t>(1, (n + n_kept - 1) / n_kept);
    kept_.resize(n_kept);
  }
  begin(devices, 0);
  dispatch<true>();
  base_makespan_ = now_.makespan;
  return base_makespan_;
}

double ListScheduler::after_move(std::size_t position, std::int32_t device) {
  const State& base = kept_.front();
  const std::int32_t old_device = base.nodes[position].device;
  if (device == old_device) return base_makespan_;
  const auto to = static_cast<std::size_t>(device);
  double ready = 0;
  for (std::size_t e = first_in_[position]; e < first_in_[position + 1]; ++e) {
    const auto producer = static_cast<std::size_t>(in_[e].producer);
    const auto from = static_cast<std::size_t>(base.nodes[producer].device);
    ready = std::max(ready, base_end_[producer] + transfer(in_[e].tensor, from, to));
  }
  // Nothing that starts before the node is ready, here or there, can change.
  const double first_change = std::min(ready, base_ready_[position]);
  const auto first = static_cast<std::size_t>(
      std::lower_bound(start_of_.begin(), start_of_.end(), first_change) - start_of_.begin());
  now_ = kept_[std::min(first, model_.n_nodes - 1) / stride_];

  double arrived = 0;
  for (std::size_t e = first_in_[position]; e < first_in_[position + 1]; ++e) {
    const auto producer = static_cast<std::size_t>(in_[e].producer);
    if (nth_[producer] >= now_.n_started) continue;
    const auto from = static_cast<std::size_t>(base.nodes[producer].device);
    arrived = std::max(arrived, base_end_[producer] + transfer(in_[e].tensor, from, to));
  }
  now_.nodes[position].ready = arrived;
  now_.nodes[position].device = device;
  // Only the part of `device` needs more room than it has in the base; each has room for one more.
  if (now_.nodes[position].n_missing == 0) {
    remove(static_cast<std::size_t>(old_device), position);
    set_next_start(static_cast<std::size_t>(old_device));
    push(to, position);
    set_next_start(to);
  }
  dispatch<false>();
  return now_.makespan;
}

}  // namespace doppler::simulation
