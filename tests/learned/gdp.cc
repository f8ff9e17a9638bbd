// GDP's parts against its description, once more in plain float64 arithmetic, node by node.
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "agents/learned/gdp_policy.h"
#include "tests/env/diamond.h"
#include "tests/learned/gradient_check.h"
#include "tests/learned/small_tasks.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::model_of;
using Row = std::vector<double>;

constexpr GdpSizes kSmall{.hidden = 16, .wide = 32, .heads = 2, .segment = 4};

std::shared_ptr<GdpNetwork> network_of(const GdpTask& task, std::uint64_t seed,
                                       MessagePassingTime time = MessagePassingTime::episode) {
  const std::size_t n_devices = task.model->n_devices();
  auto network = std::make_shared<GdpNetwork>(
      kSmall, static_cast<std::int64_t>(task.n_features) + gdp_placement_features(time, n_devices),
      static_cast<std::int64_t>(n_devices), at::make_generator<at::CPUGeneratorImpl>(seed));
  // Biases and norms that do something.
  const torch::NoGradGuard no_gradient;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed + 1);
  for (const auto& item : network->named_parameters()) {
    if (item.value().dim() == 1) {
      item.value().add_(torch::empty_like(item.value()).normal_(0, 0.3, generator));
    }
  }
  return network;
}

Task drawn_task(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none};
}

// The network by its description, in float64; a node's features may change while it goes on.
class SlowGdp {
 public:
  SlowGdp(const GdpTask& task, GdpNetwork& network) : task_(task) {
    for (const auto& item : network.named_parameters()) {
      parameters_.insert(item.key(), item.value().detach().to(torch::kFloat64));
    }
    for (std::size_t v = 0; v < task.order.size(); ++v) {
      features_.emplace_back(
          task.features.begin() + static_cast<std::ptrdiff_t>(v * task.n_features),
          task.features.begin() + static_cast<std::ptrdiff_t>((v + 1) * task.n_features));
      features_.back().resize(static_cast<std::size_t>(network.n_features()), 0);
    }
  }

  void tell(std::size_t place, DeviceId device) {
    features_[place][task_.n_features + device.index()] = 1;
  }

  Row linear(const std::string& layer, const Row& in) {
    const at::Tensor weight = parameters_[layer + ".weight"];
    const at::Tensor bias = parameters_[layer + ".bias"];
    Row out;
    for (std::int64_t i = 0; i < weight.size(0); ++i) {
      double sum = bias[i].item<double>();
      for (std::int64_t j = 0; j < weight.size(1); ++j) {
        sum += weight[i][j].item<double>() * in[static_cast<std::size_t>(j)];
      }
      out.push_back(sum);
    }
    return out;
  }

  Row node(std::size_t v) {
    Row both = linear("project", features_[v]);
    Row largest(both.size(), 0);
    const Graph& graph = task_.model->task().graph;
    std::vector<NodeId> around;
    for (NodeId u : graph.predecessors(task_.order[v])) around.push_back(u);
    for (NodeId u : graph.successors(task_.order[v])) around.push_back(u);
    for (NodeId u : around) {
      const auto at = std::find(task_.order.begin(), task_.order.end(), u) - task_.order.begin();
      const Row sent =
          linear("neighbour", linear("project", features_[static_cast<std::size_t>(at)]));
      for (std::size_t j = 0; j < sent.size(); ++j) {
        largest[j] = std::max(largest[j], 1 / (1 + std::exp(-sent[j])));
      }
    }
    both.insert(both.end(), largest.begin(), largest.end());
    return linear("combine", both);
  }

  Row norm(Row x, const std::string& name) {
    double mean = 0;
    for (double value : x) mean += value / static_cast<double>(x.size());
    double variance = 0;
    for (double value : x) {
      variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    }
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto at = static_cast<std::int64_t>(j);
      x[j] = (x[j] - mean) / std::sqrt(variance + 1e-5) *
                 parameters_[name + "_weight"][at].item<double>() +
             parameters_[name + "_bias"][at].item<double>();
    }
    return x;
  }

  // y of one node of a segment that reads `read`.
  Row output(const Row& x, const std::vector<Row>& read) {
    const Row query = linear("query", x);
    const std::size_t width = query.size() / static_cast<std::size_t>(kSmall.heads);
    Row attended(query.size(), 0);
    for (std::size_t head = 0; head < static_cast<std::size_t>(kSmall.heads); ++head) {
      Row shares;
      double total = 0;
      for (const Row& row : read) {
        const Row key = linear("key", row);
        double dot = 0;
        for (std::size_t j = head * width; j < (head + 1) * width; ++j) dot += query[j] * key[j];
        shares.push_back(std::exp(dot / std::sqrt(static_cast<double>(width))));
        total += shares.back();
      }
      for (std::size_t k = 0; k < read.size(); ++k) {
        const Row value = linear("value", read[k]);
        for (std::size_t j = head * width; j < (head + 1) * width; ++j) {
          attended[j] += shares[k] / total * value[j];
        }
      }
    }
    Row z = linear("attended", attended);
    for (std::size_t j = 0; j < z.size(); ++j) z[j] += x[j];
    z = norm(z, "norm");
    Row wide = linear("wide", z);
    for (double& value : wide) value = std::max(value, 0.0);
    Row y = linear("narrow", wide);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += z[j];
    return norm(y, "last");
  }

  Row log_probabilities(const Row& y) {
    Row scores = linear("out", y);
    double total = 0;
    for (double score : scores) total += std::exp(score);
    for (double& score : scores) score -= std::log(total);
    return scores;
  }

 private:
  const GdpTask& task_;
  torch::OrderedDict<std::string, at::Tensor> parameters_;
  std::vector<Row> features_;
};

