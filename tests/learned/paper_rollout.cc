#include "agents/learned/paper_rollout.h"

#include <ATen/CPUGeneratorImpl.h>

#include <set>

#include "agents/learned/torch_device.h"
#include "datasets/tasks.h"
#include "env/env.h"
#include "tests/env/diamond.h"
#include "tests/learned/slow_policy.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

constexpr PaperSizes kSmall{.hidden = 12, .edge_hidden = 5, .head = 7, .steps = 3};

at::Generator generator_of(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::shared_ptr<const PlacementModel> drawn_model(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return std::make_shared<const PlacementModel>(
      Task{"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none});
}

std::shared_ptr<const PlacementModel> named_model(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

// A network, a task, and what the network makes of it.
struct Fixture {
  Fixture(std::shared_ptr<const PlacementModel> model, const PaperSizes& sizes, std::uint64_t seed)
      : network(sizes, seed),
        task(std::make_shared<const PaperTask>(model, static_cast<int>(sizes.steps))),
        tensors(task, torch::TensorOptions()),
        weights(network.weights()),
        embedding(plain_embedding(network.select->embed(tensors), network.place->embed(tensors))) {}

  PaperNetwork network;
  std::shared_ptr<const PaperTask> task;
  PaperTensors tensors;
  PaperWeights weights;
  PaperEmbedding embedding;
};

// Plays one random episode and compares every state's log-probabilities with the slow policy's.
double largest_difference(const std::shared_ptr<const PlacementModel>& model,
                          const PaperSizes& sizes, std::uint64_t seed) {
  Fixture f(model, sizes, seed);
  testing::SlowPolicy slow(f.network, *model);
  PaperRollout rollout(f.task);
  PartialSchedule schedule(model);
  Draws draws(seed);
  rollout.begin(f.weights, f.embedding);
  double largest = 0;
  while (!schedule.complete()) {
    rollout.score_candidates(schedule);
    const at::Tensor want = slow.candidates(schedule);
    const auto candidates = schedule.candidates();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::int32_t row = f.task->row_of_node[candidates[i].index()];
      const auto at = std::ranges::find(rollout.rows(), row) - rollout.rows().begin();
      largest = std::max(
          largest,
          std::abs(static_cast<double>(
                       rollout.candidate_log_probabilities()[static_cast<std::size_t>(at)]) -
                   want[static_cast<std::int64_t>(i)].item<double>()));
    }
    const NodeId node = candidates[draws.below(candidates.size())];
    rollout.score_devices(schedule, node);
    const at::Tensor devices = slow.devices(schedule, node);
    for (std::size_t d = 0; d < model->n_devices(); ++d) {
      largest =
          std::max(largest, std::abs(static_cast<double>(rollout.device_log_probabilities()[d]) -
                                     devices[static_cast<std::int64_t>(d)].item<double>()));
    }
    const DeviceId device{static_cast<std::int64_t>(draws.below(model->n_devices()))};
    schedule.place(node, device);
    rollout.placed(node, device);
  }
  return largest;
}

TEST_CASE("log-probabilities of a rollout are those of the slow policy on random tasks") {
  const SingleThreadedTorch single_threaded;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const auto model = drawn_model(seed);
    if (model->n_nodes() == 0) continue;
    INFO("case " << seed);
    CHECK(largest_difference(model, kSmall, seed) < 1e-4);
  }
}

TEST_CASE("log-probabilities agree in the paper's size on a published graph") {
  const SingleThreadedTorch single_threaded;
  CHECK(largest_difference(named_model("published/chainmm"), {}, 1) < 1e-4);
}

TEST_CASE("one policy scores tasks of every size, cluster and number of devices") {
  const SingleThreadedTorch single_threaded;
  PaperNetwork network(kSmall, 5);
  for (const char* name : {"chainmm@uniform(1)", "ffnn@uniform(2)", "llama-block@p100x4",
                           "llama-layer@v100x8", "published/llama-layer-8"}) {
    const auto task = std::make_shared<const PaperTask>(named_model(name), 3);
    const PaperTensors tensors(task, torch::TensorOptions());
    PaperRollout rollout(task);
    PaperEpisode episode;
    rollout.run(network.weights(),
                plain_embedding(network.select->embed(tensors), network.place->embed(tensors)), {},
                episode);
    CHECK_NOTHROW(episode.assignment.check(task->model->task().graph, task->model->task().cluster));
    CHECK(std::isfinite(episode.log_probability));
  }
}

// The values that gradients are taken of, for whole episodes, against the rollout's own.
TEST_CASE("the teacher-forced batch gives the log-probability of its episodes") {
  const SingleThreadedTorch single_threaded;
  for (const char* name : {"published/chainmm", "published/ffnn", "published/llama-block-8"}) {
    Fixture f(named_model(name), kSmall, 3);
    PaperRollout rollout(f.task);
    std::vector<PaperEpisode> episodes(3);
    for (std::size_t i = 0; i < episodes.size(); ++i) {
      rollout.run(f.weights, f.embedding, {.epsilon = 0.5, .seed = i}, episodes[i]);
    }
    const auto total = [&](std::span<const PaperEpisode> some) {
      const auto select =
          f.network.select->choices(f.tensors, f.network.select->embed(f.tensors), some);
      const auto place =
          f.network.place->choices(f.tensors, f.network.place->embed(f.tensors), some);
      return select.log_probability.sum().item<double>() +
             place.log_probability.sum().item<double>();
    };
    double want = 0;
    for (const PaperEpisode& episode : episodes) {
      // Steps with one row are not in the batch: among k equal candidates each has 1 / k.
      double certain = 0;
      std::set<std::int32_t> recorded(episode.select_step.begin(), episode.select_step.end());
      PartialSchedule schedule(f.task->model);
      for (std::size_t step = 0; step < episode.node.size(); ++step) {
        if (!recorded.contains(static_cast<std::int32_t>(step))) {
          certain -= std::log(static_cast<double>(schedule.candidates().size()));
        }
        schedule.place(episode.node[step], episode.assignment[episode.node[step]]);
      }
      const double own = episode.log_probability - certain;
      CHECK(total(std::span(&episode, 1)) == Approx(own).epsilon(1e-4));
      want += own;
    }
    CHECK(total(episodes) == Approx(want).epsilon(1e-4));
  }
}

TEST_CASE("entropies and probabilities of a choice are those of its alternatives one by one") {
  auto targets = std::make_shared<ChoiceTargets>();
  targets->first = {0, 2, 5};
  targets->weight = {3, 1, 1, 2, 1};
  targets->target = {2, 0, 0, 1, 1};
  const at::Tensor scores =
      torch::tensor({0.5, -1.0, 2.0, 0.25, 1.0}, torch::kFloat64).requires_grad_();
  const ChoiceValues values = choice_values(scores, targets);
  // Segment 0: alternatives 0.5 three times and -1 once; segment 1: 2, 0.25 twice, 1.
  const auto check = [&](int segment, std::vector<double> all, std::vector<double> wanted) {
    double total = 0;
    double chosen = 0;
    double entropy = 0;
    for (double x : all) total += std::exp(x);
    for (double x : wanted) chosen += std::exp(x) / total;
    for (double x : all) entropy -= std::exp(x) / total * std::log(std::exp(x) / total);
    CHECK(values.log_probability[segment].item<double>() == Approx(std::log(chosen)));
    CHECK(values.entropy[segment].item<double>() == Approx(entropy));
  };
  check(0, {0.5, 0.5, 0.5, -1}, {0.5, 0.5});
  check(1, {2, 0.25, 0.25, 1}, {0.25, 1});
}

TEST_CASE("gradients of both policies are those of finite differences") {
  const SingleThreadedTorch single_threaded;
  for (std::uint64_t seed : {5, 11}) {
    Fixture f(drawn_model(seed), kSmall, seed);
    // Away from the kink that zero biases put at equal devices.
    for (torch::nn::Module* policy : {static_cast<torch::nn::Module*>(f.network.select.get()),
                                      static_cast<torch::nn::Module*>(f.network.place.get())}) {
      const torch::NoGradGuard no_gradient;
      for (at::Tensor& parameter : policy->parameters()) {
        if (parameter.dim() == 1) parameter.uniform_(-0.3, 0.3, generator_of(seed));
      }
    }
    f.network.select->to(torch::kFloat64);
    f.network.place->to(torch::kFloat64);
    const PaperTensors tensors(f.task, torch::TensorOptions(torch::kFloat64));
    PaperRollout rollout(f.task);
    std::vector<PaperEpisode> episodes(2);
    const auto teacher = critical_path_teacher();
    rollout.run(f.weights, f.embedding, {.epsilon = 0.5, .seed = 1}, episodes[0]);
    rollout.run(f.weights, f.embedding, {.epsilon = 0.5, .seed = 2, .teacher = teacher.get()},
                episodes[1]);
    const auto value_of = [](const ChoiceValues& values) {
      at::Tensor sum = torch::zeros({}, torch::kFloat64);
      for (std::int64_t i = 0; i < values.entropy.numel(); ++i) {
        sum = sum + (1 + 0.1 * static_cast<double>(i % 5)) * values.log_probability[i] +
              0.3 * values.entropy[i];
      }
      return sum;
    };
    const auto check = [&](torch::nn::Module& policy, const auto& value) {
      value().backward();
      constexpr double kStep = 1e-6;
      for (const auto& item : policy.named_parameters()) {
        at::Tensor flat = item.value().detach().view(-1);
        const at::Tensor gradient =
            item.value().grad().defined() ? item.value().grad().view(-1) : torch::zeros_like(flat);
        for (std::int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 3) {
          const torch::NoGradGuard no_gradient;
          const double before = flat[i].template item<double>();
          flat[i] = before + kStep;
          const double above = value().template item<double>();
          flat[i] = before - kStep;
          const double below = value().template item<double>();
          flat[i] = before;
          INFO("case " << seed << ", " << item.key() << " " << i);
          CHECK(gradient[i].template item<double>() ==
                Approx((above - below) / (2 * kStep)).epsilon(1e-4).margin(1e-6));
        }
      }
    };
    check(*f.network.select, [&] {
      return value_of(
          f.network.select->choices(tensors, f.network.select->embed(tensors), episodes));
    });
    check(*f.network.place, [&] {
      return value_of(f.network.place->choices(tensors, f.network.place->embed(tensors), episodes));
    });
  }
}

TEST_CASE("what is computed for a gradient goes when nobody holds it any more") {
  Fixture f(named_model("published/chainmm"), kSmall, 3);
  PaperRollout rollout(f.task);
  std::vector<PaperEpisode> episodes(1);
  rollout.run(f.weights, f.embedding, {.epsilon = 0.5}, episodes[0]);
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> left;
  const auto watch = [&](const at::Tensor& x) {
    REQUIRE(x.requires_grad());
    left.emplace_back(x.getIntrusivePtr());
  };
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    f.network.select->to(dtype);
    f.network.place->to(dtype);
    const PaperTensors tensors(f.task, torch::TensorOptions(dtype));
    const auto select = f.network.select->embed(tensors);
    const auto place = f.network.place->embed(tensors);
    const auto sel = f.network.select->choices(tensors, select, episodes);
    const auto plc = f.network.place->choices(tensors, place, episodes);
    for (const at::Tensor& x : {select.base, select.b_paths, select.t_paths, place.base,
                                place.states, sel.log_probability, plc.entropy}) {
      watch(x);
    }
    auto placements = std::make_shared<Placements>();
    placements->state = {0};
    placements->device = {0};
    placements->episode_first = {0, 1};
    watch(standardised_device_sums(place.states, placements));
    watch(standardised_rows(select.b_paths, tensors.all_b_paths, dtype));
    watch(path_sums(place.states, tensors.b_paths));
  }
  for (const auto& x : left) CHECK(x.expired());
}

// --- what the published code got wrong ---

TEST_CASE("device features are those that the environment observes, starts of predecessors too") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto model = drawn_model(seed);
    if (model->n_nodes() == 0) continue;
    Env env(model->task(), {.mode = "sequential"});
    env.reset({.seed = seed});
    std::size_t index = 0;
    while (env.spec().observations[index].name != "device_features") ++index;
    Draws draws(seed);
    std::vector<double> features(model->n_devices() * kPaperDeviceFeatures);
    while (env.running()) {
      const auto candidates = env.schedule().candidates();
      const NodeId node = candidates[draws.below(candidates.size())];
      env.step(node.value);
      paper_device_features(env.schedule(), node, features);
      const auto observed = env.observation_as<float>(index);
      for (std::size_t i = 0; i < features.size(); ++i) {
        REQUIRE(static_cast<float>(features[i]) == observed[i]);
      }
      env.step(static_cast<std::int64_t>(env.model().max_nodes()) +
               static_cast<std::int64_t>(draws.below(model->n_devices())));
    }
  }
}

