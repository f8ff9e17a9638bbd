#include "tests/support/trial_machine.h"

#include <algorithm>
#include <utility>

#include "graphs/error.h"

namespace doppler::testing {

using runtime::Buffer;
using runtime::CommandId;

namespace {

// What blocks hold: a tensor, or a graph input.
std::int64_t content_of(TensorId tensor) { return tensor.value; }
std::int64_t content_of(InputId input) { return -1 - input.value; }

std::byte mark(std::int64_t content) { return static_cast<std::byte>(content & 0xff); }

}  // namespace

class TrialMachine::StreamOfMachine final : public runtime::Stream {
 public:
  StreamOfMachine(TrialMachine& machine, std::size_t number) : m_(machine), number_(number) {}
  ~StreamOfMachine() override {
    const std::lock_guard lock(m_.mutex_);
    StreamState& stream = m_.streams_[number_];
    stream.live = false;
    if (stream.n_reported < stream.commands.size()) m_.fault("a stream with commands is destroyed");
  }

  Buffer allocate(DeviceId device, std::size_t bytes) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("allocate");
    if (device.index() >= m_.used_.size()) m_.used_.resize(device.index() + 1, 0);
    std::size_t& used = m_.used_[device.index()];
    if (bytes > m_.options_.memory - used) throw RunError("memory is full");
    used += bytes;
    Block& block = m_.blocks_.emplace_back();
    block.device = device;
    block.bytes = bytes;
    StreamState& stream = m_.streams_[number_];
    // In the order of the stream: it comes after what was submitted before it.
    block.allocated = m_.host_;
    if (!stream.commands.empty()) join(block.allocated, stream.commands.back()->clock);
    return {device, &block, bytes};
  }

  void release(const Buffer& buffer) override {
    const std::lock_guard lock(m_.mutex_);
    Block& block = *static_cast<Block*>(buffer.data);
    if (!block.live) m_.fault("a block is released twice");
    if (block.pending > 0) m_.fault("a block is released while a command touches it");
    if (!before(block.touched, m_.host_)) {
      m_.fault("a block is released before its last use is known to be over");
    }
    block.live = false;
    m_.used_[block.device.index()] -= block.bytes;
  }

  void run(const runtime::KernelCommand& command) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("run");
    Command item;
    item.id = command.id;
    item.node = command.node;
    item.after.assign(command.after.begin(), command.after.end());
    item.reads = blocks(command.inputs);
    item.writes = blocks(command.outputs);
    const Graph& graph = m_.graph_;
    if (command.outputs.size() != graph.n_outputs(command.node)) {
      m_.fault("a kernel has the wrong number of outputs");
    }
    for (const auto& list : {command.inputs, command.outputs}) {
      for (const Buffer& buffer : list) {
        if (buffer.device != m_.streams_[number_].device) {
          m_.fault("a kernel is given a block of another device");
        }
      }
    }
    m_.submit(number_, std::move(item));
  }

  void copy(const runtime::CopyCommand& command) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("copy");
    Command item;
    item.id = command.id;
    item.is_copy = true;
    item.after.assign(command.after.begin(), command.after.end());
    item.reads = blocks({&command.from, 1});
    item.writes = blocks({&command.to, 1});
    item.least_seconds = command.least_seconds;
    if (command.from.bytes != command.to.bytes) m_.fault("a copy changes the size");
    if (command.from.device == command.to.device) m_.fault("a copy stays on its device");
    m_.submit(number_, std::move(item));
  }

 private:
  static std::vector<Block*> blocks(std::span<const Buffer> buffers) {
    std::vector<Block*> result;
    for (const Buffer& buffer : buffers) result.push_back(static_cast<Block*>(buffer.data));
    return result;
  }

  TrialMachine& m_;
  std::size_t number_;
};

class TrialMachine::Api final : public runtime::DeviceApi {
 public:
  explicit Api(TrialMachine& machine) : m_(machine) {}

