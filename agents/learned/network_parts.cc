#include "agents/learned/network_parts.h"

#include <algorithm>

namespace doppler {

namespace {

template <class T>
std::vector<T> plain(const at::Tensor& x, torch::Dtype dtype) {
  const at::Tensor from = x.detach().to(torch::kCPU, dtype).contiguous();
  const T* const data = from.const_data_ptr<T>();
  return {data, data + from.numel()};
}

at::Tensor padded_rows(const at::Tensor& table) {
  const std::int64_t width = static_cast<std::int64_t>(padded_size(table.size(1)));
  return torch::constant_pad_nd(table.detach(), {0, width - table.size(1)});
}

}  // namespace

at::Tensor leaky_act(const at::Tensor& x) { return torch::leaky_relu(x, kPaperSlope); }

at::Tensor part_of(const torch::nn::Linear& layer, const at::Tensor& x, std::int64_t begin,
                   std::int64_t length) {
  return x.matmul(layer->weight.narrow(1, begin, length).t());
}

void append_inputs(const torch::nn::Linear& layer, std::int64_t begin, std::int64_t length,
                   std::size_t padded_length, std::vector<float>& out) {
  const auto n_outputs = static_cast<std::size_t>(layer->weight.size(0));
  const std::vector<float> columns =
      plain<float>(layer->weight.narrow(1, begin, length).t(), torch::kFloat32);
  const std::size_t width = padded(n_outputs);
  for (std::size_t k = 0; k < padded_length; ++k) {
    const std::size_t first = out.size();
    out.resize(first + width, 0.0F);
    if (k >= static_cast<std::size_t>(length)) continue;
    std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(k * n_outputs), n_outputs,
                out.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::vector<float> with_bias(const torch::nn::Linear& layer) {
  std::vector<float> out;
  append_inputs(layer, 0, layer->weight.size(1), static_cast<std::size_t>(layer->weight.size(1)),
                out);
  const std::size_t first = out.size();
  const std::vector<float> bias = plain<float>(layer->bias, torch::kFloat32);
  out.resize(first + padded(bias.size()), 0.0F);
  std::copy(bias.begin(), bias.end(), out.begin() + static_cast<std::ptrdiff_t>(first));
  return out;
}

std::vector<float> out_weights(const torch::nn::Linear& layer) {
  std::vector<float> out = plain<float>(layer->weight, torch::kFloat32);
  out.resize(padded(out.size()), 0.0F);
  out.push_back(layer->bias.item<float>());
  return out;
}

std::vector<float> padded_floats(const at::Tensor& table) {
  return plain<float>(padded_rows(table), torch::kFloat32);
}

std::vector<double> padded_doubles(const at::Tensor& table) {
  return plain<double>(padded_rows(table), torch::kFloat64);
}

at::Tensor index_tensor(const std::vector<std::int64_t>& values, const torch::Device& device) {
  return torch::tensor(at::ArrayRef<std::int64_t>(values), torch::kInt64).to(device);
}

at::Tensor index_tensor(const std::vector<std::int32_t>& values, const torch::Device& device) {
  return index_tensor(std::vector<std::int64_t>(values.begin(), values.end()), device);
}

at::Tensor feature_tensor(const std::vector<float>& values, std::int64_t n_columns,
                          const torch::TensorOptions& options) {
  return torch::tensor(at::ArrayRef<float>(values), torch::kFloat32)
      .view({-1, n_columns})
      .to(options);
}

std::shared_ptr<const Segments> one_segment(const PathPlan& paths) {
  auto segments = std::make_shared<Segments>();
  for (std::size_t p = 0; p < paths.state.size(); ++p) {
    segments->row.push_back(static_cast<std::int32_t>(p));
  }
  segments->weight = paths.weight;
  segments->first.push_back(static_cast<std::int32_t>(paths.state.size()));
  return segments;
}

}  // namespace doppler
