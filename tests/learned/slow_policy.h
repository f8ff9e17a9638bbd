// The paper's two policies once more, state by state, straight from their description: every node
// by itself, no classes, no running sums, all in float64 with LibTorch's plain operations.
#pragma once

#include <torch/torch.h>

#include "agents/learned/paper_network.h"

namespace doppler::testing {

class SlowPolicy {
 public:
  SlowPolicy(PaperNetwork& network, const PlacementModel& model);

  // Log-probabilities of the candidates, in the order of schedule.candidates(), float64.
  at::Tensor candidates(const PartialSchedule& schedule);
  // Of the devices for `node`.
  at::Tensor devices(const PartialSchedule& schedule, NodeId node);

 private:
  at::Tensor parameter(const std::string& policy, const std::string& name);
  at::Tensor linear(const std::string& layer, const std::string& policy, const at::Tensor& x);
  at::Tensor states(const std::string& policy);

  const PlacementModel& model_;
  PaperSizes sizes_;
  torch::OrderedDict<std::string, at::Tensor> select_;
  torch::OrderedDict<std::string, at::Tensor> place_;
  at::Tensor features_;  // [n, 5]
  at::Tensor select_states_;
  at::Tensor place_states_;
};

}  // namespace doppler::testing
