#include "executor/runtime/dispatcher.h"

#include <algorithm>
#include <utility>

#include "executor/engine.h"
#include "graphs/error.h"

namespace doppler::runtime {

using simulation::ReadyQueues;
using simulation::Source;

Dispatcher::Dispatcher(const RunPlan& plan, DeviceApi& api, const StreamSet& streams,
                       std::span<const Buffer> inputs, const Lookahead& lookahead)
    : plan_(plan),
      model_(plan.model),
      api_(api),
      streams_(streams),
      lookahead_(lookahead),
      bulk_(plan.model.options.schedule == Schedule::bulk_synchronous),
      luck_(plan.model, plan.model.options.seed),
      buffers_(plan.blocks.size()),
      is_held_(plan.blocks.size(), false),
      bytes_in_use_(plan.model.n_devices, 0),
      lanes_(streams.lanes.size()),
      ready_(plan.n_nodes(), plan.model.n_devices),
      chainable_(plan.n_nodes(), plan.model.n_devices),
      n_missing_(plan.model.n_missing),
      n_uncertain_(plan.model.n_missing),
      slot_of_(plan.n_nodes(), 0),
      is_submitted_(plan.n_nodes(), false),
      has_ended_(plan.n_nodes(), false),
      is_requested_(plan.transfers.size(), false),
      device_is_touched_(plan.model.n_devices, false),
      lane_is_touched_(streams.lanes.size(), false) {
  for (const PlannedBlock& block : plan.blocks) uses_.push_back(block.uses);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    buffers_[plan.inputs[i].block] = inputs[i];
    bytes_in_use_[plan.inputs[i].device.index()] += inputs[i].bytes;
  }
  for (std::size_t d = 0; d < streams.slots.size(); ++d) {
    first_slot_.push_back(slots_.size());
    for (Stream* stream : streams.slots[d])
      slots_.push_back({stream, static_cast<std::int32_t>(d)});
  }
  first_slot_.push_back(slots_.size());
  for (std::size_t l = 0; l < lanes_.size(); ++l) lanes_[l].stream = streams.lanes[l];
  if (lookahead.chained && !bulk_) {
    std::vector<std::int32_t> source(lanes_.size(), -1);
    for (Lane& lane : lanes_) lane.may_chain = true;
    for (std::size_t t = 0; t < plan.transfers.size(); ++t) {
      const std::uint32_t l = streams.lane_of_transfer[t];
      const std::int32_t from = plan.transfers[t].from;
      const bool one_slot = streams.slots[static_cast<std::size_t>(from)].size() == 1;
      if (!one_slot || (source[l] >= 0 && source[l] != from)) lanes_[l].may_chain = false;
      source[l] = from;
    }
  }
  // So that nothing is allocated while the clock runs.
  std::vector<std::size_t> n_in_lane(lanes_.size(), 0);
  for (const std::uint32_t lane : streams.lane_of_transfer) ++n_in_lane[lane];
  for (std::size_t l = 0; l < lanes_.size(); ++l) lanes_[l].queue.reserve(n_in_lane[l]);
  request_order_.reserve(plan.transfers.size());
  touched_devices_.reserve(plan.model.n_devices);
  touched_lanes_.reserve(lanes_.size());
}

Dispatcher::~Dispatcher() { release_all(); }

void Dispatcher::start(simulation::Timeline& timeline) {
  const std::size_t n = plan_.n_nodes();
  timeline_ = &timeline;
  timeline.makespan = 0;
  timeline.ready.assign(n, 0);
  timeline.start.assign(n, 0);
  timeline.end.assign(n, 0);
  timeline.slot.assign(n, 0);
  std::vector<simulation::Transfer> transfers;
  for (const PlannedTransfer& planned : plan_.transfers) {
    transfers.push_back({planned.source, planned.of_input, planned.from, planned.to});
  }
  timeline.transfers = std::move(transfers);
  ready_.reset(plan_.devices);
  chainable_.reset(plan_.devices);
  n_left_ = n + plan_.transfers.size();

  api_.begin(n_left_, *this);
  const std::lock_guard lock(mutex_);
  submit_first();
}

