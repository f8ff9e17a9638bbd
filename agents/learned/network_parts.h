// What the networks of DOPPLER's authors and ours have in common: pieces of linear layers, as
// LibTorch's operations and as tables for loops.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agents/learned/choice_gradients.h"
#include "agents/learned/dense_rows.h"
#include "agents/learned/paper_task.h"

namespace doppler {

at::Tensor leaky_act(const at::Tensor& x);
inline std::size_t padded_size(std::int64_t n) { return padded(static_cast<std::size_t>(n)); }

// The part of a linear layer that reads inputs [begin, begin + length).
at::Tensor part_of(const torch::nn::Linear& layer, const at::Tensor& x, std::int64_t begin,
                   std::int64_t length);

// Appends transposed weights [inputs, padded outputs] of some inputs, which are padded too.
void append_inputs(const torch::nn::Linear& layer, std::int64_t begin, std::int64_t length,
                   std::size_t padded_length, std::vector<float>& out);
// [inputs + 1, padded outputs]: the transposed weights, then the bias.
std::vector<float> with_bias(const torch::nn::Linear& layer);
// Of a layer with one output: its inputs padded, then its bias.
std::vector<float> out_weights(const torch::nn::Linear& layer);

// Tables with their rows padded by zeros.
std::vector<float> padded_floats(const at::Tensor& table);
std::vector<double> padded_doubles(const at::Tensor& table);

at::Tensor index_tensor(const std::vector<std::int64_t>& values, const torch::Device& device);
at::Tensor index_tensor(const std::vector<std::int32_t>& values, const torch::Device& device);
at::Tensor feature_tensor(const std::vector<float>& values, std::int64_t n_columns,
                          const torch::TensorOptions& options);

// All paths, by number of nodes.
std::shared_ptr<const Segments> one_segment(const PathPlan& paths);

}  // namespace doppler
