#include "agents/learned/placeto_network.h"

#include <utility>

#include "agents/learned/kept_value.h"
#include "agents/learned/message_passing.h"
#include "agents/learned/network_parts.h"

namespace doppler {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void add_rows(const at::Tensor& in, const EdgeLists& edges, bool backwards, at::Tensor& out) {
  const std::int64_t width = in.size(1);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "add_rows", [&] {
    const scalar_t* const source = in.const_data_ptr<scalar_t>();
    scalar_t* const target = out.mutable_data_ptr<scalar_t>();
    for (std::size_t v = 0; v + 1 < edges.first.size(); ++v) {
      for (std::int32_t e = edges.first[v]; e < edges.first[v + 1]; ++e) {
        const std::int64_t u = edges.from[static_cast<std::size_t>(e)];
        const auto node = static_cast<std::int64_t>(v);
        const scalar_t* const from = source + (backwards ? node : u) * width;
        scalar_t* const to = target + (backwards ? u : node) * width;
        for (std::int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
    }
  });
}

// Of each node the sum over the nodes that its edges come from; [n_nodes, any].
class NeighbourSum : public torch::autograd::Function<NeighbourSum> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const std::shared_ptr<const PlacetoTask>& task, bool up) {
    context->saved_data["task"] = keep(task);
    context->saved_data["up"] = up;
    const at::Tensor from = rows.to(torch::kCPU).contiguous();
    at::Tensor out = torch::zeros_like(from);
    add_rows(from, up ? task->up : task->down, false, out);
    return out.to(rows.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto task = kept_value<PlacetoTask>(context->saved_data["task"]);
    const bool up = context->saved_data["up"].toBool();
    const at::Tensor from = gradients[0].to(torch::kCPU).contiguous();
    at::Tensor out = torch::zeros_like(from);
    add_rows(from, up ? task->up : task->down, true, out);
    return {out.to(gradients[0].device()), at::Tensor(), at::Tensor()};
  }
};

at::Tensor transformed(TwoLayers<torch::nn::Linear>& layers, const at::Tensor& x) {
  return layers.second->forward(torch::relu(layers.first->forward(x)));
}

TwoLayers<PlainLayer> plain(const TwoLayers<torch::nn::Linear>& layers) {
  return {.first = plain_layer(layers.first), .second = plain_layer(layers.second)};
}

}  // namespace

torch::nn::Linear PlacetoNetwork::layer(const std::string& name, std::int64_t n_inputs,
                                        std::int64_t n_outputs, at::Generator& generator) {
  return register_module(name, orthogonal_linear(n_inputs, n_outputs, generator));
}

PlacetoNetwork::Layers PlacetoNetwork::two_layers(const std::string& name, std::int64_t n_inputs,
                                                  std::int64_t n_outputs,
                                                  at::Generator& generator) {
  return {.first = layer(name + "_1", n_inputs, n_outputs, generator),
          .second = layer(name + "_2", n_outputs, n_outputs, generator)};
}

PlacetoNetwork::PlacetoNetwork(const PlacetoSizes& sizes, std::int64_t n_devices,
                               at::Generator generator)
    : sizes_(sizes),
      own_(two_layers("own", static_cast<std::int64_t>(kPlacetoOwnFeatures) + n_devices,
                      sizes.width, generator)),
      directions_{Direction{two_layers("down_message", sizes.width, sizes.width, generator),
                            two_layers("down_update", sizes.width, sizes.width, generator)},
                  Direction{two_layers("up_message", sizes.width, sizes.width, generator),
                            two_layers("up_update", sizes.width, sizes.width, generator)}},
      groups_{Group{layer("parents_before", 2 * sizes.width, 2 * sizes.width, generator),
                    layer("parents_after", 2 * sizes.width, 2 * sizes.width, generator)},
              Group{layer("descendants_before", 2 * sizes.width, 2 * sizes.width, generator),
                    layer("descendants_after", 2 * sizes.width, 2 * sizes.width, generator)},
              Group{layer("parallel_before", 2 * sizes.width, 2 * sizes.width, generator),
                    layer("parallel_after", 2 * sizes.width, 2 * sizes.width, generator)}},
      head_(layer("head", 8 * sizes.width, sizes.head, generator)),
      out_(layer("out", sizes.head, n_devices, generator)) {}

