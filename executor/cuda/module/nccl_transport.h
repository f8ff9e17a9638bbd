// Transfers by NCCL: one rank a GPU, all in this process.
//
// One thread makes every call of NCCL. A transfer is one group of its send and its receive, on one
// stream a GPU that holds nothing else, so that all ranks see their operations in one order and
// none waits for another's turn.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <future>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "executor/cuda/module/gpu.h"
#include "executor/cuda/module/nccl_library.h"
#include "executor/cuda/module/transfer.h"

namespace doppler::cuda {

class NcclTransport {
 public:
  // Throws RunError if there is no library, if the one that is loaded is older than, or of another
  // major version than, the header that this was compiled with, and if the ranks cannot be
  // connected.
  explicit NcclTransport(std::vector<Gpu*> gpus);
  ~NcclTransport();
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  // Enqueues a transfer behind what `lane` holds, and lets `lane` wait for it; returns when that is
  // done. `start` (of from_gpu) and `end` (of to_gpu) are recorded around it. Throws RunError; the
  // ranks are connected anew by the next call then.
  void send(const Transfer& transfer, const Lane& lane, cudaEvent_t start, cudaEvent_t end);

 private:
  struct Rank {
    Gpu* gpu = nullptr;
    int number = 0;
    OwnedStream stream;
    OwnedEvent done;                    // untimed; of the last send or receive
    ncclComm_t communicator = nullptr;  // owned; of the thread
  };

  void work();
  void connect();
  void disconnect();
  void issue(const Transfer& transfer, const Lane& lane, cudaEvent_t start, cudaEvent_t end);

  const NcclLibrary& nccl_ = nccl_library();
  std::map<const Gpu*, Rank> ranks_;  // touched by the thread alone once it runs
  bool is_connected_ = false;
  std::mutex mutex_;  // of the two below
  std::condition_variable changed_;
  std::queue<std::packaged_task<std::string()>> tasks_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace doppler::cuda
