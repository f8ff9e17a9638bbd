// Transfers under way, for the three networks. Private to executor/simulator.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "executor/simulator/model.h"

namespace doppler::simulation {

// Things to happen at instants, earliest first; no order within an instant.
class Agenda {
 public:
  void clear() { items_.clear(); }
  void reserve(std::size_t n) { items_.reserve(n); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  // The earliest instant; infinity if there is nothing.
  [[nodiscard]] double next() const {
    return items_.empty() ? std::numeric_limits<double>::infinity() : items_.front().time;
  }
  void add(double time, std::uint32_t what);
  // Takes one thing off the earliest instant.
  std::uint32_t take();

 private:
  struct Item {
    double time;
    std::uint32_t what;
  };
  std::vector<Item> items_;  // a binary heap
};

// Moves transfers. The sequence is: request() any number at an instant, then next() and arrivals().
//
// fair: channels share nothing with one another, since a transfer holds exactly one. Each channel
// keeps the bytes that its moving transfers have left. At each of its events (a transfer begins to
// move, or arrives) these are advanced by rate x time, those whose arrival was predicted for this
// instant are taken off, the rates are shared anew (max-min: equal shares, what a slow link cannot
// use goes to the others), and arrivals are predicted as now + left / rate. Those predicted for the
// same instant, in double, arrive together. A transfer of no bytes, or without any limit to its
// rate, arrives when its latency is over.
class TransferNetwork {
 public:
  explicit TransferNetwork(const Model& model);

  // Forgets everything; the luck is that of the coming run.
  void reset(const Luck& luck);

  // Requests at `now` one transfer of `source`, which lies on `from`, to each other device that has
  // a reader of it, ascending; they are appended to `transfers`. `devices` is by position.
  void request(const Source& source, bool of_input, std::int32_t from, double now,
               std::span<const std::int32_t> devices, std::vector<Transfer>& transfers);
  // The next instant at which something happens; infinity if nothing is under way.
  [[nodiscard]] double next() const { return agenda_.next(); }
  // Everything that happens at `now` = next(); transfers that arrive are appended to `arrived` and
  // their `end` is set.
  void arrivals(double now, std::vector<Transfer>& transfers, std::vector<std::uint32_t>& arrived);

 private:
  struct Moving {
    std::uint32_t transfer;
    double left;       // bytes
    double limit;      // bytes/s of its link
    double rate;       // bytes/s
    double predicted;  // instant of arrival
  };
  struct Channel {
    double capacity = 0;  // bytes/s
    double since = 0;     // instant up to which `left` is advanced
    double next = 0;      // the earliest predicted arrival
    bool changed = false;
    std::vector<Moving> moving;
  };

  // Fills in the start and, except in `fair`, the end of transfers[index].
  void request_one(double now, std::uint32_t index, std::vector<Transfer>& transfers);
  // `fair`: takes what is on the agenda for `now`; channels at which something happens are noted.
  void collect(double now, const std::vector<Transfer>& transfers,
               std::vector<std::uint32_t>& arrived);
  // Whether it arrives as soon as its latency is over (`fair`), unseen by the others.
  [[nodiscard]] bool takes_no_time(const Transfer& transfer, const Route& route) const;
  void begin_to_move(double now, std::uint32_t index, const Transfer& transfer);
  void update(double now, Channel& channel, std::uint32_t number);
  void share(Channel& channel);
  std::uint32_t channel_number(ChannelId id);

  const Model& model_;
  Luck luck_;
  Agenda agenda_;
  std::vector<double> channel_free_;  // by ChannelId; `channel` only
  std::vector<std::int32_t> used_;    // channels that are not at their initial state
  std::vector<Channel> channels_;     // `fair` only: those met so far
  std::unordered_map<std::int32_t, std::uint32_t> number_of_channel_;
  std::vector<std::uint32_t> changed_;
  std::vector<std::int32_t> destinations_;
  std::vector<std::uint32_t> by_limit_;
};

}  // namespace doppler::simulation
