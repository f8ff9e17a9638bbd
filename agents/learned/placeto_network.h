// Placeto's network as a LibTorch module: what gradients are taken of.
//
// Addanki et al., Placeto: Learning Generalizable Device Placement Algorithms for Distributed
// Machine Learning, NeurIPS 2019, section 3. Of each node v a transform of its features,
// s(v) = W2 relu(W1 f(v)), and messages down the edges and, with weights of their own, up:
//   x_0 = s,  x_k+1(v) = s(v) + relu(G2 relu(G1 sum over v's producers u of
//                                              relu(F2 relu(F1 x_k(u)))))
// (without the second term where v has none); H = [x down | x up]. The node to be placed, v, sees
// the nodes that reach it, those it reaches, and those parallel to it, each group as
// relu(B mean of relu(A H)), and itself: out . relu(W [three groups | H(v)]) scores the devices.
//
// Features: compute, transfer, being placed now, placed already, the device so far (one-hot).
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <vector>

#include "agents/learned/placeto_task.h"
#include "agents/learned/plain_layer.h"

namespace doppler {

struct PlacetoSizes {
  std::int64_t width = 16;  // a multiple of 16
  std::int64_t head = 32;
  std::int64_t rounds = 8;  // of messages in each direction
};

inline constexpr std::size_t kPlacetoOwnFeatures = 4;  // before the one-hot device

// Networks of two layers: relu between them.
template <class Layer>
struct TwoLayers {
  Layer first;
  Layer second;
};

struct PlacetoWeights {
  PlacetoSizes sizes;
  TwoLayers<PlainLayer> own;
  struct Direction {
    TwoLayers<PlainLayer> message;  // F
    TwoLayers<PlainLayer> update;   // G
  };
  std::array<Direction, 2> directions;  // down, up
  struct Group {
    PlainLayer before;  // A
    PlainLayer after;   // B
  };
  std::array<Group, 3> groups;  // that reach the node, that it reaches, parallel
  PlainLayer head;
  PlainLayer out;
};

// Which nodes a node sees as its groups: 1 over their number, or 0. [queries, n_nodes] each.
using GroupShares = std::array<at::Tensor, 3>;

class PlacetoNetwork : public torch::nn::Module {
 public:
  PlacetoNetwork(const PlacetoSizes& sizes, std::int64_t n_devices, at::Generator generator);

  // H of the nodes in several states of the graph at once: [n_nodes, n_states, features] to
  // [n_nodes, n_states, 2 width].
  at::Tensor embed(const at::Tensor& features, const std::shared_ptr<const PlacetoTask>& task);
  // Scores [queries, n_devices] of queries (nodes to be placed); either one state for all of them,
  // or one for each.
  at::Tensor scores(const at::Tensor& embedding, const std::vector<std::int64_t>& queries,
                    const GroupShares& shares);
  [[nodiscard]] PlacetoWeights weights() const;
  [[nodiscard]] const PlacetoSizes& sizes() const { return sizes_; }

 private:
  using Layers = TwoLayers<torch::nn::Linear>;
  struct Direction {
    Layers message;
    Layers update;
  };
  struct Group {
    torch::nn::Linear before;
    torch::nn::Linear after;
  };
  Layers two_layers(const std::string& name, std::int64_t n_inputs, std::int64_t n_outputs,
                    at::Generator& generator);
  torch::nn::Linear layer(const std::string& name, std::int64_t n_inputs, std::int64_t n_outputs,
                          at::Generator& generator);

  PlacetoSizes sizes_;
  Layers own_;
  std::array<Direction, 2> directions_;
  std::array<Group, 3> groups_;
  torch::nn::Linear head_;
  torch::nn::Linear out_;
};

GroupShares group_shares(const PlacetoTask& task, const std::vector<std::int64_t>& queries);

}  // namespace doppler