void Dispatcher::wait() {
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return n_under_way_ == 0 && (failed_ || n_left_ == 0); });
  }
  api_.end();

  if (failed_) {
    release_all();
    if (lack_) throw OutOfMemoryError(*lack_, failure_);
    throw RunError(failure_);
  }
  simulation::Timeline& timeline = *timeline_;
  for (const double end : timeline.end) timeline.makespan = std::max(timeline.makespan, end);
  std::vector<simulation::Transfer> ordered;
  ordered.reserve(request_order_.size());
  for (const std::uint32_t t : request_order_) ordered.push_back(timeline.transfers[t]);
  timeline.transfers = std::move(ordered);
}

void Dispatcher::release_all() {
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (!is_held_[b]) continue;
    is_held_[b] = false;
    slots_[first_slot_[plan_.blocks[b].device.index()]].stream->release(buffers_[b]);
  }
}

void Dispatcher::submit_first() {
  const std::uint32_t first_input = plan_.first_transfer.back();
  for (auto t = first_input; t < plan_.transfers.size(); ++t) request(t);
  if (bulk_) {
    phase_left_ = plan_.transfers.size() - first_input;
    if (phase_left_ == 0) next_phase();
  } else {
    for (std::size_t p = 0; p < plan_.n_nodes(); ++p) {
      if (n_missing_[p] == 0) make_ready(p, 0);
    }
    // Placed inputs that lie where they are read.
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      deliver(model_.inputs[i], model_.input_device[i], true, 0);
    }
  }
  pump();
}

void Dispatcher::completed(const Completion& completion) {
  const std::lock_guard lock(mutex_);
  --n_under_way_;
  --n_left_;
  last_end_ = std::max(last_end_, completion.end);
  const std::size_t command = completion.command.index();
  const std::size_t n = plan_.n_nodes();
  if (command < n) {
    node_ended(command, completion);
  } else {
    transfer_ended(command - n, completion);
  }
  if (!failed_ && bulk_ && --phase_left_ == 0) next_phase();
  pump();
  if (n_under_way_ > 0) return;
  // Under the lock: once it is free, wait() may return and this object may go.
  done_.notify_one();
}

void Dispatcher::node_ended(std::size_t position, const Completion& completion) {
  Slot& slot = slots_[slot_of_[position]];
  --slot.n_under_way;
  has_ended_[position] = true;
  timeline_->start[position] = completion.start;
  timeline_->end[position] = completion.end;
  timeline_->slot[position] = static_cast<std::int32_t>(
      slot_of_[position] - first_slot_[static_cast<std::size_t>(slot.device)]);
  if (!completion.failure.empty()) fail_node(position, completion.failure);
  if (failed_) return;
  touch_device(static_cast<std::size_t>(slot.device));
  for (const std::uint32_t operand : plan_.operands_of(position)) use_ended(operand);
  const NodeId node(model_.node[position]);
  const std::size_t first = model_.graph.first_tensor(node).index();
  for (std::size_t t = first; t < first + model_.graph.n_outputs(node); ++t) {
    use_ended(static_cast<std::uint32_t>(t));
  }
  if (bulk_) return;
  for (const Source& source : model_.sources_of(position)) {
    deliver(source, slot.device, false, completion.end);
  }
  request_transfers(position, completion.end);
}

void Dispatcher::transfer_ended(std::size_t transfer, const Completion& completion) {
  const PlannedTransfer& planned = plan_.transfers[transfer];
  const std::size_t lane = streams_.lane_of_transfer[transfer];
  --lanes_[lane].n_under_way;
  timeline_->transfers[transfer].start = completion.start;
  timeline_->transfers[transfer].end = completion.end;
  if (!completion.failure.empty()) fail_transfer(transfer, completion.failure);
  if (failed_) return;
  touch_lane(lane);
  use_ended(planned.from_block);
  if (!bulk_) deliver(*planned.source, planned.to, true, completion.end);
}

