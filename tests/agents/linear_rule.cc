// The linear rule against slow recomputations, and the search over its weights.
#include "agents/search/linear_rule.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "agents/agent.h"
#include "agents/draws.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;

constexpr const char* kPublished[] = {"published/chainmm",       "published/ffnn",
                                      "published/llama-block",   "published/llama-layer",
                                      "published/llama-block-8", "published/llama-layer-8"};

std::shared_ptr<const PlacementModel> model_of(std::uint64_t seed) {
  RandomCase drawn = random_case(seed);
  return std::make_shared<const PlacementModel>(Task{.name = "drawn",
                                                     .graph = drawn.graph,
                                                     .cluster = drawn.cluster,
                                                     .cost_model = drawn.cost_model,
                                                     .options = drawn.options});
}

RuleWeights random_weights(Draws& draws) {
  RuleWeights weights;
  for (double& weight : weights) weight = 2 * draws.uniform() - 1;
  return weights;
}

// Mean 0 and variance 1, by the textbook; 0 if all are equal but for rounding.
std::vector<double> standardised(std::vector<double> values) {
  const double n = static_cast<double>(values.size());
  double mean = 0;
  for (double value : values) mean += value / n;
  double variance = 0;
  for (double value : values) variance += (value - mean) * (value - mean) / n;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const bool all_equal = *most - *least <= 1e-12 * *most;
  for (double& value : values) value = all_equal ? 0 : (value - mean) / std::sqrt(variance);
  return values;
}

// Everything from the graph and the schedule's starts and ends, feature by feature.
class SlowFeatures {
 public:
  SlowFeatures(const PlacementModel& model, const PartialSchedule& schedule)
      : model_(model), graph_(model.task().graph), schedule_(schedule) {}

  std::vector<double> node(NodeId node) const {
    const Levels all = levels(graph_, model_.costs());
    const Levels computes = levels(graph_, model_.costs(), {.compute_only = true});
    std::vector<double> compute;
    std::vector<double> output;
    std::vector<double> readers;
    for (std::size_t v = 0; v < model_.n_nodes(); ++v) {
      compute.push_back(model_.costs().mean[v]);
      output.push_back(own_output(NodeId(std::int64_t(v))));
      readers.push_back(double(graph_.successors(NodeId(std::int64_t(v))).size()));
    }
    double ready = 0;
    for (NodeId p : graph_.predecessors(node)) ready = std::max(ready, schedule_.end(p));
    double n_partners = 0;
    double n_placed = 0;
    for (NodeId consumer : graph_.successors(node)) {
      for (NodeId partner : graph_.predecessors(consumer)) {
        n_partners += partner != node;
        n_placed += partner != node && schedule_.placed(partner);
      }
    }
    const std::size_t v = node.index();
    return {standardised(all.b_level)[v], standardised(computes.b_level)[v],
            standardised(all.t_level)[v], standardised(compute)[v],
            standardised(output)[v],      standardised(readers)[v],
            ready / model_.time_scale(),  n_partners == 0 ? 0 : n_placed / n_partners};
  }

  std::vector<double> device(NodeId node, DeviceId device) const {
    double ready = 0;
    double incoming = 0;
    std::set<TensorId> read;
    bool producer_here = false;
    for (EdgeId e : graph_.in_edges(node)) {
      const NodeId producer = graph_.edge(e).producer;
      producer_here |= schedule_.device(producer) == device;
      if (!read.insert(graph_.edge_tensor(e)).second) continue;
      const double seconds =
          model_.transfer(graph_.edge_bytes(e), schedule_.device(producer), device);
      ready = std::max(ready, schedule_.end(producer) + seconds);
      incoming += seconds;
    }
    double partner_transfer = 0;
    bool partner_here = false;
    std::set<TensorId> sent;
    for (NodeId consumer : graph_.successors(node)) {
      for (EdgeId e : graph_.in_edges(consumer)) {
        const NodeId partner = graph_.edge(e).producer;
        if (partner == node || schedule_.device(partner) != device) continue;
        partner_here = true;
        if (!sent.insert(graph_.edge_tensor(e)).second) continue;
        partner_transfer += model_.costs().mean_transfer(graph_.edge_bytes(e));
      }
    }
    double load = 0;
    double sibling_compute = 0;
    double makespan = 0;
    for (std::size_t v = 0; v < model_.n_nodes(); ++v) {
      const NodeId other{std::int64_t(v)};
      makespan = std::max(makespan, schedule_.end(other));
      if (schedule_.device(other) != device) continue;
      load += model_.costs().compute(other, device);
      const auto theirs = graph_.predecessors(other);
      const auto ours = graph_.predecessors(node);
      const bool sibling = std::any_of(ours.begin(), ours.end(), [&](NodeId p) {
        return std::find(theirs.begin(), theirs.end(), p) != theirs.end();
      });
      if (sibling) sibling_compute += model_.costs().compute(other, device);
    }
    const double free = schedule_.device_free(device);
    const double compute = model_.costs().compute(node, device);
    const double start = std::max(free, ready);
    return {start,
            free,
            ready,
            incoming,
            load,
            partner_transfer,
            partner_here ? own_output(node) : 0,
            producer_here ? compute : 0,
            sibling_compute,
            std::max(0.0, start + compute - makespan)};
  }

 private:
  double own_output(NodeId node) const {
    double seconds = 0;
    for (const Tensor& tensor : graph_.node(node).outputs) {
      seconds += model_.costs().mean_transfer(tensor.bytes);
    }
    return seconds;
  }

