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

// What each class receives: each message is the source's state times the matrix of its value.
class Exchange : public torch::autograd::Function<Exchange> {
 public:
  // states: [n_classes, h]; matrices: [n_values, h, h]. Returns [n_classes, h].
  static at::Tensor forward(AutogradContext* context, const at::Tensor& states,
                            const at::Tensor& matrices, const at::Tensor& sources,
                            const std::shared_ptr<const MessagePlan>& plan) {
    const at::Tensor sent = states.index_select(0, sources);
    context->save_for_backward({sent, matrices, sources});
    context->saved_data["plan"] = keep(plan);
    context->saved_data["n_classes"] = states.size(0);
    at::Tensor messages = torch::empty_like(sent);
    for_each_value(*plan, [&](std::int64_t value, std::int64_t begin, std::int64_t length) {
      at::Tensor out = messages.narrow(0, begin, length);
      at::mm_out(out, sent.narrow(0, begin, length), matrices[value]);
    });
    return sum_rows(messages, plan->term_first, plan->term_message, plan->term_count);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& sent = saved[0];
    const at::Tensor& matrices = saved[1];
    const auto kept = kept_value<MessagePlan>(context->saved_data["plan"]);
    const MessagePlan& plan = *kept;
    const at::Tensor of_messages =
        sum_rows(gradients[0], plan.use_first, plan.use_class, plan.use_count);
    at::Tensor of_sent = torch::empty_like(sent);
    at::Tensor of_matrices = torch::zeros_like(matrices);
    for_each_value(plan, [&](std::int64_t value, std::int64_t begin, std::int64_t length) {
      const at::Tensor gradient = of_messages.narrow(0, begin, length);
      at::Tensor out = of_sent.narrow(0, begin, length);
      at::mm_out(out, gradient, matrices[value].t());
      at::Tensor matrix = of_matrices[value];
      at::mm_out(matrix, sent.narrow(0, begin, length).t(), gradient);
    });
    const at::Tensor of_states =
        torch::zeros({context->saved_data["n_classes"].toInt(), sent.size(1)}, sent.options())
            .index_add_(0, saved[2], of_sent);
    return {of_states, of_matrices, at::Tensor(), at::Tensor()};
  }

 private:
  template <class Visit>
  static void for_each_value(const MessagePlan& plan, Visit&& visit) {
    for (std::size_t value = 0; value + 1 < plan.value_first.size(); ++value) {
      const std::int64_t begin = plan.value_first[value];
      const std::int64_t length = plan.value_first[value + 1] - begin;
      if (length > 0) visit(static_cast<std::int64_t>(value), begin, length);
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
  const bool well_conditioned = n_rows >= 8 * n_columns;
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

at::Tensor MessagePassing::forward(const MessageInputs& inputs) {
  at::Tensor state = torch::relu(input_->forward(inputs.features()));
  const at::Tensor matrices =
      edge_output_->forward(torch::relu(edge_input_->forward(inputs.values())))
          .view({-1, options_.hidden, options_.hidden});
  for (std::int64_t step = 0; step < options_.steps; ++step) {
    const at::Tensor received =
        Exchange::apply(state, matrices, inputs.sources(), inputs.shared_plan());
    state = unit_->forward(received, state);
  }
  return torch::leaky_relu(state, kSlope);
}

}  // namespace doppler
