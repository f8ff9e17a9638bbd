// DOPPLER's two policies as LibTorch modules: what gradients are taken of, and the reference for
// the loops of PaperRollout.
//
// Yao et al., DOPPLER, 2025, section 4: SEL scores candidates, PLC devices; each has a message
// passing of its own, run once an episode. The formulas are in paper_rollout.h.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <span>
#include <vector>

#include "agents/learned/choice_gradients.h"
#include "agents/learned/message_passing.h"
#include "agents/learned/paper_rollout.h"

namespace doppler {

// The paper's sizes.
struct PaperSizes {
  std::int64_t hidden = 128;
  std::int64_t edge_hidden = 128;
  std::int64_t head = 64;
  std::int64_t steps = 6;
};

// What of a task the modules read: PaperTask as tensors, on one device, of one dtype.
struct PaperTensors {
  PaperTensors(std::shared_ptr<const PaperTask> paper_task, const torch::TensorOptions& options);

  std::shared_ptr<const PaperTask> task;
  MessageInputs inputs;
  std::shared_ptr<const PathPlan> b_paths;
  std::shared_ptr<const PathPlan> t_paths;
  std::shared_ptr<const Segments> all_b_paths;  // one segment, by number of nodes
  std::shared_ptr<const Segments> all_t_paths;
};

class SelectPolicy : public torch::nn::Module {
 public:
  // `n_columns`: features of a node that messages begin with.
  SelectPolicy(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator);

  struct Embedding {
    at::Tensor base;     // [n_classes, head]
    at::Tensor b_paths;  // [n_b_paths, hidden], float64
    at::Tensor t_paths;  // [n_t_paths, hidden], float64
  };
  Embedding embed(const PaperTensors& tensors);
  // Of every recorded step of the episodes, one after another.
  ChoiceValues choices(const PaperTensors& tensors, const Embedding& embedding,
                       std::span<const PaperEpisode> episodes);
  [[nodiscard]] PaperWeights::Policy weights() const;

 private:
  PaperSizes sizes_;
  std::shared_ptr<MessagePassing> passing_;
  torch::nn::Linear own_;       // 5 -> hidden
  torch::nn::Linear combined_;  // [own | H | b-path | t-path] -> head
  torch::nn::Linear out_;       // head -> 1
};

class PlacePolicy : public torch::nn::Module {
 public:
  PlacePolicy(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator);

  struct Embedding {
    at::Tensor base;    // [n_classes, head]
    at::Tensor states;  // [n_classes, hidden]
  };
  Embedding embed(const PaperTensors& tensors);
  ChoiceValues choices(const PaperTensors& tensors, const Embedding& embedding,
                       std::span<const PaperEpisode> episodes);
  [[nodiscard]] PaperWeights::Policy weights() const;

 private:
  PaperSizes sizes_;
  std::shared_ptr<MessagePassing> passing_;
  torch::nn::Linear device_;    // 5 -> hidden
  torch::nn::Linear node_;      // n_columns -> hidden
  torch::nn::Linear combined_;  // [device | node | H | on the device] -> head
  torch::nn::Linear out_;       // head -> 1
};

struct PaperNetwork {
  // Luck of the initial weights.
  PaperNetwork(const PaperSizes& network_sizes, std::uint64_t seed,
               PaperHalves learnt = PaperHalves::both,
               MessagePassingTime time = MessagePassingTime::episode);

  PaperSizes sizes;
  PaperHalves halves;
  MessagePassingTime message_passing;
  std::shared_ptr<SelectPolicy> select;  // null: not learnt
  std::shared_ptr<PlacePolicy> place;

  [[nodiscard]] PaperWeights weights() const;
};

// For the rollouts; no gradient. Of a policy that is not learnt, an embedding without tensors.
PaperEmbedding plain_embedding(const SelectPolicy::Embedding& select,
                               const PlacePolicy::Embedding& place);
PaperEmbedding plain_embedding(const PaperNetwork& network, const PaperTensors& tensors);

}  // namespace doppler
