#include "agents/learned/joint_network.h"

#include <utility>

#include "agents/learned/network_parts.h"

namespace doppler {

namespace {

constexpr auto kFeatures = static_cast<std::int64_t>(kPaperDeviceFeatures);

}  // namespace

JointNetwork::JointNetwork(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator)
    : sizes_(sizes),
      passing_(register_module(
          "passing",
          std::make_shared<MessagePassing>(MessagePassingOptions{.n_features = n_columns,
                                                                 .hidden = sizes.hidden,
                                                                 .edge_hidden = sizes.edge_hidden,
                                                                 .steps = sizes.steps},
                                           generator))),
      own_(register_module("own", orthogonal_linear(n_columns, sizes.hidden, generator))),
      pair_(register_module("pair", orthogonal_linear(kFeatures, sizes.hidden, generator))),
      combined_(
          register_module("combined", orthogonal_linear(6 * sizes.hidden, sizes.head, generator))),
      out_(register_module("out", orthogonal_linear(sizes.head, 1, generator))) {}

JointNetwork::Embedding JointNetwork::embed(const PaperTensors& tensors) {
  const PaperTask& task = *tensors.task;
  const std::int64_t hidden = sizes_.hidden;
  const at::Tensor h = passing_->forward(tensors.inputs);
  const at::Tensor own = leaky_act(own_->forward(tensors.inputs.features()));
  const at::Tensor of_class =
      part_of(combined_, own, hidden, hidden) + part_of(combined_, h, 2 * hidden, hidden);
  const auto of_paths = [&](const std::shared_ptr<const PathPlan>& paths,
                            const std::shared_ptr<const Segments>& all, std::int64_t block) {
    const at::Tensor sums = standardised_rows(path_sums(h, paths), all, h.scalar_type());
    return part_of(combined_, sums, block * hidden, hidden);
  };
  const auto by_row = [&](const at::Tensor& table, const std::vector<std::int32_t>& index) {
    return table.index_select(0, index_tensor(index, h.device()));
  };
  return {.base = by_row(of_class, task.row_state) +
                  by_row(of_paths(tensors.b_paths, tensors.all_b_paths, 3), task.row_b_path) +
                  by_row(of_paths(tensors.t_paths, tensors.all_t_paths, 4), task.row_t_path) +
                  combined_->bias,
          .states = h};
}

ChoiceValues JointNetwork::choices(const PaperTensors& tensors, const Embedding& embedding,
                                   std::span<const JointEpisode> episodes) {
  const PaperTask& task = *tensors.task;
  const auto n_devices = static_cast<std::int32_t>(task.model->n_devices());
  auto placements = std::make_shared<Placements>();
  placements->n_devices = task.model->n_devices();
  auto targets = std::make_shared<ChoiceTargets>();
  std::vector<std::int32_t> rows;  // of pairs
  std::vector<std::int32_t> sums;  // rows of the device sums
  std::vector<float> features;
  for (const JointEpisode& episode : episodes) {
    const auto before = static_cast<std::int32_t>(placements->state.size());
    for (NodeId node : episode.node) {
      placements->state.push_back(task.plan.node_class[node.index()]);
      placements->device.push_back(episode.assignment[node].value);
    }
    placements->episode_first.push_back(static_cast<std::int32_t>(placements->state.size()));
    for (std::size_t k = 0; k < episode.step.size(); ++k) {
      for (auto i = static_cast<std::size_t>(episode.first[k]);
           i < static_cast<std::size_t>(episode.first[k + 1]); ++i) {
        for (std::int32_t d = 0; d < n_devices; ++d) {
          rows.push_back(episode.row[i]);
          sums.push_back((before + episode.step[k]) * n_devices + d);
          targets->weight.push_back(episode.count[i]);
        }
      }
      targets->first.push_back(static_cast<std::int32_t>(rows.size()));
    }
    targets->target.insert(targets->target.end(), episode.target.begin(), episode.target.end());
    features.insert(features.end(), episode.features.begin(), episode.features.end());
  }
  const at::Tensor& base = embedding.base;
  const std::int64_t hidden = sizes_.hidden;
  const at::Tensor pairs =
      leaky_act(pair_->forward(feature_tensor(features, kFeatures, base.options())));
  const at::Tensor of_devices = part_of(
      combined_, standardised_device_sums(embedding.states, placements), 5 * hidden, hidden);
  const at::Tensor combined = part_of(combined_, pairs, 0, hidden) +
                              base.index_select(0, index_tensor(rows, base.device())) +
                              of_devices.index_select(0, index_tensor(sums, base.device()));
  return choice_values(out_->forward(leaky_act(combined)).view({-1}), targets);
}

JointWeights JointNetwork::weights() const {
  JointWeights weights;
  weights.hidden = padded_size(sizes_.hidden);
  weights.head = padded_size(sizes_.head);
  weights.pair = with_bias(pair_);
  append_inputs(combined_, 0, sizes_.hidden, weights.hidden, weights.of_pair);
  append_inputs(combined_, 5 * sizes_.hidden, sizes_.hidden, weights.hidden, weights.of_device);
  weights.out = out_weights(out_);
  return weights;
}

JointEmbedding plain_embedding(const JointNetwork::Embedding& embedding) {
  return {.base = padded_floats(embedding.base), .state = padded_floats(embedding.states)};
}

}  // namespace doppler
