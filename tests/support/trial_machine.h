// A machine without hardware, for tests of the runtime. It runs commands in any order that the
// rules of DeviceApi allow, late and out of step, drawn from a seed; fails any call or command on
// request; and checks with vector clocks that each access to a block is ordered after its
// allocation and after the write it depends on, and before its release, whatever the order that
// was drawn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/runtime/device_api.h"
#include "tests/support/random_cases.h"

namespace doppler::testing {

struct TrialOptions {
  std::uint64_t seed = 0;
  // Threads that run the machine; 0: the test calls step().
  int threads = 0;
  // Commands start as soon as they can and take their seconds (kernels those of `seconds`); each
  // end is reported at once, earliest first. Otherwise order and times are drawn.
  bool prompt = false;
  std::function<double(NodeId, DeviceId)> seconds = {};
  // The call that can fail, or command, that does; counted from 0. Negative: none.
  std::int64_t failing = -1;
  std::size_t memory = std::numeric_limits<std::size_t>::max();  // of each device
};

class TrialMachine {
 public:
  explicit TrialMachine(TrialOptions options);
  ~TrialMachine();
  TrialMachine(const TrialMachine&) = delete;
  TrialMachine& operator=(const TrialMachine&) = delete;

  // The machine must outlive it. Throws if making it is the call that fails.
  std::unique_ptr<runtime::DeviceApi> api();
  // One step of the machine; false if nothing can happen.
  bool step();

  // Writes data of a graph input by which the machine knows it again.
  static void make_input(const Graph& graph, InputId input, std::span<std::byte> data);
  // Whether the data are those that the kernel of the tensor's producer wrote.
  static bool is_tensor(TensorId tensor, std::span<const std::byte> data);

  // What broke a rule; empty: nothing. Each once.
  [[nodiscard]] std::vector<std::string> faults() const;
  // Whether the failing call has come.
  [[nodiscard]] bool has_failed() const;
  void heal();  // nothing fails from now on
  [[nodiscard]] std::size_t n_live_blocks() const;
  [[nodiscard]] std::size_t n_live_streams() const;
  [[nodiscard]] std::size_t most_under_way() const;  // commands on one stream at a time

 private:
  class Api;
  class StreamOfMachine;
  friend class Api;
  friend class StreamOfMachine;
  using Clock = std::vector<std::uint32_t>;  // by stream

  struct Block {
    DeviceId device = {};
    std::size_t bytes = 0;
    bool live = true;
    bool written = false;
    std::int64_t content = 0;
    std::size_t pending = 0;  // commands that touch it and have not been reported
    Clock allocated = {};
    Clock last_write = {};
    Clock touched = {};
  };
  enum class Phase : std::uint8_t { queued, running, ended, reported };
  struct Command {
    runtime::CommandId id = {};
    bool is_copy = false;
    NodeId node = {};
    std::size_t stream = 0;
    std::vector<runtime::CommandId> after = {};
    std::vector<Block*> reads = {};
    std::vector<Block*> writes = {};
    double least_seconds = 0;
    Phase phase = Phase::queued;
    Clock clock = {};  // until it runs: what it comes after
    double start = 0;
    double end = 0;
    std::string failure = {};
  };
  struct StreamState {
    DeviceId device = {};
    bool live = true;
    std::vector<Command*> commands = {};  // of this run
    std::size_t n_started = 0;
    std::size_t n_ended = 0;
    std::size_t n_reported = 0;
    bool reporting = false;
    std::uint32_t n_ticks = 0;
  };

  void fault(const std::string& what);
  bool fails();  // counts a call that can fail
  void check_call(const char* what);
  static void join(Clock& into, const Clock& other);
  static bool before(const Clock& a, const Clock& b);

  void submit(std::size_t stream, Command command);
  [[nodiscard]] bool can_start(const Command& command) const;
  bool step(std::unique_lock<std::mutex>& lock);
  bool prompt_step(std::unique_lock<std::mutex>& lock);
  void begin_command(Command& command);
  void end_command(Command& command);
  void report(StreamState& stream, std::unique_lock<std::mutex>& lock);
  void touch(Command& command, Block& block, bool writes);
  [[nodiscard]] std::int64_t expected(const Command& command, std::size_t operand) const;
  void work();

  TrialOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Draws draws_;
  std::int64_t n_calls_ = 0;
  bool failed_ = false;
  bool failed_in_run_ = false;
  std::vector<std::string> faults_;
  Graph graph_;
  bool loaded_ = false;
  runtime::Listener* listener_ = nullptr;
  double now_ = 0;
  Clock host_;
  std::deque<Block> blocks_;
  std::deque<StreamState> streams_;
  std::deque<Command> commands_;
  std::map<runtime::CommandId, Command*> by_id_;
  std::size_t n_commands_ = 0;
  std::size_t n_reporting_ = 0;
  std::size_t most_under_way_ = 0;
  std::vector<std::size_t> used_;  // bytes by device
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace doppler::testing
