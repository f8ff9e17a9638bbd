#include "tests/learned/slow_policy.h"

namespace doppler::testing {
namespace {

at::Tensor act(const at::Tensor& x) { return slow_act(x); }
at::Tensor standardised(const at::Tensor& x) { return slow_standardised(x); }

at::Tensor row(const std::vector<double>& values) {
  return torch::tensor(at::ArrayRef<double>(values), torch::kFloat64);
}

}  // namespace

at::Tensor slow_act(const at::Tensor& x) { return torch::where(x > 0, x, 0.1 * x); }

at::Tensor slow_standardised(const at::Tensor& x) {
  const at::Tensor away = x - x.mean(0, true);
  return away / (away.square().mean(0, true).sqrt() + 1e-6);
}

at::Tensor slow_features(const PlacementModel& model) {
  std::vector<at::Tensor> rows;
  for (std::size_t v = 0; v < model.n_nodes(); ++v) {
    const NodeId node{std::int64_t(v)};
    const Graph& graph = model.task().graph;
    double in = 0;
    double out = 0;
    for (EdgeId e : graph.in_edges(node)) in += model.costs().mean_transfer(graph.edge_bytes(e));
    for (EdgeId e : graph.out_edges(node)) out += model.costs().mean_transfer(graph.edge_bytes(e));
    rows.push_back(row({model.costs().mean[v], model.levels().b_level[v], model.levels().t_level[v],
                        in, out}) /
                   model.time_scale());
  }
  // As float32, which is what the network is told.
  return standardised(torch::stack(rows)).to(torch::kFloat32).to(torch::kFloat64);
}

std::vector<double> slow_edge_seconds(const PlacementModel& model) {
  const Graph& graph = model.task().graph;
  std::vector<double> seconds;
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    seconds.push_back(model.costs().mean_transfer(graph.edge_bytes(EdgeId(std::int64_t(e)))) /
                      model.time_scale());
  }
  return seconds;
}

std::vector<double> slow_device_features(const PartialSchedule& schedule, NodeId node,
                                         DeviceId device) {
  const PlacementModel& model = schedule.model();
  double placed = 0;
  for (std::size_t v = 0; v < model.n_nodes(); ++v) {
    const NodeId other{std::int64_t(v)};
    if (!schedule.placed(other) || schedule.device(other) != device) continue;
    placed += model.costs().compute(other, device);
  }
  double compute = 0;
  double first_start = -1;
  double last_end = 0;
  for (NodeId p : model.task().graph.predecessors(node)) {
    if (schedule.device(p) != device) continue;
    compute += model.costs().compute(p, device);
    if (first_start < 0 || schedule.start(p) < first_start) first_start = schedule.start(p);
    last_end = std::max(last_end, schedule.end(p));
  }
  std::vector<double> features = {placed, compute, std::max(first_start, 0.0), last_end,
                                  schedule.earliest_start(node, device)};
  for (double& x : features) x /= model.time_scale();
  return features;
}

at::Tensor slow_states(torch::OrderedDict<std::string, at::Tensor>& parameters, const Graph& graph,
                       const at::Tensor& features, const at::Tensor& values,
                       const PaperSizes& sizes) {
  const auto linear = [&](const std::string& layer, const at::Tensor& x) {
    return x.matmul(parameters["passing." + layer + ".weight"].t()) +
           parameters["passing." + layer + ".bias"];
  };
  const auto n_nodes = static_cast<std::size_t>(features.size(0));
  const std::size_t n_edges = graph.n_edges();
  at::Tensor state = torch::relu(linear("input", features));
  std::vector<at::Tensor> matrices;
  for (std::size_t e = 0; e < n_edges; ++e) {
    const at::Tensor value = values[std::int64_t(e)].view({1});
    matrices.push_back(linear("edge_output", torch::relu(linear("edge_input", value)))
                           .view({sizes.hidden, sizes.hidden}));
  }
  for (std::int64_t step = 0; step < sizes.steps; ++step) {
    std::vector<at::Tensor> received(n_nodes, torch::zeros({sizes.hidden}, torch::kFloat64));
    for (std::size_t e = 0; e < n_edges; ++e) {
      const Edge edge = graph.edge(EdgeId(std::int64_t(e)));
      at::Tensor& down = received[edge.reader.index()];
      down = down + state[edge.producer.value].matmul(matrices[e]);
      at::Tensor& up = received[edge.producer.index()];
      up = up + state[edge.reader.value].matmul(matrices[e]);
    }
    const auto in = (torch::stack(received).matmul(parameters["passing.unit.weight_ih"].t()) +
                     parameters["passing.unit.bias_ih"])
                        .chunk(3, 1);
    const auto old = (state.matmul(parameters["passing.unit.weight_hh"].t()) +
                      parameters["passing.unit.bias_hh"])
                         .chunk(3, 1);
    const at::Tensor update = torch::sigmoid(in[1] + old[1]);
    const at::Tensor fresh = torch::tanh(in[2] + torch::sigmoid(in[0] + old[0]) * old[2]);
    state = (1 - update) * fresh + update * state;
  }
  return act(state);
}

