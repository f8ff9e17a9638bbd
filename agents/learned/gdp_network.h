// GDP's network as a LibTorch module: what gradients are taken of.
//
// Zhou et al., GDP: Generalized Device Placement for Dataflow Graphs, 2019, in the sizes that the
// DOPPLER authors ran. Of each node, by one layer of GraphSAGE with the maximum over its neighbours
// in both directions (0 without any):
//   h = W f,  x = W'' [h | max over neighbours u of sigmoid(W' h(u))]
// Then over the nodes in order, in segments: attention of the segment to itself and to what the
// segment before came to (its memory, which is a constant: no gradient goes through it),
//   z = norm(x + W4 attention(x; [memory | x])),  y = norm(z + feed forward(z)),
// and the scores of the devices are a linear layer of y. y is the memory of the next segment.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "agents/learned/plain_layer.h"

namespace doppler {

struct GdpSizes {
  std::int64_t hidden = 64;  // a multiple of 16, and of the number of heads
  std::int64_t wide = 256;   // of the feed-forward layer
  std::int64_t heads = 4;
  std::int64_t segment = 8;  // nodes; as many are remembered
};

// The rows that GraphSAGE reads: states of nodes, which may be several for one node.
struct GdpRows {
  at::Tensor features;                  // [n_rows, n_features]
  std::vector<std::int64_t> own;        // [n] row of each node
  std::vector<std::int32_t> first;      // [n + 1]
  std::vector<std::int32_t> neighbour;  // row
};

struct GdpWeights;

class GdpNetwork : public torch::nn::Module {
 public:
  GdpNetwork(const GdpSizes& sizes, std::int64_t n_features, std::int64_t n_devices,
             at::Generator generator);

  // x of each node, [n, hidden].
  at::Tensor nodes(const GdpRows& rows);
  // Scores [n, n_devices] of nodes in sequences of `length` (the segments of each begin anew), from
  // x and from y of all nodes, which is what the segments remember: [n, hidden] both, n a multiple
  // of `length`. All segments at once.
  at::Tensor scores(const at::Tensor& x, const at::Tensor& outputs, std::int64_t length);
  [[nodiscard]] GdpWeights weights() const;
  [[nodiscard]] const GdpSizes& sizes() const { return sizes_; }
  [[nodiscard]] std::int64_t n_features() const { return project_->weight.size(1); }

 private:
  GdpSizes sizes_;
  torch::nn::Linear project_;    // W: n_features -> hidden
  torch::nn::Linear neighbour_;  // W'
  torch::nn::Linear combine_;    // W'': 2 hidden -> hidden
  torch::nn::Linear query_;
  torch::nn::Linear key_;
  torch::nn::Linear value_;
  torch::nn::Linear attended_;  // W4
  torch::nn::Linear wide_;
  torch::nn::Linear narrow_;
  torch::nn::Linear out_;  // hidden -> n_devices
  at::Tensor norm_weight_, norm_bias_;
  at::Tensor last_weight_, last_bias_;
};

// The parameters for loops.
struct GdpWeights {
  GdpSizes sizes;
  PlainLayer project, neighbour, combine, query, key, value, attended, wide, narrow, out;
  std::vector<float> norm_weight, norm_bias, last_weight, last_bias;
};

inline constexpr double kGdpNormFloor = 1e-5;  // of a variance

}  // namespace doppler
