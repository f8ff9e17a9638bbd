// A stand-in for CUDA, cuBLAS and NCCL that runs on the host, so that what the CUDA engine's module
// asks of them is tested without a GPU: a stream is a thread, memory is the host's, and the thread
// sanitizer sees every use of a buffer that no event orders.
//
// It is stricter than CUDA where the documents are: an event is recorded on streams of its own GPU
// only, times are taken between events of one GPU, NCCL is called by one thread, and a group's
// sends and receives match.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace doppler::stand_in {

struct Machine {
  int n_gpus = 1;
  std::size_t memory = std::size_t{8} << 30;       // free bytes of each GPU
  std::set<std::pair<int, int>> unreachable = {};  // ordered pairs of GPUs
  int nccl_version = 0;                            // 0: that of the header
  // The call of any function with this number, from 0, fails; -1: none.
  long failing_call = -1;
};

// Replaces the machine, forgets counts and faults. Nothing of the one before may be in use.
void reset(const Machine& machine);
// Calls since reset().
long n_calls();
// What was called in a way that CUDA or NCCL does not allow; and objects that are alive.
std::vector<std::string> faults();
long n_alive();
// Copies by way of the host, between GPUs, within a GPU; transfers by NCCL.
struct Traffic {
  long to_host = 0;
  long from_host = 0;
  long between = 0;
  long within = 0;
  long nccl = 0;
};
Traffic traffic();

// Puts work behind what the stream holds.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

}  // namespace doppler::stand_in
