#include "agents/learned/message_passing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/learned/kept_value.h"

namespace doppler {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kSlope = 0.1;
constexpr std::int64_t kLargeLayer = std::int64_t{1} << 18;  // weights

at::Tensor index_tensor(const std::vector<std::int32_t>& values, const torch::Device& device) {
  at::Tensor index = torch::empty({static_cast<std::int64_t>(values.size())}, torch::kInt64);
  std::copy(values.begin(), values.end(), index.data_ptr<std::int64_t>());
  return index.to(device);
}

// out[r] = sum over the terms of row r of count x in[column].
at::Tensor sum_rows(const at::Tensor& in, const std::vector<std::int32_t>& first,
                    const std::vector<std::int32_t>& column, const std::vector<float>& count) {
  const auto n_rows = static_cast<std::int64_t>(first.size()) - 1;
  const std::int64_t width = in.size(1);
  const at::Tensor from = in.to(torch::kCPU).contiguous();
  at::Tensor out = torch::zeros({n_rows, width}, from.options());
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "sum_rows", [&] {
    const scalar_t* const source = from.const_data_ptr<scalar_t>();
    scalar_t* const target = out.mutable_data_ptr<scalar_t>();
    for (std::int64_t r = 0; r < n_rows; ++r) {
      scalar_t* const row = target + r * width;
      for (auto t = static_cast<std::size_t>(first[static_cast<std::size_t>(r)]);
           t < static_cast<std::size_t>(first[static_cast<std::size_t>(r) + 1]); ++t) {
        const scalar_t* const term = source + column[t] * width;
        const auto factor = static_cast<scalar_t>(count[t]);
        for (std::int64_t j = 0; j < width; ++j) row[j] += factor * term[j];
      }
    }
  });
  return out.to(in.device());
}

// Consecutive messages that share a matrix: group g is messages first[g] to first[g + 1].
using Groups = std::vector<std::int32_t>;

// What each class receives: each message is what was sent times its group's matrix.
class Exchange : public torch::autograd::Function<Exchange> {
 public:
  // sent: [n_messages, w]; matrices: [n_groups, w, h]. Returns [n_classes, h].
  static at::Tensor forward(AutogradContext* context, const at::Tensor& sent,
                            const at::Tensor& matrices, const std::shared_ptr<const Groups>& groups,
                            const std::shared_ptr<const MessagePlan>& plan) {
    context->save_for_backward({sent, matrices});
    context->saved_data["groups"] = keep(groups);
    context->saved_data["plan"] = keep(plan);
    at::Tensor messages = torch::empty({sent.size(0), matrices.size(2)}, sent.options());
    for_each_group(*groups, [&](std::int64_t group, std::int64_t begin, std::int64_t length) {
      at::Tensor out = messages.narrow(0, begin, length);
      at::mm_out(out, sent.narrow(0, begin, length), matrices[group]);
    });
    return sum_rows(messages, plan->term_first, plan->term_message, plan->term_count);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& sent = saved[0];
    const at::Tensor& matrices = saved[1];
    const auto groups = kept_value<Groups>(context->saved_data["groups"]);
    const auto plan = kept_value<MessagePlan>(context->saved_data["plan"]);
    const at::Tensor of_messages =
        sum_rows(gradients[0], plan->use_first, plan->use_class, plan->use_count);
    at::Tensor of_sent = torch::empty_like(sent);
    at::Tensor of_matrices = torch::zeros_like(matrices);
    for_each_group(*groups, [&](std::int64_t group, std::int64_t begin, std::int64_t length) {
      const at::Tensor gradient = of_messages.narrow(0, begin, length);
      at::Tensor out = of_sent.narrow(0, begin, length);
      at::mm_out(out, gradient, matrices[group].t());
      at::Tensor matrix = of_matrices[group];
      at::mm_out(matrix, sent.narrow(0, begin, length).t(), gradient);
    });
    return {of_sent, of_matrices, at::Tensor(), at::Tensor()};
  }

 private:
  template <class Visit>
  static void for_each_group(const Groups& groups, Visit&& visit) {
    for (std::size_t group = 0; group + 1 < groups.size(); ++group) {
      const std::int64_t begin = groups[group];
      const std::int64_t length = groups[group + 1] - begin;
      if (length > 0) visit(static_cast<std::int64_t>(group), begin, length);
    }
  }
};

at::Tensor uniform_parameter(const at::Tensor& like, double bound, at::Generator& generator) {
  return torch::empty_like(like).uniform_(-bound, bound, generator);
}

}  // namespace

torch::nn::Linear orthogonal_linear(std::int64_t n_inputs, std::int64_t n_outputs,
                                    at::Generator generator) {
  const torch::NoGradGuard no_gradient;
  torch::nn::Linear layer(torch::nn::LinearOptions(n_inputs, n_outputs));
  const bool tall = n_outputs >= n_inputs;
  const std::int64_t n_rows = std::max(n_inputs, n_outputs);
  const std::int64_t n_columns = std::min(n_inputs, n_outputs);
  // Q of normal numbers = Q R, with R from the Cholesky factor of their Gram matrix; twice where
  // the columns may be nearly dependent, for the first time loses digits then (Yamamoto et al.,
  // ETNA 44, 2015).
  const bool well_conditioned = n_rows >= 8 * n_columns && n_rows * n_columns >= kLargeLayer;
  at::Tensor q =
      torch::empty({n_rows, n_columns}, well_conditioned ? torch::kFloat32 : torch::kFloat64)
          .normal_(0, 1, generator);
  for (int round = 0; round < (well_conditioned ? 1 : 2); ++round) {
    const at::Tensor factor =
        at::linalg_cholesky(q.t().matmul(q).to(torch::kFloat64), /*upper=*/true);
    q = q.matmul(at::linalg_inv(factor).to(q.dtype()));
  }
  layer->weight.copy_(tall ? q : q.t());
  layer->bias.zero_();
  return layer;
}