TEST_CASE("the start of the diamond's last node on each device is computed by hand") {
  // a on 0 [0, 1], b on 1: arrives 3, [3, 5], c on 0 [1, 4]. d on 0: b arrives at 6; on 1: c at 7.
  const auto model = std::make_shared<const PlacementModel>(testing::diamond());
  PartialSchedule schedule(model);
  schedule.place(NodeId{0}, DeviceId{0});
  schedule.place(NodeId{2}, DeviceId{0});
  schedule.place(NodeId{1}, DeviceId{1});
  std::vector<double> features(10);
  paper_device_features(schedule, NodeId{3}, features);
  for (double& x : features) x *= 8;  // time scale
  // Placed compute, predecessors' compute, their earliest start, their latest end, earliest start.
  CHECK(features == std::vector<double>{4, 3, 1, 4, 6, 2, 2, 3, 5, 7});
}

TEST_CASE("the teacher's tied choices are candidates, all of them and no others") {
  const auto teacher = critical_path_teacher();
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto model = drawn_model(seed);
    PartialSchedule schedule(model);
    teacher->begin(model, 0);
    Draws draws(seed);
    std::vector<NodeId> nodes;
    std::vector<DeviceId> devices;
    while (!schedule.complete()) {
      teacher->nodes(schedule, nodes);
      double largest = 0;
      for (NodeId node : schedule.candidates()) {
        largest = std::max(largest, model->levels().b_level[node.index()]);
      }
      std::set<NodeId> want;
      for (NodeId node : schedule.candidates()) {
        if (model->levels().b_level[node.index()] == largest) want.insert(node);
      }
      REQUIRE(std::set<NodeId>(nodes.begin(), nodes.end()) == want);
      REQUIRE(nodes.size() == want.size());

      const auto candidates = schedule.candidates();
      const NodeId node = candidates[draws.below(candidates.size())];
      teacher->devices(schedule, node, devices);
      double earliest = schedule.earliest_start(node, devices[0]);
      std::set<DeviceId> tied(devices.begin(), devices.end());
      for (std::size_t d = 0; d < model->n_devices(); ++d) {
        const DeviceId device{std::int64_t(d)};
        const double start = schedule.earliest_start(node, device);
        REQUIRE(start >= earliest);
        REQUIRE((start == earliest) == tied.contains(device));
      }
      schedule.place(node, devices[draws.below(devices.size())]);
    }
  }
}

