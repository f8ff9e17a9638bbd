// The policies of `doppler` beside LibTorch, finite differences, and the linear rule.
#include "agents/learned/policy_gradient.h"

#include <torch/torch.h>

#include <cmath>
#include <map>

#include "agents/learned/doppler_network.h"
#include "agents/learned/doppler_policy.h"
#include "agents/learned/imitation.h"
#include "datasets/tasks.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

std::shared_ptr<const PlacementModel> model_of(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

std::vector<RuleWeights> random_weights(std::size_t n_nodes, std::uint64_t seed) {
  Draws draws(seed);
  std::vector<RuleWeights> weights(n_nodes);
  for (RuleWeights& row : weights) {
    const RuleWeights base = partner_list_weights();
    for (std::size_t i = 0; i < kRuleWeights; ++i) {
      row[i] = 0.3 * (base[i] + 0.5 * (2 * draws.uniform() - 1));
    }
  }
  return weights;
}

// The same log-probability by LibTorch's own log_softmax over the candidates that the schedule
// lists and over the devices, from the features of each state.
double torch_log_probability(const std::shared_ptr<const PlacementModel>& model,
                             const std::vector<RuleWeights>& weights,
                             const Trajectory& trajectory) {
  RuleFeatures features(model);
  PartialSchedule schedule(model);
  features.begin();
  const auto n_devices = static_cast<std::int64_t>(model->n_devices());
  double sum = 0;
  for (NodeId node : trajectory.order) {
    std::vector<double> scores;
    std::int64_t chosen = -1;
    for (NodeId candidate : schedule.candidates()) {
      std::array<double, kNodeFeatures> row;
      features.write_node(schedule, candidate, row);
      if (candidate == node) chosen = static_cast<std::int64_t>(scores.size());
      const at::Tensor x = torch::tensor(at::ArrayRef<double>(row), torch::kFloat64);
      const at::Tensor w = torch::tensor(
          at::ArrayRef<double>(weights[candidate.index()].data(), kNodeFeatures), torch::kFloat64);
      scores.push_back(x.dot(w).item<double>());
    }
    sum += torch::log_softmax(
               torch::tensor(at::ArrayRef<double>(scores), torch::kFloat64) / kSelectTemperature,
               0)[chosen]
               .item<double>();
    std::vector<double> rows(kDeviceFeatures * model->n_devices());
    features.write_devices(schedule, node, rows);
    const at::Tensor x = torch::tensor(at::ArrayRef<double>(rows), torch::kFloat64)
                             .view({static_cast<std::int64_t>(kDeviceFeatures), n_devices});
    const at::Tensor w = torch::tensor(
        at::ArrayRef<double>(weights[node.index()].data() + kNodeFeatures, kDeviceFeatures),
        torch::kFloat64);
    const at::Tensor logits = -w.matmul(x) / (kPlaceTemperature * model->time_scale());
    const DeviceId device = trajectory.devices[node.index()];
    sum += torch::log_softmax(logits, 0)[device.value].item<double>();
    schedule.place(node, device);
    features.placed(node);
  }
  return sum;
}

TEST_CASE("log-probabilities of episodes equal LibTorch's") {
  for (const char* task : {"llama-block@p100x4", "ffnn@v100x8", "random-dag(n=120)@mixed"}) {
    CAPTURE(task);
    const auto model = model_of(task);
    PolicyGradient policy(model);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto weights = random_weights(model->n_nodes(), seed);
      Draws draws(seed + 10);
      const Trajectory trajectory = policy.sample(weights, draws);
      const auto logs = policy.run(weights, trajectory);
      const double expected = torch_log_probability(model, weights, trajectory);
      CHECK(std::abs(logs.select + logs.place - expected) <= 1e-4);
    }
  }
}

TEST_CASE("the gradient of a log-probability is that of finite differences") {
  const auto model = model_of("llama-block(sequence=512)@p100x4");
  PolicyGradient policy(model);
  auto weights = random_weights(model->n_nodes(), 5);
  Draws draws(6);
  const Trajectory trajectory = policy.sample(weights, draws);
  std::vector<RuleWeights> gradient(model->n_nodes(), RuleWeights{});
  policy.run(weights, trajectory, 2, gradient);
  const auto value = [&] {
    const auto logs = policy.run(weights, trajectory);
    return logs.select + logs.place;
  };
  for (int i = 0; i < 200; ++i) {
    const std::size_t v = draws.below(model->n_nodes());
    const std::size_t k = draws.below(kRuleWeights);
    constexpr double kStep = 1e-5;
    const double before = weights[v][k];
    weights[v][k] = before + kStep;
    const double above = value();
    weights[v][k] = before - kStep;
    const double below = value();
    weights[v][k] = before;
    const double slope = (above - below) / (2 * kStep);
    CAPTURE(v, k);
    CHECK(std::abs(gradient[v][k] - 2 * slope) <= 1e-4 * (1 + std::abs(slope)));
  }
}

