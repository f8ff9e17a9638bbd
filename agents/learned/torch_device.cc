#include "agents/learned/torch_device.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include "graphs/error.h"

namespace doppler {

namespace {

constexpr const char* kCudaLibrary = "libtorch_cuda.so";

// The path of kCudaLibrary beside the library that holds LibTorch's own functions.
std::string cuda_library() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &found) == 0) return kCudaLibrary;
  const std::string path = found.dli_fname;
  const std::size_t slash = path.rfind('/');
  return (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + kCudaLibrary;
}

}  // namespace

torch::Device torch_device(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  if (name != "cuda") throw UsageError("device is '" + name + "'; give cpu or cuda");
  const std::string library = cuda_library();
  // Before LibTorch is first asked about CUDA: it remembers the answer. Never closed.
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* const reason = dlerror();
    throw RunError("this PyTorch cannot use a GPU (" +
                   std::string(reason != nullptr ? reason : library) +
                   "); install one that was built for CUDA, or use the device cpu");
  }
  if (torch::cuda::device_count() == 0) {
    throw RunError("there is no CUDA GPU here that PyTorch can use; use the device cpu");
  }
  return {torch::kCUDA, 0};
}

SingleThreadedTorch::SingleThreadedTorch() : n_threads_before_(at::get_num_threads()) {
  if (n_threads_before_ != 1) at::set_num_threads(1);
}

SingleThreadedTorch::~SingleThreadedTorch() {
  if (n_threads_before_ != 1) at::set_num_threads(n_threads_before_);
}

}  // namespace doppler