SlowPolicy::SlowPolicy(PaperNetwork& network, const PlacementModel& model)
    : model_(model), sizes_(network.sizes) {
  const auto keep = [](torch::nn::Module& module, auto& to) {
    for (const auto& item : module.named_parameters()) {
      to.insert(item.key(), item.value().detach().to(torch::kFloat64));
    }
  };
  keep(*network.select, select_);
  keep(*network.place, place_);
  features_ = slow_features(model);
  select_states_ = states("select");
  place_states_ = states("place");
}

at::Tensor SlowPolicy::parameter(const std::string& policy, const std::string& name) {
  return policy == "select" ? select_[name] : place_[name];
}

at::Tensor SlowPolicy::linear(const std::string& layer, const std::string& policy,
                              const at::Tensor& x) {
  return x.matmul(parameter(policy, layer + ".weight").t()) + parameter(policy, layer + ".bias");
}

at::Tensor SlowPolicy::states(const std::string& policy) {
  std::vector<double> seconds = slow_edge_seconds(model_);
  const at::Tensor values =
      seconds.empty() ? torch::zeros({0}, torch::kFloat64)
                      : standardised(row(seconds)).to(torch::kFloat32).to(torch::kFloat64);
  return slow_states(policy == "select" ? select_ : place_, model_.task().graph, features_, values,
                     sizes_);
}

at::Tensor SlowPolicy::candidates(const PartialSchedule& schedule) {
  std::vector<at::Tensor> b_sums;
  std::vector<at::Tensor> t_sums;
  for (std::size_t v = 0; v < model_.n_nodes(); ++v) {
    const NodeId node{std::int64_t(v)};
    b_sums.push_back(torch::zeros({sizes_.hidden}, torch::kFloat64));
    t_sums.push_back(torch::zeros({sizes_.hidden}, torch::kFloat64));
    for (NodeId at : b_path(model_.levels(), node)) {
      b_sums.back() = b_sums.back() + select_states_[at.value];
    }
    for (NodeId at : t_path(model_.levels(), node)) {
      t_sums.back() = t_sums.back() + select_states_[at.value];
    }
  }
  std::vector<std::int64_t> ids;
  for (NodeId node : schedule.candidates()) ids.push_back(node.value);
  const at::Tensor at = torch::tensor(at::ArrayRef<std::int64_t>(ids), torch::kInt64);
  const auto now = [&](const at::Tensor& x) { return standardised(x.index_select(0, at)); };
  const at::Tensor x =
      torch::cat({act(linear("own", "select", now(features_))), select_states_.index_select(0, at),
                  now(standardised(torch::stack(b_sums))), now(standardised(torch::stack(t_sums)))},
                 1);
  const at::Tensor scores =
      linear("out", "select", act(linear("combined", "select", x))).view({-1});
  return torch::log_softmax(scores, 0);
}

at::Tensor SlowPolicy::devices(const PartialSchedule& schedule, NodeId node) {
  const std::size_t n_devices = model_.n_devices();
  std::vector<at::Tensor> features;
  std::vector<at::Tensor> sums;
  for (std::size_t d = 0; d < n_devices; ++d) {
    const DeviceId device{std::int64_t(d)};
    at::Tensor sum = torch::zeros({sizes_.hidden}, torch::kFloat64);
    for (std::size_t v = 0; v < model_.n_nodes(); ++v) {
      const NodeId other{std::int64_t(v)};
      if (schedule.placed(other) && schedule.device(other) == device) {
        sum = sum + place_states_[other.value];
      }
    }
    features.push_back(row(slow_device_features(schedule, node, device)));
    sums.push_back(sum);
  }
  const auto n = static_cast<std::int64_t>(n_devices);
  const auto repeated = [&](const at::Tensor& x) { return x.unsqueeze(0).expand({n, -1}); };
  const at::Tensor x =
      torch::cat({act(linear("device", "place", standardised(torch::stack(features)))),
                  repeated(act(linear("node", "place", features_[node.value]))),
                  repeated(place_states_[node.value]), standardised(torch::stack(sums))},
                 1);
  const at::Tensor scores = linear("out", "place", act(linear("combined", "place", x))).view({-1});
  return torch::log_softmax(scores, 0);
}

}  // namespace doppler::testing