at::Tensor PlacetoNetwork::embed(const at::Tensor& features,
                                 const std::shared_ptr<const PlacetoTask>& task) {
  const std::int64_t n_nodes = features.size(0);
  const std::int64_t n_states = features.size(1);
  const at::Tensor own = transformed(own_, features);
  std::vector<at::Tensor> passed;
  for (const bool up : {false, true}) {
    Direction& direction = directions_[up ? 1 : 0];
    const EdgeLists& edges = up ? task->up : task->down;
    std::vector<float> hears(static_cast<std::size_t>(n_nodes));
    for (std::size_t v = 0; v < hears.size(); ++v) {
      hears[v] = edges.first[v + 1] > edges.first[v] ? 1.0F : 0.0F;
    }
    const at::Tensor mask =
        torch::tensor(at::ArrayRef<float>(hears)).view({n_nodes, 1, 1}).to(own.options());
    at::Tensor x = own;
    for (std::int64_t round = 0; round < sizes_.rounds; ++round) {
      const at::Tensor sent = torch::relu(transformed(direction.message, x));
      const at::Tensor heard =
          NeighbourSum::apply(sent.reshape({n_nodes, n_states * sizes_.width}), task, up)
              .view({n_nodes, n_states, sizes_.width});
      x = own + mask * torch::relu(transformed(direction.update, heard));
    }
    passed.push_back(x);
  }
  return torch::cat(passed, 2);
}

at::Tensor PlacetoNetwork::scores(const at::Tensor& embedding,
                                  const std::vector<std::int64_t>& queries,
                                  const GroupShares& shares) {
  const bool one_state = embedding.size(1) == 1;
  const at::Tensor at = index_tensor(queries, embedding.device());
  std::vector<at::Tensor> seen;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const at::Tensor sent = torch::relu(groups_[g].before->forward(embedding));
    const at::Tensor share = shares[g].to(embedding.options());
    const at::Tensor mean =
        one_state ? share.matmul(sent.squeeze(1)) : (share.t().unsqueeze(2) * sent).sum(0);
    seen.push_back(torch::relu(groups_[g].after->forward(mean)));
  }
  if (one_state) {
    seen.push_back(embedding.squeeze(1).index_select(0, at));
  } else {
    const at::Tensor state = torch::arange(at.size(0), at.options());
    seen.push_back(embedding.index({at, state}));
  }
  return out_->forward(torch::relu(head_->forward(torch::cat(seen, 1))));
}

PlacetoWeights PlacetoNetwork::weights() const {
  PlacetoWeights weights;
  weights.sizes = sizes_;
  weights.own = plain(own_);
  for (std::size_t i = 0; i < directions_.size(); ++i) {
    weights.directions[i] = {.message = plain(directions_[i].message),
                             .update = plain(directions_[i].update)};
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    weights.groups[i] = {.before = plain_layer(groups_[i].before),
                         .after = plain_layer(groups_[i].after)};
  }
  weights.head = plain_layer(head_);
  weights.out = plain_layer(out_);
  return weights;
}

GroupShares group_shares(const PlacetoTask& task, const std::vector<std::int64_t>& queries) {
  const std::size_t n = task.n_nodes();
  std::array<std::vector<float>, 3> shares;
  for (auto& share : shares) share.assign(queries.size() * n, 0.0F);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto v = static_cast<std::size_t>(queries[q]);
    std::array<float, 3> size = {0, 0, 0};
    const auto group_of = [&](std::size_t u) -> std::size_t {
      if (task.reaches(u, v)) return 0;
      return task.reaches(v, u) ? 1 : 2;
    };
    for (std::size_t u = 0; u < n; ++u) {
      if (u != v) ++size[group_of(u)];
    }
    for (std::size_t u = 0; u < n; ++u) {
      if (u != v) shares[group_of(u)][q * n + u] = 1 / size[group_of(u)];
    }
  }
  GroupShares tensors;
  for (std::size_t g = 0; g < shares.size(); ++g) {
    tensors[g] =
        torch::tensor(at::ArrayRef<float>(shares[g]))
            .view({static_cast<std::int64_t>(queries.size()), static_cast<std::int64_t>(n)});
  }
  return tensors;
}

}  // namespace doppler