  std::unique_ptr<runtime::Stream> make_stream(DeviceId device, runtime::StreamUse) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("make_stream");
    m_.streams_.emplace_back().device = device;
    return std::make_unique<StreamOfMachine>(m_, m_.streams_.size() - 1);
  }
  std::size_t memory(DeviceId) override { return m_.options_.memory; }
  void load(const Graph& graph) override {
    const std::lock_guard lock(m_.mutex_);
    m_.loaded_ = false;
    m_.check_call("load");
    m_.graph_ = graph;
    m_.loaded_ = true;
  }
  void write(const Buffer& to, std::span<const std::byte> from) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("write");
    Block& block = *static_cast<Block*>(to.data);
    if (m_.listener_ != nullptr) m_.fault("the host writes during a run");
    if (!block.live) m_.fault("the host writes a block that is released");
    if (from.size() != block.bytes) m_.fault("the host writes another size");
    block.written = true;
    block.content = static_cast<std::int64_t>(from.front()) - 256;
    block.last_write = m_.host_;
  }
  void read(const Buffer& from, std::span<std::byte> to) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("read");
    const Block& block = *static_cast<Block*>(from.data);
    if (m_.listener_ != nullptr) m_.fault("the host reads during a run");
    if (!block.live || !block.written) m_.fault("the host reads what is not there");
    if (!before(block.last_write, m_.host_)) m_.fault("the host reads before the write is over");
    std::fill(to.begin(), to.end(), mark(block.content));
  }
  void begin(std::size_t n_commands, runtime::Listener& listener) override {
    const std::lock_guard lock(m_.mutex_);
    m_.check_call("begin");
    if (m_.listener_ != nullptr) m_.fault("a run begins in another");
    if (!m_.loaded_) m_.fault("a run begins without a graph");
    m_.listener_ = &listener;
    m_.n_commands_ = n_commands;
    m_.now_ = 0;
    m_.failed_in_run_ = false;
  }
  void end() override {
    std::unique_lock lock(m_.mutex_);
    m_.changed_.wait(lock, [&] { return m_.n_reporting_ == 0; });
    m_.listener_ = nullptr;
    m_.by_id_.clear();
    for (StreamState& stream : m_.streams_) {
      if (stream.n_reported < stream.commands.size()) m_.fault("a run ends with commands left");
      stream.commands.clear();
      stream.n_started = stream.n_ended = stream.n_reported = 0;
    }
    m_.commands_.clear();
  }

 private:
  TrialMachine& m_;
};

TrialMachine::TrialMachine(TrialOptions options)
    : options_(std::move(options)), draws_(options_.seed) {
  for (int t = 0; t < options_.threads; ++t) threads_.emplace_back([this] { work(); });
}

TrialMachine::~TrialMachine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

std::unique_ptr<runtime::DeviceApi> TrialMachine::api() {
  const std::lock_guard lock(mutex_);
  check_call("open");
  return std::make_unique<Api>(*this);
}

void TrialMachine::make_input(const Graph&, InputId input, std::span<std::byte> data) {
  std::fill(data.begin(), data.end(), mark(content_of(input)));
}

bool TrialMachine::is_tensor(TensorId tensor, std::span<const std::byte> data) {
  return std::all_of(data.begin(), data.end(),
                     [&](std::byte byte) { return byte == mark(content_of(tensor)); });
}

std::vector<std::string> TrialMachine::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

bool TrialMachine::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void TrialMachine::heal() {
  const std::lock_guard lock(mutex_);
  options_.failing = -1;
}

std::size_t TrialMachine::n_live_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.live; }));
}

std::size_t TrialMachine::n_live_streams() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      streams_.begin(), streams_.end(), [](const StreamState& stream) { return stream.live; }));
}

std::size_t TrialMachine::most_under_way() const {
  const std::lock_guard lock(mutex_);
  return most_under_way_;
}

