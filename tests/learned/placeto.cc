// Placeto's parts against its description: by hand, node by node in float64, and its gradient.
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "agents/learned/placeto_policy.h"
#include "tests/env/diamond.h"
#include "tests/learned/gradient_check.h"
#include "tests/learned/small_tasks.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::model_of;
using testing::simple_model;
using Row = std::vector<double>;

constexpr PlacetoSizes kSmall{.width = 16, .head = 32, .rounds = 3};

Task drawn_task(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none};
}

// The network by its description. State: the features of every node.
class SlowPlaceto {
 public:
  SlowPlaceto(const PlacetoTask& task, const PlacetoNetwork& network) : task_(task) {
    for (const auto& item : network.named_parameters()) {
      parameters_.insert(item.key(), item.value().detach().to(torch::kFloat64));
    }
    features.resize(task.n_nodes(), Row(4 + task.model->n_devices(), 0));
    for (std::size_t v = 0; v < features.size(); ++v) {
      features[v][0] = task.costs[2 * v];
      features[v][1] = task.costs[2 * v + 1];
    }
  }

  Row linear(const std::string& layer, const Row& in) {
    const at::Tensor x = torch::tensor(at::ArrayRef<double>(in), torch::kFloat64);
    const at::Tensor y =
        (parameters_[layer + ".weight"].matmul(x) + parameters_[layer + ".bias"]).contiguous();
    return {y.const_data_ptr<double>(), y.const_data_ptr<double>() + y.numel()};
  }
  static Row relu(Row x) {
    for (double& value : x) value = std::max(value, 0.0);
    return x;
  }
  Row two(const std::string& name, const Row& x) {
    return linear(name + "_2", relu(linear(name + "_1", x)));
  }

  std::vector<Row> pass(const std::string& way) {
    std::vector<Row> own;
    for (const Row& row : features) own.push_back(two("own", row));
    std::vector<Row> states = own;
    for (std::int64_t round = 0; round < kSmall.rounds; ++round) {
      std::vector<Row> next = own;
      for (std::size_t v = 0; v < features.size(); ++v) {
        Row sum(16, 0);
        int n_heard = 0;
        for (std::size_t u = 0; u < features.size(); ++u) {
          if (!edge(way == "down" ? u : v, way == "down" ? v : u)) continue;
          ++n_heard;
          const Row sent = relu(two(way + "_message", states[u]));
          for (std::size_t j = 0; j < 16; ++j) sum[j] += sent[j];
        }
        if (n_heard == 0) continue;
        const Row heard = relu(two(way + "_update", sum));
        for (std::size_t j = 0; j < 16; ++j) next[v][j] += heard[j];
      }
      states = next;
    }
    return states;
  }

  Row log_probabilities(std::size_t v) {
    const std::vector<Row> down = pass("down");
    const std::vector<Row> up = pass("up");
    std::vector<Row> both = down;
    for (std::size_t u = 0; u < both.size(); ++u) {
      both[u].insert(both[u].end(), up[u].begin(), up[u].end());
    }
    Row seen;
    const std::vector<bool> before = reach(v, false);
    const std::vector<bool> after = reach(v, true);
    for (const std::string group : {"parents", "descendants", "parallel"}) {
      Row mean(32, 0);
      double n = 0;
      for (std::size_t u = 0; u < both.size(); ++u) {
        const bool in = group == "parents"       ? before[u]
                        : group == "descendants" ? after[u]
                                                 : !before[u] && !after[u] && u != v;
        if (!in) continue;
        ++n;
        const Row sent = relu(linear(group + "_before", both[u]));
        for (std::size_t j = 0; j < 32; ++j) mean[j] += sent[j];
      }
      for (double& x : mean) x = n > 0 ? x / n : 0;
      const Row out = relu(linear(group + "_after", mean));
      seen.insert(seen.end(), out.begin(), out.end());
    }
    seen.insert(seen.end(), both[v].begin(), both[v].end());
    Row scores = linear("out", relu(linear("head", seen)));
    double total = 0;
    for (double score : scores) total += std::exp(score);
    for (double& score : scores) score -= std::log(total);
    return scores;
  }

  std::vector<Row> features;

