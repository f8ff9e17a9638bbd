#include "agents/learned/plain_layer.h"

#include <algorithm>
#include <cmath>

#include "agents/learned/dense_rows.h"

namespace doppler {

void PlainLayer::apply(const float* in, std::size_t n_rows, float* out) const {
  for (std::size_t r = 0; r < n_rows; ++r) std::copy(bias.begin(), bias.end(), out + r * width);
  add_product(in, n_rows, n_inputs, weights.data(), width, out);
}

PlainLayer plain_layer(const torch::nn::Linear& layer) {
  PlainLayer plain{.n_inputs = static_cast<std::size_t>(layer->weight.size(1)),
                   .n_outputs = static_cast<std::size_t>(layer->weight.size(0))};
  plain.width = padded(plain.n_outputs);
  const std::vector<float> rows = plain_values(layer->weight);
  plain.weights.assign(plain.n_inputs * plain.width, 0.0F);
  for (std::size_t m = 0; m < plain.n_outputs; ++m) {
    for (std::size_t k = 0; k < plain.n_inputs; ++k) {
      plain.weights[k * plain.width + m] = rows[m * plain.n_inputs + k];
    }
  }
  plain.bias = plain_values(layer->bias);
  plain.bias.resize(plain.width, 0.0F);
  return plain;
}

std::vector<float> plain_values(const at::Tensor& tensor) {
  const at::Tensor from = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const float* const data = from.const_data_ptr<float>();
  return {data, data + from.numel()};
}

void log_softmax(float* scores, std::size_t n) {
  const float largest = *std::max_element(scores, scores + n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(scores[i] - largest));
  const double total = static_cast<double>(largest) + std::log(sum);
  for (std::size_t i = 0; i < n; ++i) scores[i] = static_cast<float>(scores[i] - total);
}

}  // namespace doppler
