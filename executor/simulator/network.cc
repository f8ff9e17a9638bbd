#include "executor/simulator/network.h"

#include <algorithm>
#include <cmath>

namespace doppler::simulation {
namespace {

// In `fair` the agenda holds latencies that end (a transfer) and predicted arrivals (a channel).
constexpr std::uint32_t kChannelBit = 0x80000000U;

}  // namespace

void Agenda::add(double time, std::uint32_t what) {
  std::size_t hole = items_.size();
  items_.push_back({time, what});
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 2;
    if (items_[parent].time <= time) break;
    items_[hole] = items_[parent];
    hole = parent;
  }
  items_[hole] = {time, what};
}

std::uint32_t Agenda::take() {
  const std::uint32_t what = items_.front().what;
  const Item last = items_.back();
  items_.pop_back();
  const std::size_t n = items_.size();
  if (n == 0) return what;
  std::size_t hole = 0;
  for (std::size_t child = 1; child < n; child = 2 * hole + 1) {
    if (child + 1 < n && items_[child + 1].time < items_[child].time) ++child;
    if (last.time <= items_[child].time) break;
    items_[hole] = items_[child];
    hole = child;
  }
  items_[hole] = last;
  return what;
}

TransferNetwork::TransferNetwork(const Model& model) : model_(model), luck_(model, 0) {
  agenda_.reserve(model.max_transfers);
  destinations_.reserve(model.max_transfers == 0 ? 0 : model.n_nodes);
  if (model.options.network == Network::channel) {
    channel_free_.assign(model.cluster.n_channels(), 0);
  }
}

void TransferNetwork::reset(const Luck& luck) {
  luck_ = luck;
  agenda_.clear();
  for (std::int32_t channel : used_) channel_free_[static_cast<std::size_t>(channel)] = 0;
  used_.clear();
  for (Channel& channel : channels_) channel.moving.clear();
}

void TransferNetwork::request(const Source& source, bool of_input, std::int32_t from, double now,
                              std::span<const std::int32_t> devices,
                              std::vector<Transfer>& transfers) {
  destinations_.clear();
  for (std::int32_t reader : model_.readers_of(source)) {
    const std::int32_t to = devices[static_cast<std::size_t>(reader)];
    if (to != from) destinations_.push_back(to);
  }
  if (destinations_.size() > 1) {
    std::sort(destinations_.begin(), destinations_.end());
    destinations_.erase(std::unique(destinations_.begin(), destinations_.end()),
                        destinations_.end());
  }
  for (std::int32_t to : destinations_) {
    const auto index = static_cast<std::uint32_t>(transfers.size());
    transfers.push_back({.source = &source, .of_input = of_input, .from = from, .to = to});
    request_one(now, index, transfers);
  }
}

void TransferNetwork::request_one(double now, std::uint32_t index,
                                  std::vector<Transfer>& transfers) {
  Transfer& transfer = transfers[index];
  const Route route =
      model_.cost_model.route(model_.cluster, DeviceId(transfer.from), DeviceId(transfer.to));
  const double factor = luck_.transfer_factor(transfer);
  transfer.requested = now;
  transfer.start = now;
  if (model_.options.network == Network::fair) {
    // Also without latency it waits for arrivals(): all that begin to move at one instant share
    // their channel anew once, not once each.
    transfer.end = now + route.latency * factor;
    agenda_.add(transfer.end, index);
    return;
  }
  const double duration = (route.latency + transfer.source->bytes / route.bandwidth) * factor;
  if (model_.options.network == Network::channel) {
    double& free = channel_free_[route.channel.index()];
    if (free == 0) used_.push_back(route.channel.value);
    transfer.start = std::max(now, free);
    free = transfer.start + duration;
  }
  transfer.end = transfer.start + duration;
  agenda_.add(transfer.end, index);
}

void TransferNetwork::arrivals(double now, std::vector<Transfer>& transfers,
                               std::vector<std::uint32_t>& arrived) {
  if (model_.options.network != Network::fair) {
    while (agenda_.next() == now) arrived.push_back(agenda_.take());
    return;
  }
  // Again, since a new share may let a transfer arrive at this very instant.
  while (agenda_.next() == now) {
    collect(now, transfers, arrived);
    for (std::uint32_t number : changed_) {
      Channel& channel = channels_[number];
      std::erase_if(channel.moving, [&](const Moving& moving) {
        if (moving.predicted != now) return false;
        transfers[moving.transfer].end = now;
        arrived.push_back(moving.transfer);
        return true;
      });
      update(now, channel, number);
    }
    changed_.clear();
  }
}

