// NCCL, loaded when transport=nccl is first asked for and not before: a program that has another
// NCCL of its own, as PyTorch has, must not find this one in its place.
#pragma once

#include <nccl.h>

namespace doppler::cuda {

struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) get_error_string = nullptr;
  decltype(&::ncclCommInitAll) comm_init_all = nullptr;
  decltype(&::ncclCommDestroy) comm_destroy = nullptr;
  decltype(&::ncclCommAbort) comm_abort = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) recv = nullptr;
};

// The library that is loaded already, else the system's. Throws RunError if there is none.
const NcclLibrary& nccl_library();

}  // namespace doppler::cuda
