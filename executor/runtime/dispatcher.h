// Runs one plan on a DeviceApi: decides what starts next, by the same rules as the simulator, and
// records when it did. Private to executor/.
//
// The dispatcher has no thread. It acts when a command ends, on the thread that tells it so, under
// one lock; wait() sleeps until everything is done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/execution.h"
#include "executor/runtime/device_api.h"
#include "executor/runtime/run_plan.h"
#include "executor/simulator/event_loop.h"
#include "executor/simulator/model.h"

namespace doppler::runtime {

// How far the dispatcher goes ahead of what has ended. A regular value.
struct Lookahead {
  // Commands that a stream holds at most, the one that runs included; >= 1. With 1, a device picks
  // its next node when it is free, as the simulator does. With more, the choice is made earlier,
  // and a device's next node is there when the last one ends.
  std::int32_t depth = 1;
  // A node may be submitted while its inputs are still being made before it on its own stream, if
  // the stream would be idle otherwise; a transfer may be submitted together with its node. Changes
  // no order: it hides the time that the host takes to hear of an end.
  bool chained = false;
  friend bool operator==(const Lookahead&, const Lookahead&) = default;
};

// The streams of a run. They belong to the caller and outlive it.
struct StreamSet {
  std::vector<std::vector<Stream*>> slots;  // by device, one for each of its compute slots
  std::vector<Stream*> lanes;               // for transfers; each holds one channel or pair
  std::vector<std::uint32_t> lane_of_transfer;
};

class Dispatcher final : public Listener {
 public:
  // Keeps references; all must outlive it. `inputs` are the blocks of plan.inputs, filled.
  Dispatcher(const RunPlan& plan, DeviceApi& api, const StreamSet& streams,
             std::span<const Buffer> inputs, const Lookahead& lookahead);

  // Seconds that a transfer takes at least are those of its route, if asked for.
  void emulate_links(bool emulate) { emulates_links_ = emulate; }

  // Begins the run: submits what can start. Called once. Throws RunError if the machine cannot
  // begin. `timeline`, which is by position, must outlive wait().
  void start(simulation::Timeline& timeline);
  // Waits for the end and completes the timeline. Throws RunError that names the node
  // (OutOfMemoryError if a device was full); all commands have ended then.
  void wait();
  // The block of a tensor that nobody reads, after wait().
  [[nodiscard]] const Buffer& result(TensorId tensor) const { return buffers_[tensor.index()]; }
  // Gives back every block that the run allocated. The destructor does so, too.
  void release_all();
  ~Dispatcher() override;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  void completed(const Completion& completion) override;

 private:
  struct Slot {
    Stream* stream = nullptr;
    std::int32_t device = 0;
    std::int32_t n_under_way = 0;
  };
  struct Lane {
    Stream* stream = nullptr;
    std::int32_t n_under_way = 0;
    bool may_chain =
        false;             // its transfers are requested in the order in which nodes are submitted
    std::size_t next = 0;  // in `queue`
    std::vector<std::uint32_t> queue;  // transfers in the order of their requests
  };

  void submit_first();
  // --- after an end ---
  void node_ended(std::size_t position, const Completion& completion);
  void transfer_ended(std::size_t transfer, const Completion& completion);
  void deliver(const simulation::Source& source, std::int32_t device, bool arrived, double now);
  void make_ready(std::size_t position, double now);
  void consider_chaining(std::size_t position);
  void request_transfers(std::size_t position, double now);
  void request(std::uint32_t transfer);
  void use_ended(std::uint32_t block);
  void next_phase();  // of bulk_synchronous
  // --- submission ---
  void pump();
  void fill_device(std::size_t device);
  void fill_lane(Lane& lane);
  [[nodiscard]] Slot* least_busy_slot(std::size_t device);
  [[nodiscard]] Slot* slot_of_producers(std::size_t position);
  void submit_node(std::size_t position, Slot& slot);
  void submit_transfer(std::uint32_t transfer, Lane& lane);
  void allocate(std::uint32_t block, Stream& stream);
  [[nodiscard]] std::int32_t producer_of(const PlannedTransfer& transfer) const;
  [[nodiscard]] simulation::ReadyQueues::Item item(std::size_t position, double ready) const;
  void touch_device(std::size_t device);
  void touch_lane(std::size_t lane);

  void fail_node(std::size_t position, const std::string& why);
  void fail_transfer(std::size_t transfer, const std::string& why);
  void fail(std::string message);

  const RunPlan& plan_;
  const simulation::Model& model_;
  DeviceApi& api_;
  const StreamSet& streams_;
  Lookahead lookahead_;
  bool emulates_links_ = false;
  bool bulk_ = false;
  simulation::Luck luck_;
  simulation::Timeline* timeline_ = nullptr;

  std::mutex mutex_;  // of everything below
  std::condition_variable done_;
  std::vector<Buffer> buffers_;  // by block
  std::vector<bool> is_held_;    // by block: allocated by this run
  std::vector<std::int32_t> uses_;
  std::vector<std::size_t> bytes_in_use_;  // by device
  std::vector<Slot> slots_;                // by device, then slot
  std::vector<std::size_t> first_slot_;
  std::vector<Lane> lanes_;
  simulation::ReadyQueues ready_;
  simulation::ReadyQueues chainable_;      // nodes whose inputs have ended or are under way here
  std::vector<std::int32_t> n_missing_;    // inputs that have not ended, by position
  std::vector<std::int32_t> n_uncertain_;  // of these, inputs not under way on the node's device
  std::vector<std::uint32_t> slot_of_;     // by position, once submitted
  std::vector<bool> is_submitted_;         // by position
  std::vector<bool> has_ended_;            // by position
  std::vector<bool> is_requested_;         // by transfer
  std::vector<std::uint32_t> request_order_;
  std::vector<std::uint32_t> touched_devices_;
  std::vector<std::uint32_t> touched_lanes_;
  std::vector<bool> device_is_touched_;
  std::vector<bool> lane_is_touched_;
  std::vector<Buffer> operand_buffers_;  // of the command that is being submitted
  std::vector<Buffer> output_buffers_;
  double n_chainable_ = 0;       // so many were put into `chainable_`
  std::size_t n_left_ = 0;       // commands that have not ended
  std::size_t n_under_way_ = 0;  // submitted and not ended
  std::size_t phase_left_ = 0;   // bulk: commands of the phase that have not ended
  std::size_t phase_begin_ = 0;  // bulk: positions of the level
  std::size_t phase_end_ = 0;
  bool phase_is_transfers_ = true;
  double phase_start_ = 0;
  double last_end_ = 0;  // of any command so far
  bool failed_ = false;
  std::string failure_;
  std::optional<OutOfMemory> lack_;
};

}  // namespace doppler::runtime
