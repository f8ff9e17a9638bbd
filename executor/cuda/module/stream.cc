#include "executor/cuda/module/stream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace doppler::cuda {
namespace {

// Scratch of a node, in the order of its stream.
class Scratch {
 public:
  Scratch(Gpu& gpu, std::size_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes == 0) return;
    check(cudaMallocFromPoolAsync(&data_, bytes, gpu.pool(), stream), "allocate scratch memory");
  }
  ~Scratch() {
    if (data_ != nullptr) static_cast<void>(cudaFreeAsync(data_, stream_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // The next block, aligned as CUDA's own are.
  void* take(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    std::byte* block = static_cast<std::byte*>(data_) + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return block;
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace

void Activity::add() {
  const std::lock_guard lock(mutex_);
  ++n_;
}

void Activity::remove() {
  const std::lock_guard lock(mutex_);
  if (--n_ == 0) none_.notify_all();
}

void Activity::wait_for_none() {
  std::unique_lock lock(mutex_);
  none_.wait(lock, [&] { return n_ == 0; });
}

CudaStream::CudaStream(Machine& machine, Activity& activity, DeviceId device,
                       runtime::StreamUse use)
    : machine_(machine), activity_(activity), gpu_(machine.gpu(device)) {
  const CurrentGpu current(gpu_.number());
  stream_ = make_stream();
  ready_ = make_event(false);
  if (use == runtime::StreamUse::kernels) {
    cublasHandle_t handle = nullptr;
    check(cublasCreate(&handle), "start cuBLAS");
    blas_.reset(handle);
    check(cublasSetStream(handle, stream_.get()), "give cuBLAS a stream");
  }
  thread_ = std::thread([this] { report_all(); });
}

CudaStream::~CudaStream() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

runtime::Buffer CudaStream::allocate(DeviceId device, std::size_t bytes) {
  return machine_.allocate(device, bytes, stream_.get());
}

void CudaStream::release(const runtime::Buffer& buffer) { machine_.release(buffer); }

void CudaStream::wait_for(std::span<const runtime::CommandId> after) {
  for (runtime::CommandId id : after) {
    const Command& command = machine_.commands[id.index()];
    if (!command.end) continue;
    check(cudaStreamWaitEvent(stream_.get(), command.end.get()), "wait for a command");
  }
}

void CudaStream::run(const runtime::KernelCommand& command) {
  const CurrentGpu current(gpu_.number());
  Command& events = machine_.commands[command.id.index()];
  events = {&gpu_, gpu_.take_event(), &gpu_, gpu_.take_event()};
  wait_for(command.after);
  check(cudaEventRecord(events.start.get(), stream_.get()), "record a node's start");
  // From here on something may be enqueued, and the command is reported, whatever happens.
  std::string failure;
  try {
    launch_steps(command);
  } catch (const RunError& error) {
    failure = error.what();
  }
  try {
    check(cudaEventRecord(events.end.get(), stream_.get()), "record a node's end");
  } catch (const RunError& error) {
    if (failure.empty()) failure = error.what();
  }
  submit(command.id, std::move(failure));
}

void CudaStream::launch_steps(const runtime::KernelCommand& command) {
  const NodeOperation& operation = machine_.operations[command.node.index()];
  if (operation.is_empty()) return;
  Scratch scratch(gpu_, static_cast<std::size_t>(operation.scratch_bytes()), stream_.get());
  Launch at{stream_.get(), blas_.get(), machine_.options().precision, gpu_.n_processors(), {}};
  at.buffers.reserve(operation.buffers.size());
  for (const runtime::Buffer& input : command.inputs) at.buffers.push_back(input.data);
  at.buffers.push_back(command.outputs.front().data);
  for (std::size_t b = operation.output() + 1; b < operation.buffers.size(); ++b) {
    at.buffers.push_back(scratch.take(static_cast<std::size_t>(operation.buffers[b].bytes())));
  }
  for (const steps::Step& step : operation.steps) {
    std::visit([&](const auto& s) { launch(s, at); }, step);
  }
}

void CudaStream::copy(const runtime::CopyCommand& command) {
  const CurrentGpu current(gpu_.number());
  Command& events = machine_.commands[command.id.index()];
  events = {};
  wait_for(command.after);
  std::string failure;
  try {
    transfer(command, events);
  } catch (const RunError& error) {
    failure = error.what();
    // Part of it may be under way where this stream does not wait for it.
    staged_.wait();
  }
  submit(command.id, std::move(failure));
}

void CudaStream::transfer(const runtime::CopyCommand& command, Command& events) {
  const Transfer transfer{&machine_.gpu(command.from.device),
                          static_cast<const std::byte*>(command.from.data),
                          &machine_.gpu(command.to.device),
                          static_cast<std::byte*>(command.to.data), command.from.bytes};
  const Lane lane{stream_.get(), ready_.get()};
  const bool is_within = transfer.from_gpu == transfer.to_gpu;
  const bool is_device_copy = is_within && !machine_.options().transports_within_gpu;
  const Transport transport = machine_.options().transport;
  const auto take = [](Gpu& gpu) {
    const CurrentGpu its(gpu.number());
    return gpu.take_event();
  };
  if (transport == Transport::nccl && !is_device_copy && transfer.bytes > 0) {
    events = {transfer.from_gpu, take(*transfer.from_gpu), transfer.to_gpu, take(*transfer.to_gpu)};
    machine_.nccl().send(transfer, lane, events.start.get(), events.end.get());
    return;
  }
  events = {&gpu_, take(gpu_), &gpu_, take(gpu_)};
  check(cudaEventRecord(events.start.get(), lane.stream), "record a transfer's start");
  if (transfer.bytes == 0) {
    // Nothing moves.
  } else if (is_device_copy) {
    check(cudaMemcpyAsync(transfer.to, transfer.from, transfer.bytes, cudaMemcpyDeviceToDevice,
                          lane.stream),
          "copy within a GPU");
  } else if (transport == Transport::staged ||
             !machine_.reaches(*transfer.from_gpu, *transfer.to_gpu)) {
    staged_.enqueue(transfer, lane);
  } else {
    check(cudaMemcpyPeerAsync(transfer.to, transfer.to_gpu->number(), transfer.from,
                              transfer.from_gpu->number(), transfer.bytes, lane.stream),
          "copy between GPUs");
  }
  check(cudaEventRecord(events.end.get(), lane.stream), "record a transfer's end");
}

void CudaStream::submit(runtime::CommandId id, std::string failure) {
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty()) activity_.add();
    pending_.push_back({id, std::move(failure)});
  }
  changed_.notify_one();
}

void CudaStream::report_all() {
  while (true) {
    Pending next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stops_ || !pending_.empty(); });
      if (pending_.empty()) return;
      next = pending_.front();
    }
    machine_.listener->completed(completion(next));
    Command& command = machine_.commands[next.id.index()];
    if (command.start) command.start_gpu->give_back(std::move(command.start));
    if (command.end) command.end_gpu->give_back(std::move(command.end));
    const std::lock_guard lock(mutex_);
    pending_.pop_front();
    if (pending_.empty()) activity_.remove();
  }
}

runtime::Completion CudaStream::completion(const Pending& pending) {
  runtime::Completion result{.command = pending.id, .failure = pending.failure};
  const Command& command = machine_.commands[pending.id.index()];
  try {
    if (!pending.failure.empty()) {
      // Its events may not have been recorded, but part of it may be under way.
      check(cudaStreamSynchronize(stream_.get()), "wait for what a failed command left");
    } else {
      // Before anything else that could fail: what is reported must have ended.
      check(cudaEventSynchronize(command.end.get()), "wait for a command's end");
      result.start = std::max(0.0, command.start_gpu->seconds(command.start.get(), machine_.zero));
      result.end = command.end_gpu->seconds(command.end.get(), machine_.zero);
    }
  } catch (const RunError& error) {
    if (result.failure.empty()) result.failure = error.what();
  }
  result.end = std::max(result.end, result.start);
  return result;
}

}  // namespace doppler::cuda