// `source` is on `device` now: made there, or arrived.
void Dispatcher::deliver(const Source& source, std::int32_t device, bool arrived, double now) {
  for (const std::int32_t reader : model_.readers_of(source)) {
    const auto p = static_cast<std::size_t>(reader);
    if (plan_.devices[p] != device) continue;
    timeline_->ready[p] = std::max(timeline_->ready[p], now);
    // What is made here was certain from its submission on.
    if (arrived) --n_uncertain_[p];
    if (--n_missing_[p] > 0) {
      if (arrived) consider_chaining(p);
    } else if (!is_submitted_[p]) {
      make_ready(p, timeline_->ready[p]);
    }
  }
}

void Dispatcher::make_ready(std::size_t position, double now) {
  timeline_->ready[position] = now;
  const auto device = static_cast<std::size_t>(plan_.devices[position]);
  ready_.push(device, item(position, now));
  touch_device(device);
}

void Dispatcher::consider_chaining(std::size_t position) {
  if (!lookahead_.chained || n_uncertain_[position] > 0 || n_missing_[position] == 0) return;
  const auto device = static_cast<std::size_t>(plan_.devices[position]);
  chainable_.push(device, item(position, ++n_chainable_));
  touch_device(device);
}

ReadyQueues::Item Dispatcher::item(std::size_t position, double ready) const {
  const std::int32_t node = model_.node[position];
  double first = 0;
  switch (model_.options.choice) {
    case Choice::fifo:
      break;
    case Choice::priority:
      first = -model_.priority[position];
      break;
    case Choice::random:
      first = static_cast<double>(luck_.key(node) >> 11);
      break;
  }
  return {first, ready, node, static_cast<std::int32_t>(position)};
}

void Dispatcher::request_transfers(std::size_t position, double now) {
  for (auto t = plan_.first_transfer[position]; t < plan_.first_transfer[position + 1]; ++t) {
    timeline_->transfers[t].requested = now;
    if (!is_requested_[t]) request(t);
  }
}

void Dispatcher::request(std::uint32_t transfer) {
  is_requested_[transfer] = true;
  request_order_.push_back(transfer);
  const std::size_t lane = streams_.lane_of_transfer[transfer];
  lanes_[lane].queue.push_back(transfer);
  touch_lane(lane);
}

void Dispatcher::use_ended(std::uint32_t block) {
  if (--uses_[block] > 0 || !is_held_[block]) return;
  is_held_[block] = false;
  const std::size_t device = plan_.blocks[block].device.index();
  bytes_in_use_[device] -= buffers_[block].bytes;
  slots_[first_slot_[device]].stream->release(buffers_[block]);
}

// Begins the next phase that has commands. Nodes are ready, and transfers requested, when the phase
// before is over.
void Dispatcher::next_phase() {
  while (phase_left_ == 0) {
    if (phase_is_transfers_) {
      if (phase_end_ == plan_.n_nodes()) return;
      const auto level = [&](std::size_t p) { return model_.graph.level(NodeId(model_.node[p])); };
      phase_begin_ = phase_end_;
      while (phase_end_ < plan_.n_nodes() && level(phase_end_) == level(phase_begin_)) {
        make_ready(phase_end_++, last_end_);
      }
      phase_left_ = phase_end_ - phase_begin_;
    } else {
      for (std::size_t p = phase_begin_; p < phase_end_; ++p) request_transfers(p, last_end_);
      phase_left_ = plan_.first_transfer[phase_end_] - plan_.first_transfer[phase_begin_];
    }
    phase_is_transfers_ = !phase_is_transfers_;
  }
}

