#include "agents/learned/message_passing.h"

#include <ATen/CPUGeneratorImpl.h>

#include "agents/learned/torch_device.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

at::Generator generator_of(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

// Message passing as its description says it, edge by edge.
at::Tensor slow_message_passing(MessagePassing& network, const GraphFeatures& features) {
  const auto n = static_cast<std::int64_t>(features.n_nodes);
  const std::int64_t hidden = network.options().hidden;
  const auto parameters = network.named_parameters();
  const auto linear = [&](const std::string& name, const at::Tensor& x) {
    return x.matmul(parameters[name + ".weight"].t()) + parameters[name + ".bias"];
  };
  const at::Tensor table = torch::tensor(at::ArrayRef<float>(features.nodes))
                               .view({n, -1})
                               .to(parameters.front().value());
  at::Tensor state = torch::relu(linear("input", table));
  for (std::int64_t step = 0; step < network.options().steps; ++step) {
    std::vector<at::Tensor> received(features.n_nodes, torch::zeros({hidden}, state.options()));
    for (std::size_t e = 0; e < features.source.size(); ++e) {
      const at::Tensor value = torch::full(
          {1}, features.values[static_cast<std::size_t>(features.value[e])], state.options());
      const at::Tensor matrix =
          linear("edge_output", torch::relu(linear("edge_input", value))).view({hidden, hidden});
      at::Tensor& sum = received[static_cast<std::size_t>(features.target[e])];
      sum = sum + state[features.source[e]].matmul(matrix);
    }
    const at::Tensor message = torch::stack(received);
    const auto gates = [&](const std::string& end, const at::Tensor& x) {
      return (x.matmul(parameters["unit.weight_" + end].t()) + parameters["unit.bias_" + end])
          .chunk(3, 1);
    };
    const auto in = gates("ih", message);
    const auto old = gates("hh", state);
    const at::Tensor reset = torch::sigmoid(in[0] + old[0]);
    const at::Tensor update = torch::sigmoid(in[1] + old[1]);
    const at::Tensor fresh = torch::tanh(in[2] + reset * old[2]);
    state = (1 - update) * fresh + update * state;
  }
  return torch::where(state > 0, state, 0.1 * state);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

PlacementModel drawn_model(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return PlacementModel(
      {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none});
}

TEST_CASE("one step of message passing gives the state computed by hand") {
  // Two nodes, an edge each way of value x = 2; hidden 1. state = relu(f), matrix = relu(x / 2 -
  // 0.5) times 4 = 2; unit: all weights 0 but the candidate's input weight 1, so state' = (tanh(2
  // state of the other) + state) / 2.
  GraphFeatures features;
  features.n_nodes = 2;
  features.n_columns = 1;
  features.nodes = {0.25F, -1.0F};
  features.source = {0, 1};
  features.target = {1, 0};
  features.value = {0, 0};
  features.values = {2.0F};
  MessagePassing network({.n_features = 1, .hidden = 1, .edge_hidden = 1, .steps = 1},
                         generator_of(0));
  {
    const torch::NoGradGuard no_gradient;
    auto parameters = network.named_parameters();
    for (auto& item : parameters) item.value().zero_();
    parameters["input.weight"].fill_(1);
    parameters["edge_input.weight"].fill_(0.5);
    parameters["edge_input.bias"].fill_(-0.5);
    parameters["edge_output.weight"].fill_(4);
    parameters["unit.weight_ih"].copy_(torch::tensor({{0.0F}, {0.0F}, {1.0F}}));
  }
  const at::Tensor h = network.forward(MessageInputs(features, message_plan(features, 1)));
  // Node 0 hears relu(-1) = 0, node 1 hears 0.25 x 2.
  CHECK(h[0].item<double>() == Approx((std::tanh(0.0) + 0.25) / 2));
  CHECK(h[1].item<double>() == Approx(std::tanh(0.5) / 2));
}

TEST_CASE("message passing between classes gives what it gives edge by edge") {
  const SingleThreadedTorch single_threaded;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const PlacementModel model = drawn_model(seed);
    if (model.n_nodes() == 0) continue;
    const GraphFeatures features = graph_features(model, NodeFeatures::paper);
    MessagePassing network({.n_features = 5, .hidden = 8, .edge_hidden = 6, .steps = 3},
                           generator_of(seed));
    network.to(torch::kFloat64);
    const at::Tensor slow = slow_message_passing(network, features);
    for (bool merge : {false, true}) {
      const MessageInputs inputs(features, message_plan(features, 3, merge), torch::kFloat64);
      const at::Tensor h = network.forward(inputs).index_select(0, inputs.node_class());
      INFO("case " << seed << (merge ? " in classes" : ""));
      CHECK(largest_difference(h, slow) < 1e-12);
    }
  }
}

TEST_CASE("message passing in classes gives the same on a published graph in the paper's size") {
  const SingleThreadedTorch single_threaded;
  const PlacementModel model(make_task("published/llama-layer"));
  const GraphFeatures features = graph_features(model, NodeFeatures::paper);
  MessagePassing network({}, generator_of(1));
  const MessageInputs all(features, message_plan(features, 6, false));
  const MessageInputs classes(features, message_plan(features, 6));
  const at::Tensor h = network.forward(all);
  CHECK(h.abs().max().item<double>() > 0.05);
  CHECK(largest_difference(h, network.forward(classes).index_select(0, classes.node_class())) <
        1e-5);
}

TEST_CASE("the gradient of message passing is that of finite differences") {
  const SingleThreadedTorch single_threaded;
  const PlacementModel model = drawn_model(3);
  const GraphFeatures features = graph_features(model, NodeFeatures::paper);
  MessagePassing network({.n_features = 5, .hidden = 5, .edge_hidden = 4, .steps = 3},
                         generator_of(7));
  network.to(torch::kFloat64);
  const MessageInputs inputs(features, message_plan(features, 3), torch::kFloat64);
  const at::Tensor weights =
      torch::empty({static_cast<std::int64_t>(inputs.plan().n_classes), 5}, torch::kFloat64)
          .normal_(0, 1, generator_of(9));
  const auto value = [&] { return (network.forward(inputs) * weights).sum(); };
  value().backward();
  constexpr double kStep = 1e-6;
  for (const auto& item : network.named_parameters()) {
    at::Tensor flat = item.value().detach().view(-1);
    const at::Tensor gradient = item.value().grad().view(-1);
    for (std::int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 7) {
      const torch::NoGradGuard no_gradient;
      const double before = flat[i].item<double>();
      flat[i] = before + kStep;
      const double above = value().item<double>();
      flat[i] = before - kStep;
      const double below = value().item<double>();
      flat[i] = before;
      INFO(item.key() << " " << i);
      CHECK(gradient[i].item<double>() ==
            Approx((above - below) / (2 * kStep)).epsilon(1e-5).margin(1e-8));
    }
  }
}

TEST_CASE("linear layers start orthogonal, and the same for a seed") {
  const SingleThreadedTorch single_threaded;
  for (const auto& [n_in, n_out] :
       {std::pair(5, 128), std::pair(128, 64), std::pair(30, 30), std::pair(30, 900)}) {
    const auto layer = orthogonal_linear(n_in, n_out, generator_of(4));
    const at::Tensor w = layer->weight;
    const at::Tensor gram = n_out >= n_in ? w.t().matmul(w) : w.matmul(w.t());
    CHECK(largest_difference(gram, torch::eye(gram.size(0))) < 1e-5);
    CHECK(layer->bias.abs().max().item<double>() == 0);
    CHECK(torch::equal(w, orthogonal_linear(n_in, n_out, generator_of(4))->weight));
    CHECK_FALSE(torch::equal(w, orthogonal_linear(n_in, n_out, generator_of(5))->weight));
  }
}

}  // namespace
}  // namespace doppler