 private:
  bool edge(std::size_t u, std::size_t v) const {
    for (NodeId reader : task_.model->task().graph.successors(task_.order[u])) {
      if (reader == task_.order[v]) return true;
    }
    return false;
  }
  // By depth-first search over the graph's edges.
  std::vector<bool> reach(std::size_t v, bool forward) const {
    std::vector<bool> found(features.size(), false);
    std::vector<std::size_t> open = {v};
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (std::size_t u = 0; u < features.size(); ++u) {
        if (found[u] || !(forward ? edge(at, u) : edge(u, at))) continue;
        found[u] = true;
        open.push_back(u);
      }
    }
    return found;
  }

  const PlacetoTask& task_;
  torch::OrderedDict<std::string, at::Tensor> parameters_;
};

TEST_CASE("a step of messages down and up a chain, by hand") {
  // a -> b -> c. All layers are the identity (on non-negative numbers), but the features' first
  // layer passes the compute on, and messages down are doubled.
  const auto task = std::make_shared<const PlacetoTask>(simple_model(3, 1, true, 2));
  REQUIRE(task->order == std::vector<NodeId>{NodeId(0), NodeId(1), NodeId(2)});
  PlacetoNetwork network({.width = 16, .head = 32, .rounds = 2}, 2,
                         at::make_generator<at::CPUGeneratorImpl>(1));
  const torch::NoGradGuard no_gradient;
  for (const auto& item : network.named_parameters()) {
    item.value().zero_();
    if (item.value().dim() == 2) item.value().fill_diagonal_(1);
    if (item.key() == "down_message_1.weight") item.value().mul_(2);
    if (item.key() == "up_update_2.bias") item.value().fill_(1);
  }
  at::Tensor features = torch::zeros({3, 1, 6});
  features[0][0][0] = 1;
  features[1][0][0] = 10;
  features[2][0][0] = 100;
  const at::Tensor h = network.embed(features, task);
  const auto down = [&](int v) { return h[v][0][0].item<double>(); };
  const auto up = [&](int v) { return h[v][0][16].item<double>(); };
  // Down: x1(b) = 10 + 2 a, x1(c) = 100 + 2 b; x2(c) = 100 + 2 x1(b).
  CHECK(down(0) == 1);
  CHECK(down(1) == 10 + 2 * 1);
  CHECK(down(2) == 100 + 2 * (10 + 2 * 1));
  // Up: a node without readers hears nothing; the others' updates add 1.
  CHECK(up(2) == 100);
  CHECK(up(1) == 10 + 100 + 1);
  CHECK(up(0) == 1 + (10 + 100 + 1) + 1);
}

TEST_CASE("groups are what reaches a node, what it reaches, and the rest") {
  const auto task = std::make_shared<const PlacetoTask>(model_of(testing::diamond()));
  const std::size_t n = task->n_nodes();
  for (std::size_t v = 0; v < n; ++v) {
    const GroupShares shares = group_shares(*task, {std::int64_t(v)});
    for (std::size_t u = 0; u < n; ++u) {
      const bool up = task->reaches(u, v);
      const bool down = task->reaches(v, u);
      CHECK_FALSE((up && down));
      CHECK((shares[0][0][std::int64_t(u)].item<float>() > 0) == up);
      CHECK((shares[1][0][std::int64_t(u)].item<float>() > 0) == down);
      CHECK((shares[2][0][std::int64_t(u)].item<float>() > 0) == (u != v && !up && !down));
    }
    for (const at::Tensor& share : shares) {
      const double sum = share.sum().item<double>();
      CHECK((sum == 0 || sum == Approx(1)));
    }
  }
}

