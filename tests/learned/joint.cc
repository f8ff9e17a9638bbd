// The policy over pairs against its description, pair by pair, and its gradient.
#include <ATen/CPUGeneratorImpl.h>

#include <optional>

#include "agents/learned/joint_policy.h"
#include "tests/learned/gradient_check.h"
#include "tests/learned/slow_policy.h"
#include "tests/learned/small_tasks.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::model_of;

constexpr PaperSizes kSmall{.hidden = 16, .edge_hidden = 8, .head = 8, .steps = 2};

Task drawn_task(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none};
}

at::Tensor row(const std::vector<double>& values) {
  return torch::tensor(at::ArrayRef<double>(values), torch::kFloat64);
}

// Log-probabilities of all pairs of the candidates, [candidates, n_devices], in float64.
at::Tensor slow_pairs(JointNetwork& network, const PartialSchedule& schedule, bool told) {
  const PlacementModel& model = schedule.model();
  const Graph& graph = model.task().graph;
  torch::OrderedDict<std::string, at::Tensor> parameters;
  for (const auto& item : network.named_parameters()) {
    parameters.insert(item.key(), item.value().detach().to(torch::kFloat64));
  }
  const auto linear = [&](const std::string& layer, const at::Tensor& x) {
    return x.matmul(parameters[layer + ".weight"].t()) + parameters[layer + ".bias"];
  };
  at::Tensor features = testing::slow_features(model);
  std::vector<double> seconds = testing::slow_edge_seconds(model);
  at::Tensor values = torch::zeros({0}, torch::kFloat64);
  if (!seconds.empty()) {
    const at::Tensor mean = row(seconds);
    if (told) {
      for (std::size_t e = 0; e < seconds.size(); ++e) {
        const Edge edge = graph.edge(EdgeId(std::int64_t(e)));
        if (!schedule.placed(edge.producer) || !schedule.placed(edge.reader)) continue;
        seconds[e] = model.transfer(graph.edge_bytes(EdgeId(std::int64_t(e))),
                                    schedule.device(edge.producer), schedule.device(edge.reader)) /
                     model.time_scale();
      }
    }
    const double deviation =
        (mean - mean.mean()).square().mean().sqrt().item<double>() + kDeviationFloor;
    values = ((row(seconds) - mean.mean()) / deviation).to(torch::kFloat32).to(torch::kFloat64);
  }
  if (told) {
    std::vector<at::Tensor> placement;
    for (std::size_t v = 0; v < model.n_nodes(); ++v) {
      const NodeId node{std::int64_t(v)};
      placement.push_back(schedule.placed(node) ? row({1, schedule.start(node) / model.time_scale(),
                                                       schedule.end(node) / model.time_scale()})
                                                : row({0, 0, 0}));
    }
    features =
        torch::cat({features, torch::stack(placement).to(torch::kFloat32).to(torch::kFloat64)}, 1);
  }
  const at::Tensor states = testing::slow_states(parameters, graph, features, values, kSmall);
  std::vector<at::Tensor> b_sums;
  std::vector<at::Tensor> t_sums;
  for (std::size_t v = 0; v < model.n_nodes(); ++v) {
    b_sums.push_back(torch::zeros({kSmall.hidden}, torch::kFloat64));
    t_sums.push_back(torch::zeros({kSmall.hidden}, torch::kFloat64));
    const NodeId node{std::int64_t(v)};
    for (NodeId at : b_path(model.levels(), node)) b_sums.back() += states[at.value];
    for (NodeId at : t_path(model.levels(), node)) t_sums.back() += states[at.value];
  }
  const at::Tensor b_paths = testing::slow_standardised(torch::stack(b_sums));
  const at::Tensor t_paths = testing::slow_standardised(torch::stack(t_sums));
  std::vector<at::Tensor> device_sums;
  for (std::size_t d = 0; d < model.n_devices(); ++d) {
    device_sums.push_back(torch::zeros({kSmall.hidden}, torch::kFloat64));
    for (std::size_t v = 0; v < model.n_nodes(); ++v) {
      const NodeId node{std::int64_t(v)};
      if (schedule.placed(node) && schedule.device(node).index() == d) {
        device_sums.back() += states[node.value];
      }
    }
  }
  const at::Tensor sums = testing::slow_standardised(torch::stack(device_sums));
  std::vector<at::Tensor> pair_features;
  std::vector<at::Tensor> rest;
  for (NodeId node : schedule.candidates()) {
    for (std::size_t d = 0; d < model.n_devices(); ++d) {
      const DeviceId device{std::int64_t(d)};
      pair_features.push_back(row(testing::slow_device_features(schedule, node, device)));
      rest.push_back(
          torch::cat({testing::slow_act(linear("own", features[node.value])), states[node.value],
                      b_paths[node.value], t_paths[node.value], sums[device.value]}));
    }
  }
  const at::Tensor pairs =
      testing::slow_act(linear("pair", testing::slow_standardised(torch::stack(pair_features))));
  const at::Tensor scores =
      linear("out",
             testing::slow_act(linear("combined", torch::cat({pairs, torch::stack(rest)}, 1))))
          .view({-1});
  return torch::log_softmax(scores, 0).view({-1, std::int64_t(model.n_devices())});
}