void TrialMachine::fault(const std::string& what) {
  if (std::find(faults_.begin(), faults_.end(), what) == faults_.end()) faults_.push_back(what);
}

bool TrialMachine::fails() {
  const bool now = n_calls_++ == options_.failing;
  failed_ = failed_ || now;
  failed_in_run_ = failed_in_run_ || now;
  return now;
}

void TrialMachine::check_call(const char* what) {
  if (fails()) throw RunError(std::string("told to fail in ") + what);
}

void TrialMachine::join(Clock& into, const Clock& other) {
  if (into.size() < other.size()) into.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

bool TrialMachine::before(const Clock& a, const Clock& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > (i < b.size() ? b[i] : 0)) return false;
  }
  return true;
}

void TrialMachine::submit(std::size_t number, Command item) {
  StreamState& stream = streams_[number];
  if (listener_ == nullptr) fault("a command is submitted outside a run");
  if (item.id.value < 0 || item.id.index() >= n_commands_) fault("a command has a wrong number");
  if (by_id_.contains(item.id)) fault("a command is submitted twice");
  item.stream = number;
  // What it comes after by the rules: known ends, its stream, and what it names.
  item.clock = host_;
  if (!stream.commands.empty()) join(item.clock, stream.commands.back()->clock);
  for (const CommandId id : item.after) {
    if (!by_id_.contains(id)) {
      fault("a command names one that was not submitted");
      continue;
    }
    join(item.clock, by_id_.at(id)->clock);
  }
  if (item.clock.size() <= number) item.clock.resize(number + 1, 0);
  item.clock[number] = ++stream.n_ticks;
  Command& command = commands_.emplace_back(std::move(item));
  by_id_[command.id] = &command;
  stream.commands.push_back(&command);
  most_under_way_ = std::max(most_under_way_, stream.commands.size() - stream.n_reported);
  for (auto* list : {&command.reads, &command.writes}) {
    for (Block* block : *list) {
      if (block == nullptr) continue;
      if (!block->live) fault("a command is given a block that is released");
      ++block->pending;
    }
  }
  changed_.notify_all();
}

bool TrialMachine::can_start(const Command& command) const {
  return std::all_of(command.after.begin(), command.after.end(), [&](CommandId id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() || found->second->phase >= Phase::ended;
  });
}

void TrialMachine::touch(Command& command, Block& block, bool writes) {
  if (!block.live) fault("a command touches a block that is released");
  if (!before(block.allocated, command.clock)) {
    fault("a command may touch a block before it is allocated");
  }
  if (!before(block.last_write, command.clock)) {
    fault("a command may touch a block before it is written");
  }
  if (writes && !before(block.touched, command.clock)) {
    fault("a command may write a block that another one reads");
  }
  join(block.touched, command.clock);
  if (writes) block.last_write = command.clock;
}

std::int64_t TrialMachine::expected(const Command& command, std::size_t operand) const {
  const auto edges = graph_.in_edges(command.node);
  if (operand < edges.size()) return content_of(graph_.edge_tensor(edges[operand]));
  std::size_t left = operand - edges.size();
  for (std::size_t i = 0; i < graph_.n_inputs(); ++i) {
    const auto& readers = graph_.inputs()[i].readers;
    if (!std::binary_search(readers.begin(), readers.end(), command.node)) continue;
    if (left-- == 0) return content_of(InputId(static_cast<std::int64_t>(i)));
  }
  return std::numeric_limits<std::int64_t>::max();
}

void TrialMachine::begin_command(Command& command) {
  command.phase = Phase::running;
  command.start = now_;
  ++streams_[command.stream].n_started;
  for (std::size_t i = 0; i < command.reads.size(); ++i) {
    Block* block = command.reads[i];
    if (block == nullptr) continue;
    touch(command, *block, false);
    if (failed_in_run_) continue;  // what a failed command should have written is not there
    if (!block->written) fault("a command reads a block that was not written");
    if (!command.is_copy && block->content != expected(command, i)) {
      fault("a kernel is given the wrong operand");
    }
  }
  for (Block* block : command.writes) {
    if (block != nullptr) touch(command, *block, true);
  }
}