TEST_CASE("what the loops update from step to step is what all messages passed anew give") {
  int n_checked = 0;
  for (std::uint64_t seed = 0; seed < 14; ++seed) {
    const auto task = std::make_shared<const PlacetoTask>(model_of(drawn_task(seed)));
    const std::size_t n = task->n_nodes();
    const std::size_t n_devices = task->model->n_devices();
    if (n == 0 || n > 16 || n_devices > 6) continue;
    ++n_checked;
    for (const bool refines : {true, false}) {
      INFO("case " << seed << (refines ? ", refining" : ""));
      PlacetoNetwork network(kSmall, std::int64_t(n_devices),
                             at::make_generator<at::CPUGeneratorImpl>(seed));
      const torch::NoGradGuard no_gradient;
      const PlacetoWeights weights = network.weights();
      PlacetoRollout rollout(task);
      SlowPlaceto slow(*task, network);
      rollout.begin(weights, refines ? &task->start : nullptr);
      if (refines) {
        for (std::size_t v = 0; v < n; ++v) {
          slow.features[v][4 + task->start[task->order[v]].index()] = 1;
        }
      }
      const Row untouched = slow.log_probabilities(n - 1);
      const auto first = rollout.score(n - 1);
      for (std::size_t d = 0; d < n_devices; ++d) {
        CHECK(first[d] == Approx(untouched[d]).margin(1e-4));
      }
      Draws draws(seed);
      for (std::size_t v = 0; v < n; ++v) {
        rollout.visit(v);
        rollout.update();
        slow.features[v][2] = 1;
        const Row want = slow.log_probabilities(v);
        const auto got = rollout.score(v);
        for (std::size_t d = 0; d < n_devices; ++d) {
          CHECK(got[d] == Approx(want[d]).margin(1e-4));
        }
        // As LibTorch has it.
        std::vector<float> values;
        for (const Row& row : slow.features) values.insert(values.end(), row.begin(), row.end());
        const at::Tensor h = network.embed(
            torch::tensor(at::ArrayRef<float>(values)).view({std::int64_t(n), 1, -1}), task);
        const at::Tensor batch = torch::log_softmax(
            network.scores(h, {std::int64_t(v)}, group_shares(*task, {std::int64_t(v)})), 1);
        for (std::size_t d = 0; d < n_devices; ++d) {
          CHECK(batch[0][std::int64_t(d)].item<double>() == Approx(want[d]).margin(1e-4));
        }
        const std::size_t device = draws.below(n_devices);
        rollout.placed(v, DeviceId(std::int64_t(device)));
        for (std::size_t d = 0; d < n_devices; ++d) slow.features[v][4 + d] = d == device ? 1 : 0;
        slow.features[v][2] = 0;
        slow.features[v][3] = 1;
      }
    }
  }
  CHECK(n_checked >= 4);
}

TEST_CASE("the gradient of placeto's loss is that of finite differences") {
  const auto model = model_of(drawn_task(3));
  for (const bool refines : {true, false}) {
    for (const auto time : {MessagePassingTime::episode, MessagePassingTime::step}) {
      const auto policy = placeto_policy(
          {.sizes = kSmall, .refines = refines, .message_passing = time})({model}, torch::kCPU, 4);
      testing::check_gradient(*policy);
    }
  }
}

TEST_CASE("the loss counts the log-probabilities that the episode was drawn by") {
  const auto model = model_of(drawn_task(3));
  const auto policy = placeto_policy({.sizes = kSmall})({model}, torch::kCPU, 4);
  ThreadPool pool(1);
  policy->begin({.task = 0, .n_episodes = 1, .pool = &pool});
  PolicyEpisode episode;
  policy->play({.seed = 3}, 0, 0, episode);
  REQUIRE(episode.n_steps == model->n_nodes());
  const PlacetoTask task(model);
  CHECK(episode.start == task.start);
  CHECK(episode.order == task.order);
  const auto network = std::dynamic_pointer_cast<PlacetoNetwork>(policy->traits().parts[0].module);
  const PlacetoWeights weights = network->weights();
  const auto shared = std::make_shared<const PlacetoTask>(model);
  PlacetoRollout rollout(shared);
  rollout.begin(weights, &shared->start);
  double sum = 0;
  for (std::size_t v = 0; v < task.n_nodes(); ++v) {
    rollout.visit(v);
    rollout.update();
    const DeviceId device = episode.assignment[task.order[v]];
    sum += rollout.score(v)[device.index()];
    rollout.placed(v, device);
  }
  const PartGradient gradient =
      policy->gradient({.weights = std::vector<double>(task.n_nodes(), 1), .n_episodes = 1});
  CHECK(gradient.loss == Approx(-sum).epsilon(1e-4));
}

}  // namespace
}  // namespace doppler