void Dispatcher::pump() {
  // A device touches itself (which fill_device() sees to) and lanes; a lane touches nothing.
  for (const std::uint32_t device : touched_devices_) {
    if (!failed_) fill_device(device);
    device_is_touched_[device] = false;
  }
  touched_devices_.clear();
  for (const std::uint32_t lane : touched_lanes_) {
    if (!failed_) fill_lane(lanes_[lane]);
    lane_is_touched_[lane] = false;
  }
  touched_lanes_.clear();
  if (n_under_way_ == 0 && n_left_ > 0) {
    fail("the run came to a halt with commands left; this is a fault of doppler-gym");
  }
}

void Dispatcher::fill_device(std::size_t device) {
  while (!failed_ && !ready_.empty(device)) {
    Slot* slot = least_busy_slot(device);
    if (slot->n_under_way >= lookahead_.depth) return;
    submit_node(static_cast<std::size_t>(ready_.pop(device).position), *slot);
  }
  while (!failed_ && !chainable_.empty(device)) {
    Slot* slot = least_busy_slot(device);
    if (slot->n_under_way >= lookahead_.depth) return;
    const auto p = static_cast<std::size_t>(chainable_.pop(device).position);
    // It may have become ready since, or wait for another slot: then it starts when it is ready.
    if (is_submitted_[p] || n_missing_[p] == 0) continue;
    Slot* behind = slot_of_producers(p);
    if (behind != nullptr && behind->n_under_way < lookahead_.depth) submit_node(p, *behind);
  }
}

Dispatcher::Slot* Dispatcher::least_busy_slot(std::size_t device) {
  const auto first = slots_.begin() + static_cast<std::ptrdiff_t>(first_slot_[device]);
  const auto last = slots_.begin() + static_cast<std::ptrdiff_t>(first_slot_[device + 1]);
  return &*std::min_element(
      first, last, [](const Slot& a, const Slot& b) { return a.n_under_way < b.n_under_way; });
}

// The slot in which all producers are that have not ended; null if they are in several.
Dispatcher::Slot* Dispatcher::slot_of_producers(std::size_t position) {
  Slot* slot = nullptr;
  for (const EdgeId e : model_.graph.in_edges(NodeId(model_.node[position]))) {
    const auto producer =
        static_cast<std::size_t>(model_.graph.position(model_.graph.edge(e).producer));
    // What comes from elsewhere has arrived, or the node would not be chainable.
    if (has_ended_[producer] || plan_.devices[producer] != plan_.devices[position]) continue;
    Slot* here = &slots_[slot_of_[producer]];
    if (slot != nullptr && slot != here) return nullptr;
    slot = here;
  }
  return slot;
}

void Dispatcher::submit_node(std::size_t position, Slot& slot) {
  const NodeId node(model_.node[position]);
  operand_buffers_.clear();
  for (const std::uint32_t operand : plan_.operands_of(position)) {
    operand_buffers_.push_back(buffers_[operand]);
  }
  output_buffers_.clear();
  const std::size_t first = model_.graph.first_tensor(node).index();
  try {
    for (std::size_t t = first; t < first + model_.graph.n_outputs(node); ++t) {
      allocate(static_cast<std::uint32_t>(t), *slot.stream);
      output_buffers_.push_back(buffers_[t]);
    }
    slot.stream->run({.id = CommandId(static_cast<std::int64_t>(position)),
                      .node = node,
                      .inputs = operand_buffers_,
                      .outputs = output_buffers_});
  } catch (const RunError& error) {
    fail_node(position, error.what());
    return;
  }
  is_submitted_[position] = true;
  slot_of_[position] = static_cast<std::uint32_t>(&slot - slots_.data());
  ++slot.n_under_way;
  ++n_under_way_;
  if (!lookahead_.chained || bulk_) return;
  for (const Source& source : model_.sources_of(position)) {
    for (const std::int32_t reader : model_.readers_of(source)) {
      const auto p = static_cast<std::size_t>(reader);
      if (plan_.devices[p] != slot.device) continue;
      --n_uncertain_[p];
      consider_chaining(p);
    }
  }
  for (auto t = plan_.first_transfer[position]; t < plan_.first_transfer[position + 1]; ++t) {
    if (lanes_[streams_.lane_of_transfer[t]].may_chain) request(t);
  }
}

