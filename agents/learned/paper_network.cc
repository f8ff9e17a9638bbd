#include "agents/learned/paper_network.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <utility>

#include "agents/learned/network_parts.h"

namespace doppler {

namespace {

constexpr auto kFeatures = static_cast<std::int64_t>(kPaperNodeFeatures);

at::Tensor act(const at::Tensor& x) { return leaky_act(x); }

}  // namespace

PaperTensors::PaperTensors(std::shared_ptr<const PaperTask> paper_task,
                           const torch::TensorOptions& options)
    : task(std::move(paper_task)),
      inputs(task->features, task->plan, options),
      b_paths(task, &task->b_paths),
      t_paths(task, &task->t_paths),
      all_b_paths(one_segment(task->b_paths)),
      all_t_paths(one_segment(task->t_paths)) {}

SelectPolicy::SelectPolicy(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator)
    : sizes_(sizes),
      passing_(register_module(
          "passing",
          std::make_shared<MessagePassing>(MessagePassingOptions{.n_features = n_columns,
                                                                 .hidden = sizes.hidden,
                                                                 .edge_hidden = sizes.edge_hidden,
                                                                 .steps = sizes.steps},
                                           generator))),
      own_(register_module("own", orthogonal_linear(kFeatures, sizes.hidden, generator))),
      combined_(
          register_module("combined", orthogonal_linear(4 * sizes.hidden, sizes.head, generator))),
      out_(register_module("out", orthogonal_linear(sizes.head, 1, generator))) {}

SelectPolicy::Embedding SelectPolicy::embed(const PaperTensors& tensors) {
  const at::Tensor h = passing_->forward(tensors.inputs);
  const auto sums = [&](const std::shared_ptr<const PathPlan>& paths,
                        const std::shared_ptr<const Segments>& all) {
    return standardised_rows(path_sums(h, paths), all, torch::kFloat64);
  };
  return {.base = part_of(combined_, h, sizes_.hidden, sizes_.hidden) + combined_->bias,
          .b_paths = sums(tensors.b_paths, tensors.all_b_paths),
          .t_paths = sums(tensors.t_paths, tensors.all_t_paths)};
}

ChoiceValues SelectPolicy::choices(const PaperTensors& tensors, const Embedding& embedding,
                                   std::span<const PaperEpisode> episodes) {
  const PaperTask& task = *tensors.task;
  auto b_paths = std::make_shared<Segments>();
  auto targets = std::make_shared<ChoiceTargets>();
  std::vector<std::int32_t> t_rows;
  std::vector<std::int64_t> states;
  std::vector<float> features;
  for (const PaperEpisode& episode : episodes) {
    const auto begin = static_cast<std::int32_t>(states.size());
    for (std::int32_t row : episode.select_row) {
      const auto r = static_cast<std::size_t>(row);
      b_paths->row.push_back(task.row_b_path[r]);
      t_rows.push_back(task.row_t_path[r]);
      states.push_back(task.row_state[r]);
    }
    for (std::size_t s = 1; s < episode.select_first.size(); ++s) {
      b_paths->first.push_back(begin + episode.select_first[s]);
    }
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(b_paths->weight, episode.select_count);
    append(targets->target, episode.select_target);
    append(features, episode.select_features);
  }
  targets->first = b_paths->first;
  targets->weight = b_paths->weight;
  auto t_paths = std::make_shared<Segments>(*b_paths);
  t_paths->row = std::move(t_rows);

  const at::Tensor& base = embedding.base;
  const auto dtype = base.scalar_type();
  const std::int64_t hidden = sizes_.hidden;
  const at::Tensor own = act(own_->forward(feature_tensor(features, kFeatures, base.options())));
  const at::Tensor combined =
      base.index_select(0, index_tensor(states, base.device())) +
      part_of(combined_, own, 0, hidden) +
      part_of(combined_, standardised_rows(embedding.b_paths, b_paths, dtype), 2 * hidden, hidden) +
      part_of(combined_, standardised_rows(embedding.t_paths, t_paths, dtype), 3 * hidden, hidden);
  return choice_values(out_->forward(act(combined)).view({-1}), targets);
}

PaperWeights::Policy SelectPolicy::weights() const {
  PaperWeights::Policy policy{.own = with_bias(own_), .combined = {}, .out = out_weights(out_)};
  for (std::int64_t block : {0, 2, 3}) {
    append_inputs(combined_, block * sizes_.hidden, sizes_.hidden, padded_size(sizes_.hidden),
                  policy.combined);
  }
  return policy;
}

PlacePolicy::PlacePolicy(const PaperSizes& sizes, std::int64_t n_columns, at::Generator generator)
    : sizes_(sizes),
      passing_(register_module(
          "passing",
          std::make_shared<MessagePassing>(MessagePassingOptions{.n_features = n_columns,
                                                                 .hidden = sizes.hidden,
                                                                 .edge_hidden = sizes.edge_hidden,
                                                                 .steps = sizes.steps},
                                           generator))),
      device_(register_module("device", orthogonal_linear(kFeatures, sizes.hidden, generator))),
      node_(register_module("node", orthogonal_linear(n_columns, sizes.hidden, generator))),
      combined_(
          register_module("combined", orthogonal_linear(4 * sizes.hidden, sizes.head, generator))),
      out_(register_module("out", orthogonal_linear(sizes.head, 1, generator))) {}

PlacePolicy::Embedding PlacePolicy::embed(const PaperTensors& tensors) {
  const std::int64_t hidden = sizes_.hidden;
  const at::Tensor h = passing_->forward(tensors.inputs);
  const at::Tensor node = act(node_->forward(tensors.inputs.features()));
  return {.base = part_of(combined_, node, hidden, hidden) +
                  part_of(combined_, h, 2 * hidden, hidden) + combined_->bias,
          .states = h};
}

ChoiceValues PlacePolicy::choices(const PaperTensors& tensors, const Embedding& embedding,
                                  std::span<const PaperEpisode> episodes) {
  const PaperTask& task = *tensors.task;
  auto placements = std::make_shared<Placements>();
  auto targets = std::make_shared<ChoiceTargets>();
  const std::size_t n_devices = task.model->n_devices();
  placements->n_devices = n_devices;
  std::vector<std::int64_t> states;
  std::vector<float> features;
  for (const PaperEpisode& episode : episodes) {
    for (NodeId node : episode.node) {
      const std::int32_t state = task.plan.node_class[node.index()];
      placements->state.push_back(state);
      placements->device.push_back(episode.assignment[node].value);
      states.push_back(state);
      targets->first.push_back(targets->first.back() + static_cast<std::int32_t>(n_devices));
    }
    placements->episode_first.push_back(static_cast<std::int32_t>(states.size()));
    targets->target.insert(targets->target.end(), episode.place_target.begin(),
                           episode.place_target.end());
    features.insert(features.end(), episode.place_features.begin(), episode.place_features.end());
  }
  targets->weight.assign(targets->target.size(), 1);

  const at::Tensor& base = embedding.base;
  const std::int64_t hidden = sizes_.hidden;
  const at::Tensor device =
      act(device_->forward(feature_tensor(features, kFeatures, base.options())));
  const at::Tensor sums = standardised_device_sums(embedding.states, placements);
  const at::Tensor of_devices =
      part_of(combined_, device, 0, hidden) + part_of(combined_, sums, 3 * hidden, hidden);
  const at::Tensor combined =
      of_devices.view({-1, static_cast<std::int64_t>(n_devices), sizes_.head}) +
      base.index_select(0, index_tensor(states, base.device())).unsqueeze(1);
  return choice_values(out_->forward(act(combined)).view({-1}), targets);
}

PaperWeights::Policy PlacePolicy::weights() const {
  PaperWeights::Policy policy{.own = with_bias(device_), .combined = {}, .out = out_weights(out_)};
  for (std::int64_t block : {0, 3}) {
    append_inputs(combined_, block * sizes_.hidden, sizes_.hidden, padded_size(sizes_.hidden),
                  policy.combined);
  }
  return policy;
}

PaperNetwork::PaperNetwork(const PaperSizes& network_sizes, std::uint64_t seed, PaperHalves learnt,
                           MessagePassingTime time)
    : sizes(network_sizes), halves(learnt), message_passing(time) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const std::int64_t n_columns = paper_node_columns(time);
  if (learns_select(halves)) select = std::make_shared<SelectPolicy>(sizes, n_columns, generator);
  if (learns_place(halves)) place = std::make_shared<PlacePolicy>(sizes, n_columns, generator);
}

PaperWeights PaperNetwork::weights() const {
  PaperWeights weights;
  weights.hidden = padded_size(sizes.hidden);
  weights.head = padded_size(sizes.head);
  if (select) weights.select = select->weights();
  if (place) weights.place = place->weights();
  return weights;
}

PaperEmbedding plain_embedding(const SelectPolicy::Embedding& select,
                               const PlacePolicy::Embedding& place) {
  PaperEmbedding plain;
  if (select.base.defined()) {
    plain.select_base = padded_floats(select.base);
    plain.b_paths = padded_doubles(select.b_paths);
    plain.t_paths = padded_doubles(select.t_paths);
  }
  if (place.base.defined()) {
    plain.place_base = padded_floats(place.base);
    plain.place_state = padded_floats(place.states);
  }
  return plain;
}

PaperEmbedding plain_embedding(const PaperNetwork& network, const PaperTensors& tensors) {
  const torch::NoGradGuard no_gradient;
  return plain_embedding(
      network.select ? network.select->embed(tensors) : SelectPolicy::Embedding(),
      network.place ? network.place->embed(tensors) : PlacePolicy::Embedding());
}

}  // namespace doppler
