// Where LibTorch computes.
#pragma once

#include <torch/torch.h>

#include <string>

namespace doppler {

// "cpu" or "cuda"; for the latter LibTorch's CUDA library is loaded, from beside the CPU's. Throws
// RunError that says what is missing: the library, or a GPU.
torch::Device torch_device(const std::string& name);

// LibTorch with one thread an operation, on this thread, while it lives: threads of ours run whole
// episodes and whole gradients side by side instead.
class SingleThreadedTorch {
 public:
  SingleThreadedTorch();
  ~SingleThreadedTorch();
  SingleThreadedTorch(const SingleThreadedTorch&) = delete;
  SingleThreadedTorch& operator=(const SingleThreadedTorch&) = delete;

 private:
  int n_threads_before_;
};

}  // namespace doppler
