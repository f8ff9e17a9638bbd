#include "tests/cuda_stand_in/stand_in.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/cuda_stand_in/state.h"

using doppler::stand_in::count;
using doppler::stand_in::count_alive;
using doppler::stand_in::fails;
using doppler::stand_in::fault;
using doppler::stand_in::state;
using doppler::stand_in::Traffic;

namespace {

using Clock = std::chrono::steady_clock;

// One record of an event; waits and queries hold on to the one that was the last at their call.
struct Record {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  Clock::time_point time;

  void finish() {
    const std::lock_guard lock(mutex);
    is_done = true;
    time = Clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_done; });
  }
};

thread_local int current_gpu = 0;

}  // namespace

struct CUevent_st {
  int gpu = 0;
  bool is_timed = false;
  std::mutex mutex;
  std::shared_ptr<Record> last;

  std::shared_ptr<Record> record() {
    const std::lock_guard lock(mutex);
    return last;
  }
};

struct CUmemPoolHandle_st {
  int gpu = 0;
};

namespace doppler::stand_in {

State& state() {
  static State instance;
  return instance;
}

void fault(const std::string& what) {
  const std::lock_guard lock(state().mutex);
  state().faults.push_back(what);
}

// Counts a call; whether it is the one that fails.
bool fails() {
  const std::lock_guard lock(state().mutex);
  return state().calls++ == state().machine.failing_call;
}

void count_alive(long change) {
  const std::lock_guard lock(state().mutex);
  state().alive += change;
}

void count(long Traffic::*what) {
  const std::lock_guard lock(state().mutex);
  ++(state().traffic.*what);
}

void reset(const Machine& machine) {
  const std::lock_guard lock(state().mutex);
  state().machine = machine;
  state().calls = 0;
  state().traffic = {};
  state().faults.clear();
  state().nccl_thread.reset();
}

long n_calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

long n_alive() {
  const std::lock_guard lock(state().mutex);
  return state().alive;
}

std::vector<std::string> faults() {
  const std::lock_guard lock(state().mutex);
  return state().faults;
}

Traffic traffic() {
  const std::lock_guard lock(state().mutex);
  return state().traffic;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (fails()) return cudaErrorLaunchOutOfResources;
  stream->push(std::move(work));
  return cudaSuccess;
}

}  // namespace doppler::stand_in

extern "C" {

// --- the device ---

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the stand-in";
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  if (fails()) return cudaErrorNoDevice;
  const std::lock_guard lock(state().mutex);
  *count = state().machine.n_gpus;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (fails()) return cudaErrorUnknown;
  *device = current_gpu;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (fails()) return cudaErrorUnknown;
  current_gpu = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  if (fails()) return cudaErrorUnknown;
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->multiProcessorCount = 4;
  properties->memoryPoolsSupported = 1;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (fails()) return cudaErrorUnknown;
  const std::lock_guard lock(state().mutex);
  *free = *total = state().machine.memory;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int from, int to) {
  if (fails()) return cudaErrorUnknown;
  const std::lock_guard lock(state().mutex);
  *can = state().machine.unreachable.contains({from, to}) ? 0 : 1;
  return cudaSuccess;
}

// --- streams and events ---

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (fails()) return cudaErrorMemoryAllocation;
  *stream = new CUstream_st(current_gpu);
  count_alive(1);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  count_alive(-1);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  // Also the failing one waits: the module relies on that after a failure.
  stream->wait();
  return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (fails()) return cudaErrorMemoryAllocation;
  *event = new CUevent_st;
  (*event)->gpu = current_gpu;
  (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
  count_alive(1);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  count_alive(-1);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (fails()) return cudaErrorUnknown;
  if (event->gpu != stream->gpu) fault("an event is recorded on another GPU's stream");
  auto record = std::make_shared<Record>();
  {
    const std::lock_guard lock(event->mutex);
    event->last = record;
  }
  stream->push([record] { record->finish(); });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (fails()) return cudaErrorUnknown;
  const auto record = event->record();
  if (record) stream->push([record] { record->wait(); });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const auto record = event->record();
  if (record) record->wait();
  return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (fails()) return cudaErrorUnknown;
  if (start->gpu != end->gpu) fault("a time between events of two GPUs");
  if (!start->is_timed || !end->is_timed) fault("a time of an event without one");
  const auto first = start->record();
  const auto last = end->record();
  if (!first || !last) return cudaErrorInvalidResourceHandle;
  const std::scoped_lock lock(first->mutex, last->mutex);
  if (!first->is_done || !last->is_done) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return cudaSuccess;
}

// --- memory ---

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (fails()) return cudaErrorMemoryAllocation;
  *pool = new CUmemPoolHandle_st{properties->location.id};
  count_alive(1);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  count_alive(-1);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return fails() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return fails() ? cudaErrorUnknown : cudaSuccess;
}

// Taken and given back in the stream's order, so that a sanitizer sees what nothing orders.
cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (fails()) return cudaErrorMemoryAllocation;
  if (pool->gpu != stream->gpu) fault("memory of one GPU is taken in another's order");
  *data = std::malloc(bytes);
  count_alive(1);
  auto* first = static_cast<unsigned char*>(*data);
  if (bytes > 0) stream->push([first] { *first = 0xff; });
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  stream->push([data] { std::free(data); });
  count_alive(-1);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (fails()) return cudaErrorMemoryAllocation;
  *data = std::malloc(bytes);
  count_alive(1);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  count_alive(-1);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (fails()) return cudaErrorUnknown;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (fails()) return cudaErrorUnknown;
  if (kind == cudaMemcpyDeviceToHost) count(&Traffic::to_host);
  if (kind == cudaMemcpyHostToDevice) count(&Traffic::from_host);
  if (kind == cudaMemcpyDeviceToDevice) count(&Traffic::within);
  stream->push([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_gpu, const void* from, int from_gpu,
                                std::size_t bytes, cudaStream_t stream) {
  if (fails()) return cudaErrorUnknown;
  if (to_gpu != from_gpu) count(&Traffic::between);
  {
    const std::lock_guard lock(state().mutex);
    if (state().machine.unreachable.contains({from_gpu, to_gpu})) {
      state().faults.push_back("a peer copy between GPUs that cannot reach each other");
    }
  }
  stream->push([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

}  // extern "C"