TEST_CASE("recorded targets stand at the rows and devices of the teacher's choices") {
  Fixture f(named_model("published/ffnn"), kSmall, 8);
  const auto teacher = critical_path_teacher();
  PaperRollout rollout(f.task);
  PaperEpisode episode;
  rollout.run(f.weights, f.embedding, {.epsilon = 1, .seed = 4, .teacher = teacher.get()}, episode);
  const auto check_teacher = critical_path_teacher();
  check_teacher->begin(f.task->model, 0);
  PartialSchedule schedule(f.task->model);
  std::vector<NodeId> nodes;
  std::vector<DeviceId> devices;
  std::size_t k = 0;
  for (std::size_t step = 0; step < episode.node.size(); ++step) {
    check_teacher->nodes(schedule, nodes);
    if (k < episode.select_step.size() &&
        episode.select_step[k] == static_cast<std::int32_t>(step)) {
      double n_targets = 0;
      double n_candidates = 0;
      for (std::int32_t i = episode.select_first[k]; i < episode.select_first[k + 1]; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto is_row = [&](NodeId node) {
          return f.task->row_of_node[node.index()] == episode.select_row[at];
        };
        CHECK(static_cast<long>(episode.select_target[at]) == std::ranges::count_if(nodes, is_row));
        CHECK(static_cast<long>(episode.select_count[at]) ==
              std::ranges::count_if(schedule.candidates(), is_row));
        n_targets += episode.select_target[at];
        n_candidates += episode.select_count[at];
      }
      CHECK(n_targets == static_cast<double>(nodes.size()));
      CHECK(n_candidates == static_cast<double>(schedule.candidates().size()));
      ++k;
    }
    const NodeId node = episode.node[step];
    check_teacher->devices(schedule, node, devices);
    for (std::size_t d = 0; d < 4; ++d) {
      CHECK(static_cast<long>(episode.place_target[step * 4 + d]) ==
            std::ranges::count(devices, DeviceId(std::int64_t(d))));
    }
    schedule.place(node, episode.assignment[node]);
  }
  CHECK(k == episode.select_step.size());
}