MessageInputs::MessageInputs(const GraphFeatures& features, MessagePlan plan,
                             const at::TensorOptions& options)
    : plan_(std::make_shared<const MessagePlan>(std::move(plan))) {
  const auto n_columns = static_cast<std::int64_t>(features.n_columns);
  at::Tensor table = torch::empty({static_cast<std::int64_t>(plan_->n_classes), n_columns});
  float* row = table.data_ptr<float>();
  for (std::int32_t node : plan_->representative) {
    const auto begin = features.nodes.begin() + node * n_columns;
    row = std::copy(begin, begin + n_columns, row);
  }
  features_ = table.to(options);
  values_ = torch::tensor(at::ArrayRef<float>(features.values), torch::kFloat32)
                .reshape({-1, 1})
                .to(options);
  sources_ = index_tensor(plan_->message_source, options.device());
  message_values_ = index_tensor(plan_->message_value, options.device());
  node_class_ = index_tensor(plan_->node_class, options.device());
}

MessagePassing::MessagePassing(const MessagePassingOptions& options, at::Generator generator)
    : options_(options),
      input_(register_module("input",
                             orthogonal_linear(options.n_features, options.hidden, generator))),
      edge_input_(
          register_module("edge_input", orthogonal_linear(1, options.edge_hidden, generator))),
      edge_output_(register_module(
          "edge_output",
          orthogonal_linear(options.edge_hidden, options.hidden * options.hidden, generator))),
      unit_(register_module("unit", torch::nn::GRUCell(options.hidden, options.hidden))) {
  const torch::NoGradGuard no_gradient;
  const double bound = 1 / std::sqrt(static_cast<double>(options.hidden));
  for (at::Tensor& parameter : unit_->parameters()) {
    parameter.copy_(uniform_parameter(parameter, bound, generator));
  }
}

// One matrix for each distinct value, as the edge network gives it.
MessagePassing::EdgeMatrices MessagePassing::matrices_by_value(const MessageInputs& inputs) {
  return {.groups = std::make_shared<const Groups>(inputs.plan().value_first),
          .matrices = edge_output_->forward(torch::relu(edge_input_->forward(inputs.values())))
                          .view({-1, options_.hidden, options_.hidden})};
}

// The edge network's hidden layer is relu(a x + c), so its matrix is linear in x between the at
// most edge_hidden points where one of them begins or ends: there it is P + x Q, and a message
// [state | x state] [P; Q]. The same numbers, from as many matrices however many values there are.
MessagePassing::EdgeMatrices MessagePassing::matrices_by_piece(const MessageInputs& inputs) {
  const at::Tensor slope = edge_input_->weight.view({-1});
  const at::Tensor offset = edge_input_->bias;
  const auto as_doubles = [](const at::Tensor& x) {
    const at::Tensor from = x.detach().to(torch::kCPU, torch::kFloat64).contiguous();
    return std::vector<double>(from.const_data_ptr<double>(),
                               from.const_data_ptr<double>() + from.numel());
  };
  const std::vector<double> a = as_doubles(slope);
  const std::vector<double> c = as_doubles(offset);
  const std::vector<double> x = as_doubles(inputs.values());
  std::vector<double> bends;
  for (std::size_t j = 0; j < a.size(); ++j) {
    if (a[j] != 0) bends.push_back(-c[j] / a[j]);
  }
  std::sort(bends.begin(), bends.end());

  // Values ascend, and messages are sorted by value.
  Groups groups = {0};
  std::vector<double> active;  // [n_pieces, edge_hidden]
  for (std::size_t value = 0; value < x.size();) {
    const auto bend = std::upper_bound(bends.begin(), bends.end(), x[value]);
    const std::size_t first = value;
    while (value < x.size() && (bend == bends.end() || x[value] < *bend)) ++value;
    // Away from the bends, where rounding could tell either way.
    const double middle = (x[first] + x[value - 1]) / 2;
    for (std::size_t j = 0; j < a.size(); ++j) active.push_back(a[j] * middle + c[j] > 0 ? 1 : 0);
    groups.push_back(inputs.plan().value_first[value]);
  }
  const at::Tensor mask = torch::tensor(at::ArrayRef<double>(active), torch::kFloat64)
                              .view({-1, options_.edge_hidden})
                              .to(slope.options());
  const auto square = [&](const at::Tensor& rows) {
    return rows.view({-1, options_.hidden, options_.hidden});
  };
  return {.groups = std::make_shared<const Groups>(std::move(groups)),
          .matrices = torch::cat({square(edge_output_->forward(mask * offset)),
                                  square((mask * slope).matmul(edge_output_->weight.t()))},
                                 1)};
}

at::Tensor MessagePassing::forward(const MessageInputs& inputs) {
  at::Tensor state = torch::relu(input_->forward(inputs.features()));
  const bool by_value = inputs.values().size(0) <= 2 * (options_.edge_hidden + 1);
  const EdgeMatrices edges = by_value ? matrices_by_value(inputs) : matrices_by_piece(inputs);
  const at::Tensor x =
      by_value ? at::Tensor() : inputs.values().index_select(0, inputs.message_values());
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    at::Tensor sent = state.index_select(0, inputs.sources());
    if (!by_value) sent = torch::cat({sent, x * sent}, 1);
    state = unit_->forward(
        Exchange::apply(sent, edges.matrices, edges.groups, inputs.shared_plan()), state);
  }
  return torch::leaky_relu(state, kSlope);
}

}  // namespace doppler