void Dispatcher::fill_lane(Lane& lane) {
  while (!failed_ && lane.next < lane.queue.size() && lane.n_under_way < lookahead_.depth) {
    submit_transfer(lane.queue[lane.next++], lane);
  }
}

void Dispatcher::submit_transfer(std::uint32_t transfer, Lane& lane) {
  const PlannedTransfer& planned = plan_.transfers[transfer];
  const auto producer = CommandId(producer_of(planned));
  const bool waits = !planned.of_input && !has_ended_[producer.index()];
  try {
    allocate(planned.to_block, *lane.stream);
    lane.stream->copy({.id = CommandId(static_cast<std::int64_t>(plan_.n_nodes() + transfer)),
                       .after = waits ? std::span(&producer, 1) : std::span<const CommandId>(),
                       .from = buffers_[planned.from_block],
                       .to = buffers_[planned.to_block],
                       .least_seconds = emulates_links_ ? planned.seconds : 0});
  } catch (const RunError& error) {
    fail_transfer(transfer, error.what());
    return;
  }
  ++lane.n_under_way;
  ++n_under_way_;
}

void Dispatcher::allocate(std::uint32_t block, Stream& stream) {
  const PlannedBlock& planned = plan_.blocks[block];
  buffers_[block] = {.device = planned.device};
  if (planned.bytes == 0) return;
  const std::size_t device = planned.device.index();
  try {
    buffers_[block] = stream.allocate(planned.device, planned.bytes);
  } catch (const RunError& error) {
    const double available = static_cast<double>(api_.memory(planned.device));
    const std::size_t needed = bytes_in_use_[device] + planned.bytes;
    lack_ = {planned.device, static_cast<double>(needed), available};
    throw RunError("device " + std::to_string(device) + " has no room for " +
                   std::to_string(planned.bytes) + " bytes beside the " +
                   std::to_string(bytes_in_use_[device]) + " in use (" + error.what() +
                   "); place fewer nodes there, or cut them into more shards");
  }
  is_held_[block] = true;
  bytes_in_use_[device] += planned.bytes;
}

std::int32_t Dispatcher::producer_of(const PlannedTransfer& transfer) const {
  if (transfer.of_input) return 0;
  return model_.graph.position(model_.graph.tensor_producer(TensorId(transfer.source->id)));
}

void Dispatcher::touch_device(std::size_t device) {
  if (device_is_touched_[device]) return;
  device_is_touched_[device] = true;
  touched_devices_.push_back(static_cast<std::uint32_t>(device));
}

void Dispatcher::touch_lane(std::size_t lane) {
  if (lane_is_touched_[lane]) return;
  lane_is_touched_[lane] = true;
  touched_lanes_.push_back(static_cast<std::uint32_t>(lane));
}

void Dispatcher::fail_node(std::size_t position, const std::string& why) {
  fail("node '" + std::string(model_.graph.name(NodeId(model_.node[position]))) + "' on device " +
       std::to_string(plan_.devices[position]) + " failed: " + why);
}

void Dispatcher::fail_transfer(std::size_t transfer, const std::string& why) {
  const PlannedTransfer& planned = plan_.transfers[transfer];
  const Graph& graph = model_.graph;
  const auto id = static_cast<std::size_t>(planned.source->id);
  const std::string what =
      planned.of_input
          ? "graph input '" + graph.inputs()[id].name + "'"
          : "the output of node '" +
                std::string(graph.name(graph.tensor_producer(TensorId(planned.source->id)))) + "'";
  fail("the transfer of " + what + " from device " + std::to_string(planned.from) + " to " +
       std::to_string(planned.to) + " failed: " + why);
}

// The first failure counts: those that follow are its consequences.
void Dispatcher::fail(std::string message) {
  if (failed_) return;
  failed_ = true;
  failure_ = std::move(message);
}

}  // namespace doppler::runtime
