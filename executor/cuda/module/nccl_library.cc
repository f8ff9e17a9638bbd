#include "executor/cuda/module/nccl_library.h"

#include <dlfcn.h>

#include <string>

#include "graphs/error.h"

namespace doppler::cuda {
namespace {

constexpr const char* kFile = "libnccl.so.2";

NcclLibrary load() {
  void* library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw RunError("transport=nccl needs NCCL: " + std::string(why != nullptr ? why : kFile) +
                   "; install it, or choose transport=peer");
  }
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) {
      throw RunError(std::string(kFile) + " has no " + name +
                     "; install a newer NCCL, or choose transport=peer");
    }
  };
  NcclLibrary nccl;
  find(nccl.get_version, "ncclGetVersion");
  find(nccl.get_error_string, "ncclGetErrorString");
  find(nccl.comm_init_all, "ncclCommInitAll");
  find(nccl.comm_destroy, "ncclCommDestroy");
  find(nccl.comm_abort, "ncclCommAbort");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.send, "ncclSend");
  find(nccl.recv, "ncclRecv");
  return nccl;
}

}  // namespace

const NcclLibrary& nccl_library() {
  static const NcclLibrary loaded = load();
  return loaded;
}

}  // namespace doppler::cuda