TEST_CASE("path sums belong to the node that their path begins at, whatever the order of ids") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto model = drawn_model(seed);
    if (model->n_nodes() == 0) continue;
    const PaperTask task(model, 3);
    const auto n_classes = static_cast<std::int64_t>(task.plan.n_classes);
    const at::Tensor states =
        torch::arange(n_classes, torch::kFloat64).add(1).square().view({-1, 1});
    for (bool towards_end : {true, false}) {
      const PathPlan& paths = towards_end ? task.b_paths : task.t_paths;
      const at::Tensor sums = path_sums(states, std::make_shared<const PathPlan>(paths));
      for (std::size_t v = 0; v < model->n_nodes(); ++v) {
        const NodeId node{std::int64_t(v)};
        double want = 0;
        for (NodeId at :
             towards_end ? b_path(model->levels(), node) : t_path(model->levels(), node)) {
          want += states[task.plan.node_class[at.index()]].item<double>();
        }
        CHECK(sums[paths.of_node[v]].item<double>() == want);
      }
    }
  }
}

TEST_CASE("a single candidate has probability 1, and its gradient is a number") {
  const at::Tensor table = torch::tensor({{3.0, -7.0}}, torch::kFloat64).requires_grad_();
  auto alone = std::make_shared<Segments>();
  alone->first = {0, 1};
  alone->row = {0};
  alone->weight = {1};
  const at::Tensor y = standardised_rows(table, alone, torch::kFloat64);
  CHECK(torch::equal(y.detach(), torch::zeros({1, 2}, torch::kFloat64)));
  y.sum().backward();
  CHECK(table.grad().isfinite().all().item<bool>());

  Fixture f(std::make_shared<const PlacementModel>(testing::lone_node()), kSmall, 1);
  PaperRollout rollout(f.task);
  PartialSchedule schedule(f.task->model);
  rollout.begin(f.weights, f.embedding);
  rollout.score_candidates(schedule);
  REQUIRE(rollout.candidate_log_probabilities().size() == 1);
  CHECK(rollout.candidate_log_probabilities()[0] == 0);
  rollout.score_devices(schedule, NodeId{0});
  // Three equal devices.
  for (float x : rollout.device_log_probabilities()) CHECK(x == Approx(-std::log(3.0)));
}

}  // namespace
}  // namespace doppler