TEST_CASE(
    "the pairs' log-probabilities are those of the description, with messages once or each step") {
  int n_checked = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const auto model = model_of(drawn_task(seed));
    if (model->n_nodes() == 0 || model->n_nodes() > 14 || model->n_devices() > 6) continue;
    ++n_checked;
    for (const auto time : {MessagePassingTime::episode, MessagePassingTime::step}) {
      const bool told = time == MessagePassingTime::step;
      INFO("case " << seed << (told ? ", each step" : ""));
      JointNetwork network(kSmall, paper_node_columns(time),
                           at::make_generator<at::CPUGeneratorImpl>(seed));
      const torch::NoGradGuard no_gradient;
      const JointWeights weights = network.weights();
      const auto start = std::make_shared<const PaperTask>(model, 2);
      PartialSchedule schedule(model);
      Draws draws(seed);
      std::optional<JointRollout> rollout;
      JointEmbedding embedding;
      const auto begin = [&](const std::shared_ptr<const PaperTask>& task) {
        embedding = plain_embedding(network.embed(PaperTensors(task, torch::TensorOptions())));
        rollout.emplace(task);
        rollout->begin(weights, embedding);
        for (std::size_t v = 0; v < model->n_nodes(); ++v) {
          const NodeId node{std::int64_t(v)};
          if (schedule.placed(node)) rollout->placed(node, schedule.device(node));
        }
      };
      if (!told) begin(start);
      while (!schedule.complete()) {
        if (told) begin(std::make_shared<const PaperTask>(*start, schedule, 2));
        rollout->score(schedule);
        const at::Tensor want = slow_pairs(network, schedule, told);
        const auto candidates = schedule.candidates();
        for (std::size_t i = 0; i < candidates.size(); ++i) {
          for (std::size_t d = 0; d < model->n_devices(); ++d) {
            CHECK(rollout->log_probability(candidates[i], DeviceId(std::int64_t(d))) ==
                  Approx(want[std::int64_t(i)][std::int64_t(d)].item<double>()).margin(2e-4));
          }
        }
        const NodeAndDevice best = rollout->best();
        CHECK(rollout->log_probability(best.node, best.device) ==
              Approx(want.max().item<double>()).margin(2e-4));
        const NodeId node = candidates[draws.below(candidates.size())];
        const DeviceId device(std::int64_t(draws.below(model->n_devices())));
        schedule.place(node, device);
        if (!told) rollout->placed(node, device);
      }
    }
  }
  CHECK(n_checked >= 4);
}

TEST_CASE("LibTorch's batch gives the log-probabilities that the loops decided by") {
  const auto model = model_of(drawn_task(3));
  JointNetwork network(kSmall, 5, at::make_generator<at::CPUGeneratorImpl>(2));
  const torch::NoGradGuard no_gradient;
  const PaperTensors tensors(std::make_shared<const PaperTask>(model, 2), torch::TensorOptions());
  const auto embedding = network.embed(tensors);
  const JointEmbedding plain = plain_embedding(embedding);
  const JointWeights weights = network.weights();
  JointRollout rollout(tensors.task);
  rollout.begin(weights, plain);
  PartialSchedule schedule(model);
  JointEpisode episode;
  std::vector<double> logs;
  while (!schedule.complete()) {
    rollout.score(schedule);
    const NodeAndDevice chosen = rollout.best();
    const std::size_t before = episode.step.size();
    rollout.record(schedule, chosen, nullptr, episode);
    if (episode.step.size() > before) {
      logs.push_back(rollout.log_probability(chosen.node, chosen.device));
    }
    episode.node.push_back(chosen.node);
    schedule.place(chosen.node, chosen.device);
    rollout.placed(chosen.node, chosen.device);
  }
  episode.assignment = schedule.assignment();
  const ChoiceValues values = network.choices(tensors, embedding, {&episode, 1});
  REQUIRE(values.log_probability.numel() == std::int64_t(logs.size()));
  for (std::size_t k = 0; k < logs.size(); ++k) {
    CHECK(values.log_probability[std::int64_t(k)].item<double>() == Approx(logs[k]).margin(1e-4));
  }
}

TEST_CASE("the gradient of joint's loss is that of finite differences") {
  const auto model = model_of(drawn_task(3));
  for (const auto time : {MessagePassingTime::episode, MessagePassingTime::step}) {
    const auto policy =
        joint_policy({.sizes = kSmall, .message_passing = time})({model}, torch::kCPU, 4);
    testing::check_gradient(*policy);
  }
}

TEST_CASE("told of no placement, each step's message passing is that of the episode") {
  // The same network but for the columns of the placement, which are zeros at first.
  const auto model = model_of(drawn_task(3));
  const auto start = std::make_shared<const PaperTask>(model, 2);
  const PartialSchedule nothing(model);
  const PaperTask told(*start, nothing, 2);
  CHECK(told.plan.node_class == start->plan.node_class);
  CHECK(told.features.values == start->features.values);
  CHECK(told.features.value == start->features.value);
}

}  // namespace
}  // namespace doppler
