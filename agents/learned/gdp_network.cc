#include "agents/learned/gdp_network.h"

#include <cmath>
#include <limits>
#include <utility>

#include "agents/learned/kept_value.h"
#include "agents/learned/message_passing.h"

namespace doppler {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct NeighbourRows {
  std::vector<std::int32_t> first;
  std::vector<std::int32_t> row;
};

// By column the maximum over the rows of each group, 0 for an empty one.
class RowMaximum : public torch::autograd::Function<RowMaximum> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const std::shared_ptr<const NeighbourRows>& groups) {
    const at::Tensor from = rows.to(torch::kCPU).contiguous();
    const std::int64_t width = rows.size(1);
    const auto n = static_cast<std::int64_t>(groups->first.size()) - 1;
    at::Tensor out = torch::zeros({n, width}, from.options());
    at::Tensor chosen = torch::full({n, width}, -1, torch::kInt32);
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "row_maximum", [&] {
      const scalar_t* const source = from.const_data_ptr<scalar_t>();
      for (std::int64_t g = 0; g < n; ++g) {
        scalar_t* const to = out.mutable_data_ptr<scalar_t>() + g * width;
        std::int32_t* const which = chosen.mutable_data_ptr<std::int32_t>() + g * width;
        const auto at = static_cast<std::size_t>(g);
        for (std::int32_t i = groups->first[at]; i < groups->first[at + 1]; ++i) {
          const std::int32_t row = groups->row[static_cast<std::size_t>(i)];
          const scalar_t* const one = source + row * width;
          for (std::int64_t j = 0; j < width; ++j) {
            if (which[j] >= 0 && one[j] <= to[j]) continue;
            to[j] = one[j];
            which[j] = row;
          }
        }
      }
    });
    context->saved_data["chosen"] = chosen;
    context->saved_data["n_rows"] = rows.size(0);
    context->saved_data["like"] = rows.new_empty({0});
    return out.to(rows.device());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor chosen = context->saved_data["chosen"].toTensor();
    const at::Tensor like = context->saved_data["like"].toTensor();
    const at::Tensor of_out = gradients[0].to(torch::kCPU).contiguous();
    const std::int64_t width = of_out.size(1);
    at::Tensor of_rows =
        torch::zeros({context->saved_data["n_rows"].toInt(), width}, of_out.options());
    AT_DISPATCH_FLOATING_TYPES(of_out.scalar_type(), "row_maximum", [&] {
      const std::int32_t* const which = chosen.const_data_ptr<std::int32_t>();
      const scalar_t* const from = of_out.const_data_ptr<scalar_t>();
      scalar_t* const to = of_rows.mutable_data_ptr<scalar_t>();
      for (std::int64_t i = 0; i < of_out.numel(); ++i) {
        if (which[i] >= 0) to[which[i] * width + i % width] += from[i];
      }
    });
    return {of_rows.to(like.device()), at::Tensor()};
  }
};

at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return torch::layer_norm(x, {x.size(-1)}, weight, bias, kGdpNormFloor);
}

}  // namespace

GdpNetwork::GdpNetwork(const GdpSizes& sizes, std::int64_t n_features, std::int64_t n_devices,
                       at::Generator generator)
    : sizes_(sizes),
      project_(register_module("project", orthogonal_linear(n_features, sizes.hidden, generator))),
      neighbour_(
          register_module("neighbour", orthogonal_linear(sizes.hidden, sizes.hidden, generator))),
      combine_(
          register_module("combine", orthogonal_linear(2 * sizes.hidden, sizes.hidden, generator))),
      query_(register_module("query", orthogonal_linear(sizes.hidden, sizes.hidden, generator))),
      key_(register_module("key", orthogonal_linear(sizes.hidden, sizes.hidden, generator))),
      value_(register_module("value", orthogonal_linear(sizes.hidden, sizes.hidden, generator))),
      attended_(
          register_module("attended", orthogonal_linear(sizes.hidden, sizes.hidden, generator))),
      wide_(register_module("wide", orthogonal_linear(sizes.hidden, sizes.wide, generator))),
      narrow_(register_module("narrow", orthogonal_linear(sizes.wide, sizes.hidden, generator))),
      out_(register_module("out", orthogonal_linear(sizes.hidden, n_devices, generator))),
      norm_weight_(register_parameter("norm_weight", torch::ones({sizes.hidden}))),
      norm_bias_(register_parameter("norm_bias", torch::zeros({sizes.hidden}))),
      last_weight_(register_parameter("last_weight", torch::ones({sizes.hidden}))),
      last_bias_(register_parameter("last_bias", torch::zeros({sizes.hidden}))) {}

