#include "tests/cuda_stand_in/stand_in.h"

#include <cublas_v2.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "executor/cuda/module/nccl_library.h"
#include "executor/runtime/step_functions.h"

using doppler::stand_in::enqueue;
using doppler::stand_in::Machine;
using doppler::stand_in::Traffic;

// CUDA's types are only declared in its headers.
struct CUstream_st {
  explicit CUstream_st(int gpu_number) : gpu(gpu_number), thread([this] { work(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    thread.join();
  }
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  void push(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return tasks.empty(); });
  }
  void work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stops || !tasks.empty(); });
        if (tasks.empty()) return;
        task = tasks.front();
      }
      task();
      {
        const std::lock_guard lock(mutex);
        tasks.pop_front();
      }
      changed.notify_all();
    }
  }

  const int gpu;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool stops = false;
  std::thread thread;
};

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

struct State {
  std::mutex mutex;
  Machine machine;
  long calls = 0;
  long alive = 0;
  Traffic traffic;
  std::vector<std::string> faults;
  std::optional<std::thread::id> nccl_thread;
};

State& state() {
  static State instance;
  return instance;
}

thread_local int current_gpu = 0;

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

struct cublasContext {
  cudaStream_t stream = nullptr;
};

struct ncclComm {
  int gpu = 0;
  int rank = 0;
  int n_ranks = 1;
};

namespace doppler::stand_in {

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

// --- cuBLAS ---

const char* cublasGetStatusString(cublasStatus_t) { return "an error of the stand-in"; }
const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS"; }

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (fails()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = new cublasContext;
  count_alive(1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  count_alive(-1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (fails()) return CUBLAS_STATUS_INTERNAL_ERROR;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

// C(i, j) = sum of A(i, l) B(l, j), matrices by columns.
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation,
    std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha, const void* a,
    cudaDataType a_type, std::int64_t a_leading, long long a_stride, const void* b,
    cudaDataType b_type, std::int64_t b_leading, long long b_stride, const void* beta, void* c,
    cudaDataType c_type, std::int64_t c_leading, long long c_stride, std::int64_t n_batch,
    cublasComputeType_t, cublasGemmAlgo_t) {
  if (fails()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool a_turned = a_operation != CUBLAS_OP_N;
  const bool b_turned = b_operation != CUBLAS_OP_N;
  if (a_leading < (a_turned ? k : m) || b_leading < (b_turned ? n : k) || c_leading < m ||
      a_type != b_type || (c_type != a_type && c_type != CUDA_R_32F)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto dtype = [](cudaDataType type) {
    if (type == CUDA_R_16F) return doppler::DType::float16;
    return type == CUDA_R_16BF ? doppler::DType::bfloat16 : doppler::DType::float32;
  };
  handle->stream->push([=] {
    for (std::int64_t batch = 0; batch < n_batch; ++batch) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          float sum = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            const std::int64_t a_at = a_turned ? l + i * a_leading : i + l * a_leading;
            const std::int64_t b_at = b_turned ? j + l * b_leading : l + j * b_leading;
            sum += doppler::steps::load(a, dtype(a_type), batch * a_stride + a_at) *
                   doppler::steps::load(b, dtype(b_type), batch * b_stride + b_at);
          }
          doppler::steps::store(c, dtype(c_type), batch * c_stride + i + j * c_leading, sum);
        }
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

// --- NCCL ---

namespace {

// A send or a receive of a group; the two of a pair meet.
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_sent = false;
  bool is_received = false;
};

struct Operation {
  ncclComm_t communicator;
  int peer;
  const void* from;
  void* to;
  std::size_t bytes;
  cudaStream_t stream;
};

thread_local int group_depth = 0;
thread_local std::vector<Operation> group_sends;
thread_local std::vector<Operation> group_receives;

void check_thread() {
  const std::lock_guard lock(state().mutex);
  if (!state().nccl_thread) state().nccl_thread = std::this_thread::get_id();
  if (*state().nccl_thread != std::this_thread::get_id()) {
    state().faults.push_back("NCCL is called by several threads");
  }
}

void run_group() {
  for (const Operation& send : group_sends) {
    const auto match =
        std::find_if(group_receives.begin(), group_receives.end(), [&](const Operation& receive) {
          return receive.communicator->rank == send.peer &&
                 receive.peer == send.communicator->rank && receive.bytes == send.bytes;
        });
    if (match == group_receives.end()) {
      fault("a send without its receive in the group");
      continue;
    }
    count(&Traffic::nccl);
    auto meeting = std::make_shared<Meeting>();
    const Operation receive = *match;
    group_receives.erase(match);
    const auto copy = [=] { std::memcpy(receive.to, send.from, send.bytes); };
    if (send.stream == receive.stream) {
      send.stream->push(copy);
      continue;
    }
    send.stream->push([=] {
      std::unique_lock lock(meeting->mutex);
      meeting->is_sent = true;
      meeting->changed.notify_all();
      meeting->changed.wait(lock, [&] { return meeting->is_received; });
    });
    receive.stream->push([=] {
      std::unique_lock lock(meeting->mutex);
      meeting->changed.wait(lock, [&] { return meeting->is_sent; });
      copy();
      meeting->is_received = true;
      meeting->changed.notify_all();
    });
  }
  if (!group_receives.empty()) fault("a receive without its send in the group");
  group_sends.clear();
  group_receives.clear();
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "an error of the stand-in"; }

ncclResult_t ncclGetVersion(int* version) {
  if (fails()) return ncclSystemError;
  const std::lock_guard lock(state().mutex);
  *version = state().machine.nccl_version != 0 ? state().machine.nccl_version : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int n, const int* gpus) {
  check_thread();
  if (fails()) return ncclSystemError;
  for (int rank = 0; rank < n; ++rank) {
    communicators[rank] = new ncclComm{gpus[rank], rank, n};
    count_alive(1);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  check_thread();
  delete communicator;
  count_alive(-1);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) { return ncclCommDestroy(communicator); }

ncclResult_t ncclGroupStart() {
  check_thread();
  if (fails()) return ncclSystemError;
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  check_thread();
  --group_depth;
  if (fails()) {
    group_sends.clear();
    group_receives.clear();
    return ncclSystemError;
  }
  run_group();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t bytes, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  check_thread();
  if (fails()) return ncclSystemError;
  if (group_depth == 0) fault("a send outside a group");
  if (communicator->gpu != stream->gpu) fault("a send on another GPU's stream");
  group_sends.push_back({communicator, peer, data, nullptr, bytes, stream});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* data, std::size_t bytes, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  check_thread();
  if (fails()) {
    group_sends.clear();  // as if nothing had been issued
    return ncclSystemError;
  }
  if (group_depth == 0) fault("a receive outside a group");
  if (communicator->gpu != stream->gpu) fault("a receive on another GPU's stream");
  group_receives.push_back({communicator, peer, nullptr, data, bytes, stream});
  return ncclSuccess;
}

}  // extern "C"

namespace doppler::cuda {

const NcclLibrary& nccl_library() {
  static const NcclLibrary stand_in = {&ncclGetVersion,  &ncclGetErrorString, &ncclCommInitAll,
                                       &ncclCommDestroy, &ncclCommAbort,      &ncclGroupStart,
                                       &ncclGroupEnd,    &ncclSend,           &ncclRecv};
  return stand_in;
}

}  // namespace doppler::cuda
