// The fast path of the simulator, for transfers that do not contend: no events at all.
//
// Without contention, a node's ready instant is known as soon as its last producer has started, and
// the nodes of the whole system can be started one after another in the order of their start times:
// the device whose next start is earliest goes first. This needs every duration to be positive (a
// node that is not known yet has a producer that has not started, so that it becomes ready after
// the start that is chosen). It gives the numbers of EventLoop, bit for bit. Private to
// executor/simulator.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/simulator/event_loop.h"
#include "executor/simulator/model.h"

namespace doppler::simulation {

class ListScheduler {
 public:
  // Whether it may stand in for EventLoop: work conserving, independent network, no noise, inputs
  // replicated, memory that cannot run out, durations that are positive and not lost in rounding.
  static bool applies(const Model& model);

  // Requires applies(model).
  explicit ListScheduler(const Model& model);

  // The makespan of an assignment, by position. Choice::random draws from `seed`.
  double makespan(std::span<const std::int32_t> devices, std::uint64_t seed);

  // One-node changes, Choice::fifo alone. set_base() keeps the state at some of the starts of its
  // run; after_move() resumes at the last that comes before the node was, or would be, ready.
  [[nodiscard]] bool can_resume() const { return model_.options.choice == Choice::fifo; }
  double set_base(std::span<const std::int32_t> devices);
  double after_move(std::size_t position, std::int32_t device);

 private:
  // A ready instant above (user's order, position): one comparison orders a queue.
  __extension__ using Key = unsigned __int128;

  struct OutEdge {
    std::int32_t reader;   // position
    std::uint32_t tensor;  // row in transfer_seconds_
  };
  struct InEdge {
    std::int32_t producer;  // position
    std::uint32_t tensor;
  };
  // What an edge touches of its reader, together in memory.
  struct NodeState {
    double ready;            // the latest arrival so far
    std::int32_t n_missing;  // tensors
    std::int32_t device;
  };
  // The state before a start, of everything that the loop changes.
  struct State {
    std::vector<NodeState> nodes;         // by position
    std::vector<Key> queue;               // a heap a device, in its part
    std::vector<std::uint32_t> n_queued;  // by device
    std::vector<double> slot_free;        // by slot
    std::vector<double> next_start;       // by device; infinity if nothing is queued
    double makespan = 0;
    std::size_t n_started = 0;
  };

  void begin(std::span<const std::int32_t> devices, std::uint64_t seed);
  template <bool kTwoStage, bool kOneSlot, bool kRecord>
  void run();
  template <bool kRecord>
  void dispatch();
  void push(std::size_t device, std::size_t position);
  Key pop(std::size_t device);
  void remove(std::size_t device, std::size_t position);
  void set_next_start(std::size_t device);
  [[nodiscard]] double slot_free(std::size_t device) const;
  [[nodiscard]] std::size_t earliest_device() const;
  [[nodiscard]] double transfer(std::uint32_t tensor, std::size_t from, std::size_t to) const {
    if (from == to) return 0;
    return transfer_seconds_[tensor * n_classes_ + class_[from * model_.n_devices + to]];
  }

  const Model& model_;
  std::vector<std::uint32_t> first_out_;  // by position
  std::vector<OutEdge> out_;
  std::vector<std::uint32_t> first_in_;  // by position
  std::vector<InEdge> in_;
  // Pairs of different devices with equal latency and bandwidth are a class.
  std::size_t n_classes_ = 0;
  std::vector<std::uint8_t> class_;       // [from, to]; 0 for a device with itself
  std::vector<double> transfer_seconds_;  // [tensor, class]
  std::vector<std::size_t> first_slot_;   // by device
  bool one_slot_ = true;

  std::vector<std::uint32_t> first_item_;  // by device: its part of the queue
  State now_;
  std::vector<double> last_start_;  // by device; what `chosen_` holds was ready by then
  ReadyQueues chosen_;              // priority, random: nodes that are ready, by the choice rule
  std::vector<double> first_;       // random: keys, by position

  // The base of one-node changes.
  double base_makespan_ = 0;
  std::vector<double> start_of_;    // by start
  std::vector<double> base_ready_;  // by position
  std::vector<double> base_end_;    // by position
  std::vector<std::uint32_t> nth_;  // by position: how many starts came before its own
  std::size_t stride_ = 1;          // starts between two kept states
  std::vector<State> kept_;
};

}  // namespace doppler::simulation