TEST_CASE("GraphSAGE takes the maximum of what the neighbours of both directions send") {
  // Two features, one hidden number by hand: h = f0 - f1 + 0.5 in every column.
  GdpNetwork network({.hidden = 16, .wide = 16, .heads = 1, .segment = 2}, 2, 2,
                     at::make_generator<at::CPUGeneratorImpl>(1));
  const torch::NoGradGuard no_gradient;
  for (const auto& item : network.named_parameters()) {
    const bool first = item.key() == "project.weight";
    if (first) {
      item.value().select(1, 0).fill_(1);
      item.value().select(1, 1).fill_(-1);
    } else if (item.key() == "project.bias") {
      item.value().fill_(0.5);
    } else if (item.key() == "neighbour.weight") {
      item.value().zero_().fill_diagonal_(2);
    } else if (item.key() == "neighbour.bias" || item.key() == "combine.bias") {
      item.value().fill_(-1);
    } else if (item.key() == "combine.weight") {
      item.value().zero_();
      item.value().narrow(1, 0, 16).fill_diagonal_(1);    // own
      item.value().narrow(1, 16, 16).fill_diagonal_(10);  // the maximum
    }
  }
  // Node 0 hears of 1 and 2, node 1 of nobody.
  const GdpRows rows{.features = torch::tensor({{1.0F, 0.0F}, {0.0F, 2.0F}, {3.0F, 1.0F}}),
                     .own = {0, 1},
                     .first = {0, 2, 2},
                     .neighbour = {1, 2}};
  const at::Tensor x = network.nodes(rows);
  const double sent = 1 / (1 + std::exp(-(2 * 2.5 - 1)));  // of node 2, the larger one
  CHECK(x[0][3].item<double>() == Approx(1.5 + 10 * sent - 1).epsilon(1e-6));
  CHECK(x[1][3].item<double>() == Approx(-1.5 - 1).epsilon(1e-6));
}

TEST_CASE("loops, LibTorch and the description give the same log-probabilities") {
  int n_checked = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto task = std::make_shared<const GdpTask>(model_of(drawn_task(seed)));
    const std::size_t n = task->order.size();
    const std::size_t n_devices = task->model->n_devices();
    if (n == 0 || n > 30 || n_devices > 8) continue;
    INFO("case " << seed);
    ++n_checked;
    const auto network = network_of(*task, seed);
    const GdpWeights weights = network->weights();
    SlowGdp slow(*task, *network);
    GdpRollout rollout(task, MessagePassingTime::episode);
    rollout.begin(weights);
    std::vector<float> logs;
    for (auto part = rollout.next_segment(); !part.empty(); part = rollout.next_segment()) {
      logs.insert(logs.end(), part.begin(), part.end());
    }
    REQUIRE(logs.size() == n * n_devices);

    std::vector<Row> outputs;
    for (std::size_t begin = 0; begin < n; begin += 4) {
      std::vector<Row> read(outputs.begin() + (begin == 0 ? 0 : std::ptrdiff_t(begin) - 4),
                            outputs.end());
      const std::size_t end = std::min(n, begin + 4);
      for (std::size_t v = begin; v < end; ++v) read.push_back(slow.node(v));
      for (std::size_t v = begin; v < end; ++v) outputs.push_back(slow.output(slow.node(v), read));
    }
    GdpRows rows{.features = torch::tensor(at::ArrayRef<float>(task->features))
                                 .view({-1, std::int64_t(task->n_features)}),
                 .own = {},
                 .first = task->first,
                 .neighbour = task->neighbour};
    for (std::size_t v = 0; v < n; ++v) rows.own.push_back(std::int64_t(v));
    const at::Tensor scores = network->scores(
        network->nodes(rows), torch::tensor(at::ArrayRef<float>(rollout.outputs())).view({-1, 16}),
        std::int64_t(n));
    const at::Tensor batch = torch::log_softmax(scores.to(torch::kFloat64), 1);
    for (std::size_t v = 0; v < n; ++v) {
      const Row want = slow.log_probabilities(outputs[v]);
      for (std::size_t d = 0; d < n_devices; ++d) {
        CHECK(logs[v * n_devices + d] == Approx(want[d]).margin(2e-5));
        CHECK(batch[std::int64_t(v)][std::int64_t(d)].item<double>() ==
              Approx(want[d]).margin(2e-5));
      }
    }
  }
  CHECK(n_checked >= 4);
}