void TrialMachine::end_command(Command& command) {
  command.phase = Phase::ended;
  command.end = now_;
  ++streams_[command.stream].n_ended;
  const bool failing = fails();
  if (failing) command.failure = "told to fail on the way";
  const TensorId first = command.is_copy ? TensorId() : graph_.first_tensor(command.node);
  for (std::size_t i = 0; i < command.writes.size() && !failing; ++i) {
    Block* block = command.writes[i];
    if (block == nullptr) continue;
    block->written = true;
    block->content = command.is_copy
                         ? command.reads[i]->content
                         : content_of(TensorId(first.value + static_cast<std::int64_t>(i)));
  }
}

void TrialMachine::report(StreamState& stream, std::unique_lock<std::mutex>& lock) {
  Command& command = *stream.commands[stream.n_reported];
  stream.reporting = true;
  ++n_reporting_;
  for (auto* list : {&command.reads, &command.writes}) {
    for (Block* block : *list) {
      if (block != nullptr) --block->pending;
    }
  }
  join(host_, command.clock);
  const runtime::Completion completion{command.id, command.start, command.end, command.failure};
  command.phase = Phase::reported;
  runtime::Listener& listener = *listener_;
  ++stream.n_reported;
  changed_.notify_all();  // others go on meanwhile
  lock.unlock();
  listener.completed(completion);
  lock.lock();
  stream.reporting = false;
  --n_reporting_;
  changed_.notify_all();
}

bool TrialMachine::step() {
  std::unique_lock lock(mutex_);
  return step(lock);
}

bool TrialMachine::step(std::unique_lock<std::mutex>& lock) {
  if (options_.prompt) return prompt_step(lock);
  enum class What : std::uint8_t { begin, end, report };
  std::vector<std::pair<What, StreamState*>> possible;
  for (StreamState& stream : streams_) {
    const bool idle = stream.n_started == stream.n_ended;
    if (!idle) possible.emplace_back(What::end, &stream);
    if (idle && stream.n_started < stream.commands.size() &&
        can_start(*stream.commands[stream.n_started])) {
      possible.emplace_back(What::begin, &stream);
    }
    if (!stream.reporting && stream.n_reported < stream.n_ended) {
      possible.emplace_back(What::report, &stream);
    }
  }
  if (possible.empty()) return false;
  now_ += draws_.chance(0.5) ? draws_.real() : 0;
  const auto [what, stream] = possible[draws_.below(possible.size())];
  if (what == What::begin) {
    begin_command(*stream->commands[stream->n_started]);
  } else if (what == What::end) {
    end_command(*stream->commands[stream->n_ended]);
  } else {
    report(*stream, lock);
  }
  return true;
}

bool TrialMachine::prompt_step(std::unique_lock<std::mutex>& lock) {
  StreamState* first = nullptr;
  double first_end = 0;
  for (StreamState& stream : streams_) {
    if (stream.n_started == stream.n_ended && stream.n_started < stream.commands.size() &&
        can_start(*stream.commands[stream.n_started])) {
      begin_command(*stream.commands[stream.n_started]);
    }
    if (stream.n_started == stream.n_ended) continue;
    const Command& command = *stream.commands[stream.n_ended];
    const double end =
        command.start +
        (command.is_copy ? command.least_seconds : options_.seconds(command.node, stream.device));
    if (first == nullptr || end < first_end) {
      first = &stream;
      first_end = end;
    }
  }
  if (first == nullptr) return false;
  now_ = first_end;
  end_command(*first->commands[first->n_ended]);
  report(*first, lock);
  return true;
}

void TrialMachine::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (!step(lock)) changed_.wait(lock);
  }
}

}  // namespace doppler::testing
