// The simulation proper: work-conserving execution as a loop over instants. Handles everything that
// RunOptions can ask of Schedule::work_conserving. Private to executor/simulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/simulator/model.h"
#include "executor/simulator/network.h"

namespace doppler::simulation {

// The queue of ready nodes of each device, in one array: a device's part has room for all of its
// nodes, so that nothing is allocated in a run.
class ReadyQueues {
 public:
  struct Item {
    double first = 0;       // what decides; smallest first
    double ready = 0;       // then the ready instant,
    std::int32_t node = 0;  // then the user's order
    std::int32_t position = 0;
  };

  ReadyQueues(std::size_t n_nodes, std::size_t n_devices);

  void reset(std::span<const std::int32_t> devices);
  [[nodiscard]] bool empty(std::size_t device) const { return n_[device] == 0; }
  void push(std::size_t device, const Item& item);
  Item pop(std::size_t device);  // requires a queue that is not empty

 private:
  std::vector<std::uint32_t> first_;  // [n_devices + 1]
  std::vector<std::uint32_t> n_;
  std::vector<Item> items_;  // each part a binary heap
};

class EventLoop {
 public:
  explicit EventLoop(const Model& model);

  // One run; `devices` is by position. The timeline is overwritten. O((nodes + edges) log nodes).
  void run(std::span<const std::int32_t> devices, std::uint64_t seed, Timeline& timeline);

 private:
  void begin(std::span<const std::int32_t> devices, std::uint64_t seed, Timeline& timeline);
  void collect(double now);
  void deliver(const Source& source, std::int32_t device, double now);
  void make_ready(std::size_t position, double now);
  void start_nodes(std::size_t device, double now);
  void touch(std::size_t device);

  const Model& model_;
  Luck luck_;
  TransferNetwork network_;
  ReadyQueues queues_;
  Agenda ends_;  // of nodes, by position
  std::span<const std::int32_t> devices_;
  Timeline* timeline_ = nullptr;
  std::vector<std::int32_t> n_missing_;
  // Free slots of each device: a bit a slot, in words of 64 slots.
  std::vector<std::uint32_t> first_word_;
  std::vector<std::uint64_t> free_;
  std::vector<std::uint64_t> all_free_;
  std::vector<std::uint32_t> ended_;
  std::vector<std::uint32_t> arrived_;
  std::vector<std::uint32_t> touched_;
  std::vector<bool> is_touched_;
};

}  // namespace doppler::simulation