  const PlacementModel& model_;
  const Graph& graph_;
  const PartialSchedule& schedule_;
};

TEST_CASE("the features of the linear rule are what a slow recomputation gives") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const auto model = model_of(seed);
    RuleFeatures features(model);
    PartialSchedule schedule(model);
    const SlowFeatures slow(*model, schedule);
    Draws draws(seed);
    INFO("case " << seed);
    features.begin();
    while (!schedule.complete()) {
      const auto candidates = schedule.candidates();
      const NodeId node = candidates[draws.below(candidates.size())];
      std::array<double, kNodeFeatures> of_node;
      features.write_node(schedule, node, of_node);
      const auto expected = slow.node(node);
      for (std::size_t i = 0; i < kNodeFeatures; ++i) {
        INFO("node feature " << i);
        REQUIRE(of_node[i] == Approx(expected[i]).epsilon(1e-9).margin(1e-9));
      }
      const std::size_t n_devices = model->n_devices();
      std::vector<double> of_devices(kDeviceFeatures * n_devices, -1);
      features.write_devices(schedule, node, of_devices);
      for (std::size_t d = 0; d < n_devices; ++d) {
        const auto expected_device = slow.device(node, DeviceId(std::int64_t(d)));
        for (std::size_t i = 0; i < kDeviceFeatures; ++i) {
          INFO("device feature " << i);
          REQUIRE(of_devices[i * n_devices + d] ==
                  Approx(expected_device[i]).epsilon(1e-9).margin(1e-9));
        }
      }
      schedule.place(node, DeviceId(std::int64_t(draws.below(n_devices))));
      features.placed(node);
    }
  }
}

TEST_CASE("the linear rule takes the largest score and the least cost at every step") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const auto model = model_of(seed);
    Draws draws(seed);
    const RuleWeights weights = random_weights(draws);
    std::vector<std::size_t> rank(model->n_nodes());
    std::size_t next = 0;
    for (NodeId node : model->b_level_order()) rank[node.index()] = next++;
    RuleFeatures features(model);
    LinearRule rule(model);
    PartialSchedule schedule(model);
    features.begin();
    rule.begin(weights, schedule);
    INFO("case " << seed);
    while (!schedule.complete()) {
      const auto score = [&](NodeId node) {
        std::array<double, kNodeFeatures> values;
        features.write_node(schedule, node, values);
        double sum = 0;
        for (std::size_t i = 0; i < kNodeFeatures; ++i) sum += weights[i] * values[i];
        return sum;
      };
      NodeId first = schedule.candidates().front();
      for (NodeId other : schedule.candidates()) {
        if (score(other) > score(first) ||
            (score(other) == score(first) && rank[other.index()] < rank[first.index()])) {
          first = other;
        }
      }
      REQUIRE(rule.select() == first);
      const std::size_t n_devices = model->n_devices();
      std::vector<double> values(kDeviceFeatures * n_devices);
      features.write_devices(schedule, first, values);
      const auto cost = [&](std::size_t d) {
        double sum = 0;
        for (std::size_t i = 0; i < kDeviceFeatures; ++i) {
          sum += weights[kNodeFeatures + i] * values[i * n_devices + d];
        }
        return sum;
      };
      std::size_t device = 0;
      for (std::size_t d = 1; d < n_devices; ++d) {
        if (cost(d) < cost(device)) device = d;
      }
      REQUIRE(rule.place(schedule, first).index() == device);
      schedule.place(first, DeviceId(std::int64_t(device)));
      features.placed(first);
      rule.placed(schedule, first);
    }
    const auto decided = rule.decide(weights);
    REQUIRE(Assignment({decided.begin(), decided.end()}) == schedule.assignment());
  }
}

TEST_CASE("with the weights of partner-list the linear rule is partner-list") {
  const auto check = [](const std::shared_ptr<const PlacementModel>& model) {
    LinearRule rule(model);
    const auto decided = rule.decide(partner_list_weights());
    REQUIRE(Assignment({decided.begin(), decided.end()}) ==
            make_agent("partner-list")->decide(model, {}).assignment);
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("case " << seed);
    check(model_of(seed));
  }
  for (const char* task : kPublished) {
    INFO(task);
    check(std::make_shared<const PlacementModel>(make_task(task)));
  }
}

TEST_CASE("rule search is as good as is known on the published graphs after 1,000 evaluations") {
  constexpr double kKnown[] = {1200.07, 56.6958, 166.765, 122.656, 166.883, 173.880};
  for (std::size_t i = 0; i < std::size(kPublished); ++i) {
    INFO(kPublished[i]);
    const Task task = make_task(kPublished[i]);
    std::vector<double> makespans;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const AssignResult result =
          assign(*make_agent("rule-search"), task, {.seed = seed, .max_evaluations = 1000});
      makespans.push_back(result.makespan / 1e10);
    }
    std::sort(makespans.begin(), makespans.end());
    // The known values are rounded to six digits.
    CHECK(makespans[2] <= kKnown[i] * (1 + 5e-6));
  }
}

TEST_CASE("rule search starts with partner-list and never gets worse") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto model = model_of(seed);
    INFO("case " << seed);
    const double before = assign(*make_agent("partner-list"), model->task()).makespan;
    const auto agent = make_agent("rule-search");
    CHECK(assign(*agent, model->task(), {.max_evaluations = 1}).makespan == before);
    CHECK(assign(*agent, model->task(), {.max_evaluations = 40}).makespan <= before);
  }
}

}  // namespace
}  // namespace doppler