TEST_CASE("an episode is drawn with the probability that it is said to have") {
  // Two independent nodes on two devices: four orders and placements of equal weights.
  GraphBuilder builder;
  builder.add_node({.name = "a"});
  builder.add_node({.name = "b"});
  Task task{.graph = builder.build(), .cluster = Cluster::uniform(2)};
  const auto model = std::make_shared<const PlacementModel>(task);
  PolicyGradient policy(model);
  const std::vector<RuleWeights> weights(2, RuleWeights{});
  Draws draws(1);
  std::map<std::string, int> seen;
  for (int i = 0; i < 8000; ++i) {
    const Trajectory t = policy.sample(weights, draws);
    ++seen[std::to_string(t.order[0].value) + std::to_string(t.devices[0].value) +
           std::to_string(t.devices[1].value)];
    if (i == 0) {
      const auto logs = policy.run(weights, t);
      CHECK(logs.select == Approx(std::log(0.5)));
      CHECK(logs.place == Approx(2 * std::log(0.5)));
    }
  }
  CHECK(seen.size() == 8);
  for (const auto& [what, count] : seen) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("a head without latents decides as its linear rule") {
  const auto model = model_of("llama-layer@p100x4");
  const DopplerNetwork network({}, 4);
  const Latents latents = network.latents(NetworkInputs(*model));
  HeadRollout rollout(model, latents);
  LinearRule rule(model);
  Draws draws(2);
  for (int i = 0; i < 20; ++i) {
    RuleWeights weights = partner_list_weights();
    for (double& weight : weights) weight += draws.uniform() - 0.5;
    const auto expected = rule.decide(weights);
    const auto decided = rollout.decide(plain_head(weights, latents.n_latents));
    CHECK(std::equal(decided.begin(), decided.end(), expected.begin(), expected.end()));
  }
}

TEST_CASE("the heads that doppler starts with decide as the agents whose rules they are") {
  const auto model = model_of("random-dag(n=300,seed=4,spread=1.0)@v100x8");
  const Latents none{.n_latents = 0};
  HeadRollout rollout(model, none);
  const auto expected = make_agent("partner-list")->decide(model, {}).assignment.devices;
  const auto decided = rollout.decide(plain_head(partner_list_weights(), 0));
  CHECK(std::equal(decided.begin(), decided.end(), expected.begin(), expected.end()));

  // critical-path draws among ties, so each choice is checked by itself.
  const auto devices = rollout.decide(plain_head(critical_path_weights(), 0));
  PartialSchedule schedule(model);
  for (NodeId node : rollout.order()) {
    for (NodeId other : schedule.candidates()) {
      CHECK(model->levels().b_level[other.index()] <= model->levels().b_level[node.index()]);
    }
    const DeviceId device = devices[node.index()];
    for (std::int64_t d = 0; d < 8; ++d) {
      CHECK(schedule.earliest_start(node, device) <= schedule.earliest_start(node, DeviceId(d)));
    }
    schedule.place(node, device);
  }
}

TEST_CASE("latents are standardised over the nodes and do not depend on the nodes' order") {
  const auto model = model_of("llama-block@p100x4");
  const DopplerNetwork network({}, 9);
  const Latents latents = network.latents(NetworkInputs(*model));
  const std::size_t n = model->n_nodes();
  for (const auto& values : {latents.select, latents.place}) {
    for (std::size_t k = 0; k < latents.n_latents; ++k) {
      double sum = 0;
      double squares = 0;
      for (std::size_t v = 0; v < n; ++v) {
        sum += values[v * latents.n_latents + k];
        squares += std::pow(values[v * latents.n_latents + k], 2);
      }
      CHECK(std::abs(sum / static_cast<double>(n)) < 1e-4);
      CHECK(squares / static_cast<double>(n) == Approx(1).epsilon(1e-3));
    }
  }
}

TEST_CASE("imitation makes the policies choose what the teacher chose") {
  const auto model = model_of("llama-block@p100x4");
  const auto teacher = make_agent("m-etf");
  const Trajectory lesson = trajectory_of(*teacher, model, 0);
  NetworkInputs inputs(*model);
  PolicyGradient gradient(model);
  DopplerNetwork network({}, 1);
  Imitation imitation({{.inputs = &inputs, .gradient = &gradient, .n_nodes = model->n_nodes()}},
                      plain_head({}, static_cast<std::size_t>(network.options().n_latents)));
  const std::vector<ImitationExample> examples = {{.task = 0, .trajectory = &lesson}};
  const double first = imitation.update(network, examples, {});
  double last = first;
  for (int i = 0; i < 150; ++i) last = imitation.update(network, examples, {});
  CHECK(last < 0.6 * first);
}

TEST_CASE("what the network learns is the derivative of the loss by its latents") {
  // Along a step of the network, the loss falls as the derivative says.
  const auto model = model_of("ffnn@p100x4");
  NetworkInputs inputs(*model);
  PolicyGradient gradient(model);
  const Trajectory lesson = trajectory_of(*make_agent("critical-path"), model, 1);
  DopplerNetwork network({}, 1);
  const auto n_latents = static_cast<std::size_t>(network.options().n_latents);
  Head head = plain_head(partner_list_weights(), n_latents);
  Draws draws(8);
  for (double& weight : head) weight += 0.2 * (draws.uniform() - 0.5);
  const auto loss = [&](const Latents& latents, std::vector<RuleWeights>* slopes) {
    std::vector<RuleWeights> weights(model->n_nodes());
    write_node_weights(head, latents, weights);
    const auto logs = gradient.run(weights, lesson, slopes ? -1 : 0,
                                   slopes ? std::span(*slopes) : std::span<RuleWeights>());
    return -(logs.select + logs.place);
  };
  Imitation imitation({{.inputs = &inputs, .gradient = &gradient, .n_nodes = model->n_nodes()}},
                      head);
  const std::vector<ImitationExample> examples = {{.task = 0, .trajectory = &lesson}};
  const double before = loss(network.latents(inputs), nullptr);
  for (int i = 0; i < 20; ++i) imitation.update(network, examples, {.head = 0, .network = 1e-3});
  CHECK(imitation.head() == head);
  CHECK(loss(network.latents(inputs), nullptr) < before);
}

}  // namespace
}  // namespace doppler
