#include "executor/cpu/worker.h"

#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "executor/cpu/kernels.h"
#include "graphs/error.h"

namespace doppler::cpu {

using runtime::Buffer;
using runtime::CommandId;

Worker::Worker(RunState& state, const WorkerOptions& options) : state_(state) {
  try {
    thread_ = std::thread([this, options] { work(options); });
  } catch (const std::system_error&) {
    throw RunError("this machine has no more threads; use fewer devices or streams");
  }
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Buffer Worker::allocate(DeviceId device, std::size_t bytes) {
  return {device, state_.memory->allocate(device, bytes), bytes};
}

void Worker::release(const Buffer& buffer) {
  state_.memory->release(buffer.device, buffer.data, buffer.bytes);
}

void Worker::run(const runtime::KernelCommand& command) {
  push({.id = command.id,
        .node = command.node,
        .after = {command.after.begin(), command.after.end()},
        .inputs = {command.inputs.begin(), command.inputs.end()},
        .outputs = {command.outputs.begin(), command.outputs.end()}});
}

void Worker::copy(const runtime::CopyCommand& command) {
  push({.id = command.id,
        .is_copy = true,
        .least_seconds = command.least_seconds,
        .after = {command.after.begin(), command.after.end()},
        .inputs = {command.from},
        .outputs = {command.to}});
}

void Worker::push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
  }
  changed_.notify_one();
}

void Worker::work(const WorkerOptions& options) {
  if (options.core >= 0) stay_on(options.core);
  if (options.goes_first) go_first(options.urgency);
  wake_on_time();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute(item);
    lock.lock();
  }
}

void Worker::execute(const Item& item) {
  for (const CommandId id : item.after) state_.has_ended[id.index()].wait(false);
  runtime::Completion completion{.command = item.id, .start = state_.now()};
  try {
    if (!item.is_copy) {
      run_node(item);
    } else {
      const Buffer& to = item.outputs.front();
      if (to.bytes > 0) std::memcpy(to.data, item.inputs.front().data, to.bytes);
      if (item.least_seconds > 0) {
        std::this_thread::sleep_until(
            state_.zero +
            std::chrono::duration_cast<RunState::Clock::duration>(
                std::chrono::duration<double>(completion.start + item.least_seconds)));
      }
    }
  } catch (const std::exception& error) {
    completion.failure = error.what();
  }
  completion.end = state_.now();
  state_.has_ended[item.id.index()] = true;
  state_.has_ended[item.id.index()].notify_all();
  ++state_.n_reporting;
  state_.listener->completed(completion);
  if (--state_.n_reporting == 0) state_.n_reporting.notify_all();
}

void Worker::run_node(const Item& item) const {
  const NodeOperation& operation = (*state_.operations)[item.node.index()];
  if (operation.is_empty()) return;
  std::vector<std::span<const std::byte>> inputs;
  inputs.reserve(item.inputs.size());
  for (const Buffer& buffer : item.inputs) {
    inputs.emplace_back(static_cast<const std::byte*>(buffer.data), buffer.bytes);
  }
  const Buffer& output = item.outputs.front();
  run_operation(operation, inputs, {static_cast<std::byte*>(output.data), output.bytes});
}

}  // namespace doppler::cpu
