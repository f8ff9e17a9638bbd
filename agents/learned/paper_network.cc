#include "agents/learned/paper_network.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <utility>

#include "agents/learned/dense_rows.h"
#include "graphs/error.h"

namespace doppler {

namespace {

constexpr auto kFeatures = static_cast<std::int64_t>(kPaperNodeFeatures);

at::Tensor act(const at::Tensor& x) { return torch::leaky_relu(x, kPaperSlope); }

std::shared_ptr<const Segments> one_segment(const PathPlan& paths) {
  auto segments = std::make_shared<Segments>();
  for (std::size_t p = 0; p < paths.state.size(); ++p) {
    segments->row.push_back(static_cast<std::int32_t>(p));
  }
  segments->weight = paths.weight;
  segments->first.push_back(static_cast<std::int32_t>(paths.state.size()));
  return segments;
}

// The part of a linear layer that reads inputs [begin, begin + length).
at::Tensor part_of(const torch::nn::Linear& layer, const at::Tensor& x, std::int64_t begin,
                   std::int64_t length) {
  return x.matmul(layer->weight.narrow(1, begin, length).t());
}

template <class T>
std::vector<T> plain(const at::Tensor& x, torch::Dtype dtype) {
  const at::Tensor from = x.detach().to(torch::kCPU, dtype).contiguous();
  const T* const data = from.const_data_ptr<T>();
  return {data, data + from.numel()};
}

std::size_t padded_size(std::int64_t n) { return padded(static_cast<std::size_t>(n)); }

// Transposed weights [inputs, padded outputs] of some inputs, which are padded too.
void append_inputs(const torch::nn::Linear& layer, std::int64_t begin, std::int64_t length,
                   std::size_t padded_length, std::vector<float>& out) {
  const auto n_outputs = static_cast<std::size_t>(layer->weight.size(0));
  const std::vector<float> columns =
      plain<float>(layer->weight.narrow(1, begin, length).t(), torch::kFloat32);
  const std::size_t width = padded(n_outputs);
  for (std::size_t k = 0; k < padded_length; ++k) {
    const std::size_t first = out.size();
    out.resize(first + width, 0.0F);
    if (k >= static_cast<std::size_t>(length)) continue;
    std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(k * n_outputs), n_outputs,
                out.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::vector<float> with_bias(const torch::nn::Linear& layer) {
  std::vector<float> out;
  append_inputs(layer, 0, layer->weight.size(1), static_cast<std::size_t>(layer->weight.size(1)),
                out);
  const std::size_t first = out.size();
  const std::vector<float> bias = plain<float>(layer->bias, torch::kFloat32);
  out.resize(first + padded(bias.size()), 0.0F);
  std::copy(bias.begin(), bias.end(), out.begin() + static_cast<std::ptrdiff_t>(first));
  return out;
}

// The last layer, which has one output: its inputs padded, then its bias.
std::vector<float> out_weights(const torch::nn::Linear& layer) {
  std::vector<float> out = plain<float>(layer->weight, torch::kFloat32);
  out.resize(padded(out.size()), 0.0F);
  out.push_back(layer->bias.item<float>());
  return out;
}

// A table with its rows padded by zeros.
template <class T>
std::vector<T> padded_table(const at::Tensor& table, torch::Dtype dtype) {
  const std::int64_t width = static_cast<std::int64_t>(padded_size(table.size(1)));
  return plain<T>(torch::constant_pad_nd(table.detach(), {0, width - table.size(1)}), dtype);
}

at::Tensor index_tensor(const std::vector<std::int64_t>& values, const torch::Device& device) {
  return torch::tensor(at::ArrayRef<std::int64_t>(values), torch::kInt64).to(device);
}

at::Tensor feature_tensor(const std::vector<float>& values, const torch::TensorOptions& options) {
  return torch::tensor(at::ArrayRef<float>(values), torch::kFloat32)
      .view({-1, kFeatures})
      .to(options);
}

}  // namespace

PaperTensors::PaperTensors(std::shared_ptr<const PaperTask> paper_task,
                           const torch::TensorOptions& options)
    : task(std::move(paper_task)),
      inputs(task->features, task->plan, options),
      b_paths(task, &task->b_paths),
      t_paths(task, &task->t_paths),
      all_b_paths(one_segment(task->b_paths)),
      all_t_paths(one_segment(task->t_paths)) {}

SelectPolicy::SelectPolicy(const PaperSizes& sizes, at::Generator generator)
    : sizes_(sizes),
      passing_(register_module(
          "passing",
          std::make_shared<MessagePassing>(MessagePassingOptions{.n_features = kFeatures,
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
  const at::Tensor own = act(own_->forward(feature_tensor(features, base.options())));
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

PlacePolicy::PlacePolicy(const PaperSizes& sizes, at::Generator generator)
    : sizes_(sizes),
      passing_(register_module(
          "passing",
          std::make_shared<MessagePassing>(MessagePassingOptions{.n_features = kFeatures,
                                                                 .hidden = sizes.hidden,
                                                                 .edge_hidden = sizes.edge_hidden,
                                                                 .steps = sizes.steps},
                                           generator))),
      device_(register_module("device", orthogonal_linear(kFeatures, sizes.hidden, generator))),
      node_(register_module("node", orthogonal_linear(kFeatures, sizes.hidden, generator))),
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
  const at::Tensor device = act(device_->forward(feature_tensor(features, base.options())));
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

PaperNetwork::PaperNetwork(const PaperSizes& network_sizes, std::uint64_t seed)
    : sizes(network_sizes) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  select = std::make_shared<SelectPolicy>(sizes, generator);
  place = std::make_shared<PlacePolicy>(sizes, generator);
}

PaperWeights PaperNetwork::weights() const {
  return {.hidden = padded_size(sizes.hidden),
          .head = padded_size(sizes.head),
          .select = select->weights(),
          .place = place->weights()};
}

std::vector<PolicyArray> PaperNetwork::arrays() const {
  std::vector<PolicyArray> arrays;
  const auto append = [&](const torch::nn::Module& policy, const std::string& prefix) {
    for (const auto& item : policy.named_parameters()) {
      arrays.push_back({.name = prefix + item.key(),
                        .shape = item.value().sizes().vec(),
                        .values = plain<float>(item.value(), torch::kFloat32)});
    }
  };
  append(*select, "select.");
  append(*place, "place.");
  return arrays;
}

void PaperNetwork::set_arrays(const PolicyFile& file, const std::string& source) {
  std::vector<std::pair<at::Tensor, const PolicyArray*>> found;
  const auto find = [&](const torch::nn::Module& policy, const std::string& prefix) {
    for (const auto& item : policy.named_parameters()) {
      found.emplace_back(item.value(),
                         &file.array(prefix + item.key(), item.value().sizes().vec(), source));
    }
  };
  find(*select, "select.");
  find(*place, "place.");
  const torch::NoGradGuard no_gradient;
  for (auto& [parameter, array] : found) {
    parameter.copy_(torch::tensor(at::ArrayRef<float>(array->values)).view(parameter.sizes()));
  }
}

PaperEmbedding plain_embedding(const SelectPolicy::Embedding& select,
                               const PlacePolicy::Embedding& place) {
  return {.select_base = padded_table<float>(select.base, torch::kFloat32),
          .b_paths = padded_table<double>(select.b_paths, torch::kFloat64),
          .t_paths = padded_table<double>(select.t_paths, torch::kFloat64),
          .place_base = padded_table<float>(place.base, torch::kFloat32),
          .place_state = padded_table<float>(place.states, torch::kFloat32)};
}

}  // namespace doppler
