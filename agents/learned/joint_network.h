// One policy over pairs of a candidate and a device, from the pieces of DOPPLER's two (paper_*.h):
// what the paper compares two policies with.
//
//   score(v, d) = out . act(W [act(Wg g(v, d)) | act(Wf f(v)) | H(v) | H on v's b-path | on its
//                              t-path | H on d] + c)
// softmax over all pairs. g are the paper's five device features, standardised over the pairs of
// the step; f over the nodes of the graph, and so are the path sums; the device sums over the
// devices. act is LeakyReLU.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <span>
#include <vector>

#include "agents/learned/joint_rollout.h"
#include "agents/learned/paper_network.h"

namespace doppler {

class JointNetwork : public torch::nn::Module {
 public:
  // `n_columns`: features of a node.
  JointNetwork(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator);

  struct Embedding {
    at::Tensor base;    // [n_rows, head]: W's part of what depends on v alone, with c
    at::Tensor states;  // [n_classes, hidden] H
  };
  Embedding embed(const PaperTensors& tensors);
  // Of every recorded step of the episodes, one after another.
  ChoiceValues choices(const PaperTensors& tensors, const Embedding& embedding,
                       std::span<const JointEpisode> episodes);
  [[nodiscard]] JointWeights weights() const;

 private:
  PaperSizes sizes_;
  std::shared_ptr<MessagePassing> passing_;
  torch::nn::Linear own_;       // Wf: n_columns -> hidden
  torch::nn::Linear pair_;      // Wg: 5 -> hidden
  torch::nn::Linear combined_;  // W: 6 hidden -> head
  torch::nn::Linear out_;       // head -> 1
};

// For the rollouts; no gradient.
JointEmbedding plain_embedding(const JointNetwork::Embedding& embedding);

}  // namespace doppler
