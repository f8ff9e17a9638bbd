// The paper's two policies once more, state by state, straight from their description: every node
// by itself, no classes, no running sums, all in float64 with LibTorch's plain operations.
#pragma once

#include <torch/torch.h>

#include "agents/learned/paper_network.h"

namespace doppler::testing {

// H of each node, [n, hidden]: message passing with the parameters "passing.*", from features [n,
// columns] and a value of each edge [n_edges]; all float64.
at::Tensor slow_states(torch::OrderedDict<std::string, at::Tensor>& parameters, const Graph& graph,
                       const at::Tensor& features, const at::Tensor& values,
                       const PaperSizes& sizes);
// The columns of x, standardised.
at::Tensor slow_standardised(const at::Tensor& x);
at::Tensor slow_act(const at::Tensor& x);
// The paper's node features, standardised, as float32 has them; and seconds of the edges (mean) in
// time scales.
at::Tensor slow_features(const PlacementModel& model);
std::vector<double> slow_edge_seconds(const PlacementModel& model);
// The paper's features of a device for `node`, in time scales.
std::vector<double> slow_device_features(const PartialSchedule& schedule, NodeId node,
                                         DeviceId device);

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
