// Message passing over the dataflow graph made bidirected: what SEL and PLC know of a node beyond
// its own features.
//
// Gilmer et al., Neural message passing, ICML 2017, section 5, as DOPPLER has it: an edge network
// turns the edge feature into a matrix that multiplies the source's state, a gated recurrent unit
// (Cho et al., 2014) takes the sum of what arrives.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "agents/learned/node_classes.h"

namespace doppler {

struct MessagePassingOptions {
  std::int64_t n_features = 5;  // of a node
  std::int64_t hidden = 128;
  std::int64_t edge_hidden = 128;  // of the edge network
  std::int64_t steps = 6;
};

// What of a task message passing reads, as tensors; made once a task. Immutable.
class MessageInputs {
 public:
  MessageInputs(const GraphFeatures& features, MessagePlan plan,
                const at::TensorOptions& options = {});

  [[nodiscard]] const MessagePlan& plan() const { return *plan_; }
  [[nodiscard]] const std::shared_ptr<const MessagePlan>& shared_plan() const { return plan_; }
  [[nodiscard]] const at::Tensor& features() const { return features_; }  // [n_classes, f]
  [[nodiscard]] const at::Tensor& values() const { return values_; }      // [n_values, 1]
  [[nodiscard]] const at::Tensor& sources() const { return sources_; }    // [n_messages]
  [[nodiscard]] const at::Tensor& message_values() const {
    return message_values_;
  }                                                                           // [n_messages]
  [[nodiscard]] const at::Tensor& node_class() const { return node_class_; }  // [n_nodes]

 private:
  std::shared_ptr<const MessagePlan> plan_;
  at::Tensor features_;
  at::Tensor values_;
  at::Tensor sources_;
  at::Tensor message_values_;
  at::Tensor node_class_;
};

class MessagePassing : public torch::nn::Module {
 public:
  // Linear layers are orthogonal with zero bias; the unit's parameters uniform within
  // 1 / sqrt(hidden).
  MessagePassing(const MessagePassingOptions& options, at::Generator generator);

  // H of each class, LeakyReLU(0.1) of the last states, [n_classes, hidden]; of each node:
  // .index_select(0, inputs.node_class()). The edge network runs once for each distinct value, or
  // at most 2 (edge_hidden + 1) times. O(steps x (classes + messages)) beside it.
  at::Tensor forward(const MessageInputs& inputs);

  [[nodiscard]] const MessagePassingOptions& options() const { return options_; }

 private:
  // What multiplies the messages: group g, of messages (*groups)[g] to (*groups)[g + 1], by
  // matrices[g].
  struct EdgeMatrices {
    std::shared_ptr<const std::vector<std::int32_t>> groups;
    at::Tensor matrices;
  };
  EdgeMatrices matrices_by_value(const MessageInputs& inputs);
  EdgeMatrices matrices_by_piece(const MessageInputs& inputs);

  MessagePassingOptions options_;
  torch::nn::Linear input_;       // n_features -> hidden
  torch::nn::Linear edge_input_;  // 1 -> edge_hidden
  torch::nn::Linear
      edge_output_;  // edge_hidden -> hidden x hidden: row i, column j at i hidden + j
  torch::nn::GRUCell unit_;
};

// A linear layer of orthogonal weights (Saxe et al., 2014) and zero bias. Unlike
// torch::nn::init::orthogonal_ its luck is the generator's alone, and tall layers take no time.
torch::nn::Linear orthogonal_linear(std::int64_t n_inputs, std::int64_t n_outputs,
                                    at::Generator generator);

}  // namespace doppler