at::Tensor GdpNetwork::nodes(const GdpRows& rows) {
  const at::Tensor h = project_->forward(rows.features);
  const at::Tensor sent = torch::sigmoid(neighbour_->forward(h));
  auto groups = std::make_shared<NeighbourRows>();
  groups->first = rows.first;
  groups->row = rows.neighbour;
  const at::Tensor received =
      RowMaximum::apply(sent, std::shared_ptr<const NeighbourRows>(std::move(groups)));
  const at::Tensor own =
      torch::tensor(at::ArrayRef<std::int64_t>(rows.own), torch::kInt64).to(h.device());
  return combine_->forward(torch::cat({h.index_select(0, own), received}, 1));
}

at::Tensor GdpNetwork::scores(const at::Tensor& x, const at::Tensor& outputs, std::int64_t length) {
  const std::int64_t segment = sizes_.segment;
  const std::int64_t hidden = sizes_.hidden;
  const std::int64_t heads = sizes_.heads;
  const std::int64_t n_sequences = length == 0 ? 0 : x.size(0) / length;
  const std::int64_t per_sequence = (length + segment - 1) / segment;
  const std::int64_t n_segments = n_sequences * per_sequence;
  // The last segment of a sequence may be shorter; what fills it up is masked.
  const std::int64_t fill = per_sequence * segment - length;
  const auto in_segments = [&](const at::Tensor& rows) {
    return torch::constant_pad_nd(rows.view({n_sequences, length, hidden}), {0, 0, 0, fill})
        .view({n_segments, segment, hidden});
  };
  const at::Tensor own = in_segments(x);
  const at::Tensor memory = in_segments(outputs.detach())
                                .view({n_sequences, per_sequence, segment, hidden})
                                .slice(1, 0, per_sequence - 1);
  const at::Tensor remembered =
      torch::cat({torch::zeros({n_sequences, 1, segment, hidden}, memory.options()), memory}, 1)
          .view({n_segments, segment, hidden});

  at::Tensor mask = torch::zeros({n_sequences, per_sequence, 2 * segment}, x.options());
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  mask.select(1, 0).slice(1, 0, segment).fill_(kNever);
  mask.select(1, per_sequence - 1).slice(1, 2 * segment - fill).fill_(kNever);

  const at::Tensor read = torch::cat({remembered, own}, 1);
  const auto by_head = [&](const at::Tensor& rows) {
    return rows.view({n_segments, -1, heads, hidden / heads}).transpose(1, 2);
  };
  const at::Tensor query = by_head(query_->forward(own));
  const at::Tensor key = by_head(key_->forward(read));
  const at::Tensor value = by_head(value_->forward(read));
  const double scale = 1 / std::sqrt(static_cast<double>(hidden / heads));
  const at::Tensor attention = torch::softmax(
      query.matmul(key.transpose(2, 3)) * scale + mask.view({n_segments, 1, 1, 2 * segment}), 3);
  const at::Tensor attended =
      attention.matmul(value).transpose(1, 2).reshape({n_segments, segment, hidden});
  const at::Tensor z = normalised(own + attended_->forward(attended), norm_weight_, norm_bias_);
  const at::Tensor y =
      normalised(z + narrow_->forward(torch::relu(wide_->forward(z))), last_weight_, last_bias_);
  return out_->forward(y)
      .view({n_sequences, per_sequence * segment, -1})
      .slice(1, 0, length)
      .reshape({n_sequences * length, -1});
}

GdpWeights GdpNetwork::weights() const {
  return {.sizes = sizes_,
          .project = plain_layer(project_),
          .neighbour = plain_layer(neighbour_),
          .combine = plain_layer(combine_),
          .query = plain_layer(query_),
          .key = plain_layer(key_),
          .value = plain_layer(value_),
          .attended = plain_layer(attended_),
          .wide = plain_layer(wide_),
          .narrow = plain_layer(narrow_),
          .out = plain_layer(out_),
          .norm_weight = plain_values(norm_weight_),
          .norm_bias = plain_values(norm_bias_),
          .last_weight = plain_values(last_weight_),
          .last_bias = plain_values(last_bias_)};
}

}  // namespace doppler