TEST_CASE(
    "no gradient goes through what a segment remembers, and it is masked where there is none") {
  GdpNetwork network(kSmall, 5, 3, at::make_generator<at::CPUGeneratorImpl>(7));
  const std::int64_t length = 10;  // segments of 4, 4 and 2
  const at::Tensor x = torch::randn({2 * length, 16}).requires_grad_(true);
  const at::Tensor y = torch::randn({2 * length, 16}).requires_grad_(true);
  const at::Tensor scores = network.scores(x, y, length);
  REQUIRE(scores.sizes() == at::IntArrayRef({2 * length, 3}));
  // Of the first node of the second segment of the first sequence.
  const auto gradients = torch::autograd::grad({scores[4].square().sum()}, {x, y}, {}, true, false,
                                               /*allow_unused=*/true);
  const at::Tensor of_x = gradients[0].abs().sum(1);
  for (std::int64_t v = 0; v < 2 * length; ++v) {
    INFO("node " << v);
    CHECK((of_x[v].item<double>() > 0) == (v >= 4 && v < 8));
  }
  CHECK_FALSE(gradients[1].defined());
  // What is remembered matters, though: only that of the segment before.
  const torch::NoGradGuard no_gradient;
  for (std::int64_t changed = 0; changed < 2 * length; ++changed) {
    at::Tensor other = y.detach().clone();
    other[changed] += 1;
    const at::Tensor moved = (network.scores(x, other, length) - scores).abs().sum(1);
    for (std::int64_t v = 0; v < 2 * length; ++v) {
      const bool same_sequence = v / length == changed / length;
      const bool next_segment = v % length / 4 == changed % length / 4 + 1;
      INFO(changed << " changed, node " << v);
      CHECK((moved[v].item<double>() > 0) == (same_sequence && next_segment));
    }
  }
}

TEST_CASE("the gradient of gdp's loss is that of finite differences") {
  for (const auto time : {MessagePassingTime::episode, MessagePassingTime::step}) {
    const auto model = model_of(drawn_task(3));
    REQUIRE(model->n_nodes() > 6);
    const auto policy =
        gdp_policy({.sizes = kSmall, .message_passing = time})({model}, torch::kCPU, 4);
    testing::check_gradient(*policy, /*replays=*/false);  // no gradient through the memory
  }
}

TEST_CASE(
    "with messages each step, what was placed before a segment is told, and the gradient knows") {
  const auto task = std::make_shared<const GdpTask>(model_of(drawn_task(3)));
  const std::size_t n_devices = task->model->n_devices();
  const auto network = network_of(*task, 2, MessagePassingTime::step);
  const GdpWeights weights = network->weights();
  SlowGdp slow(*task, *network);
  GdpRollout rollout(task, MessagePassingTime::step);
  rollout.begin(weights);
  Draws draws(5);
  std::vector<Row> outputs;
  for (auto part = rollout.next_segment(); !part.empty(); part = rollout.next_segment()) {
    const std::size_t begin = rollout.segment_begin();
    std::vector<Row> read(outputs.begin() + (begin == 0 ? 0 : std::ptrdiff_t(begin) - 4),
                          outputs.end());
    const std::size_t n = part.size() / n_devices;
    for (std::size_t i = 0; i < n; ++i) read.push_back(slow.node(begin + i));
    for (std::size_t i = 0; i < n; ++i) {
      outputs.push_back(slow.output(slow.node(begin + i), read));
      const Row want = slow.log_probabilities(outputs.back());
      for (std::size_t d = 0; d < n_devices; ++d) {
        CHECK(part[i * n_devices + d] == Approx(want[d]).margin(2e-5));
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const DeviceId device(std::int64_t(draws.below(n_devices)));
      rollout.placed(begin + i, device);
      slow.tell(begin + i, device);
    }
  }
  CHECK(outputs.size() == task->order.size());
}

}  // namespace
}  // namespace doppler
