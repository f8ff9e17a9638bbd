// The stand-in's cuBLAS and NCCL.
#include <cublas_v2.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "executor/cuda/module/nccl_library.h"
#include "executor/runtime/step_functions.h"
#include "tests/cuda_stand_in/state.h"

using doppler::stand_in::count;
using doppler::stand_in::count_alive;
using doppler::stand_in::fails;
using doppler::stand_in::fault;
using doppler::stand_in::state;
using doppler::stand_in::Traffic;

struct cublasContext {
  cudaStream_t stream = nullptr;
};

struct ncclComm {
  int gpu = 0;
  int rank = 0;
  int n_ranks = 1;
};

extern "C" {

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
