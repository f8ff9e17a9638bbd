// Linear layers for loops without LibTorch.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <vector>

namespace doppler {

// in [rows, n_inputs] to out [rows, width]: in W + b; the outputs beyond n_outputs are zeros.
struct PlainLayer {
  std::size_t n_inputs = 0;
  std::size_t n_outputs = 0;
  std::size_t width = 0;            // padded() of n_outputs
  std::vector<float> weights = {};  // [n_inputs, width]
  std::vector<float> bias = {};     // [width]

  void apply(const float* in, std::size_t n_rows, float* out) const;
};
PlainLayer plain_layer(const torch::nn::Linear& layer);

// The values of a tensor, row-major.
std::vector<float> plain_values(const at::Tensor& tensor);

// Log-probabilities of a softmax over n scores, in place.
void log_softmax(float* scores, std::size_t n);

}  // namespace doppler