void TransferNetwork::collect(double now, const std::vector<Transfer>& transfers,
                              std::vector<std::uint32_t>& arrived) {
  while (agenda_.next() == now) {
    const std::uint32_t what = agenda_.take();
    if ((what & kChannelBit) == 0) {
      const Transfer& transfer = transfers[what];
      const Route route =
          model_.cost_model.route(model_.cluster, DeviceId(transfer.from), DeviceId(transfer.to));
      if (takes_no_time(transfer, route)) {
        arrived.push_back(what);
      } else {
        begin_to_move(now, what, transfer);
      }
      continue;
    }
    const std::uint32_t number = what & ~kChannelBit;
    Channel& channel = channels_[number];
    // Rates may have changed since this arrival was predicted.
    if (channel.moving.empty() || channel.next != now || channel.changed) continue;
    channel.changed = true;
    changed_.push_back(number);
  }
}

bool TransferNetwork::takes_no_time(const Transfer& transfer, const Route& route) const {
  return transfer.source->bytes == 0 ||
         std::isinf(std::min(route.bandwidth, model_.cluster.channel_capacity(route.channel)));
}

void TransferNetwork::begin_to_move(double now, std::uint32_t index, const Transfer& transfer) {
  const Route route =
      model_.cost_model.route(model_.cluster, DeviceId(transfer.from), DeviceId(transfer.to));
  const std::uint32_t number = channel_number(route.channel);
  Channel& channel = channels_[number];
  if (channel.moving.empty()) channel.since = now;
  channel.moving.push_back({.transfer = index,
                            .left = transfer.source->bytes * luck_.transfer_factor(transfer),
                            .limit = route.bandwidth,
                            .rate = 0,
                            .predicted = std::numeric_limits<double>::infinity()});
  if (!channel.changed) {
    channel.changed = true;
    changed_.push_back(number);
  }
}

void TransferNetwork::update(double now, Channel& channel, std::uint32_t number) {
  channel.changed = false;
  const double elapsed = now - channel.since;
  channel.since = now;
  if (elapsed > 0) {
    for (Moving& moving : channel.moving) {
      if (moving.rate > 0) moving.left = std::max(0.0, moving.left - moving.rate * elapsed);
    }
  }
  if (channel.moving.empty()) return;
  share(channel);
  channel.next = std::numeric_limits<double>::infinity();
  for (Moving& moving : channel.moving) {
    moving.predicted = now + moving.left / moving.rate;
    channel.next = std::min(channel.next, moving.predicted);
  }
  agenda_.add(channel.next, number | kChannelBit);
}

void TransferNetwork::share(Channel& channel) {
  auto& moving = channel.moving;
  by_limit_.resize(moving.size());
  for (std::size_t i = 0; i < moving.size(); ++i) by_limit_[i] = static_cast<std::uint32_t>(i);
  std::sort(by_limit_.begin(), by_limit_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return moving[a].limit < moving[b].limit; });
  double left = channel.capacity;
  std::size_t i = 0;
  for (; i < by_limit_.size(); ++i) {
    Moving& next = moving[by_limit_[i]];
    if (next.limit > left / static_cast<double>(by_limit_.size() - i)) break;
    next.rate = next.limit;
    if (std::isfinite(left)) left -= next.rate;
  }
  // All others get the same number, so that equal transfers arrive together.
  const double equal = left / static_cast<double>(by_limit_.size() - i);
  for (; i < by_limit_.size(); ++i) moving[by_limit_[i]].rate = equal;
}

std::uint32_t TransferNetwork::channel_number(ChannelId id) {
  const auto [found, added] =
      number_of_channel_.try_emplace(id.value, static_cast<std::uint32_t>(channels_.size()));
  if (added) {
    channels_.emplace_back();
    channels_.back().capacity = model_.cluster.channel_capacity(id);
  }
  return found->second;
}

}  // namespace doppler::simulation
