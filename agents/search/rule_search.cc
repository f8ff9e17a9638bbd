// Rule search: evolution over the 18 weights of the linear rule (linear_rule.h).
//
// A steady-state evolution strategy (Beyer, Schwefel, "Evolution Strategies: A Comprehensive
// Introduction", Natural Computing 1, 2002) that keeps the `parents` best weights of different
// makespan, at first those of the agent partner-list alone. Each evaluation makes one child: a
// parent, better ones more often; in a share of the cases crossed with a second one (each weight
// from either, or their mean); then mutated in all weights or in a few, by normal steps relative to
// each weight whose size is drawn for each child between 1 and exp(-2), so that no step size has
// to be learnt within a hundred evaluations. A child replaces the parent of its own makespan, so
// that weights drift where nothing depends on them, or else the worst parent if it is better.
//
// Children that decide an assignment that was measured before are drawn again, up to a limit: they
// would teach nothing. Those are not evaluations, for no engine is run.
#include <algorithm>
#include <cmath>

#include "agents/draws.h"
#include "agents/search/evaluations.h"
#include "agents/search/evolution.h"
#include "agents/search/linear_rule.h"
#include "agents/search/search.h"

namespace doppler {

namespace {

constexpr double kCrossShare = 0.7;
constexpr double kDenseShare = 0.3;  // of mutations that change all weights
constexpr double kStepRange = 2;     // step sizes are exp(-this) to 1
constexpr double kLeastScale = 0.4;  // a step is relative to the weight's size plus this
constexpr int kMaxRepeats = 30;      // children in a row that are drawn again

// Weights and what they come to.
struct Parent {
  RuleWeights weights = {};
  double makespan = 0;  // seconds
};

// The best weights so far, the best first; makespans are different.
class Parents {
 public:
  explicit Parents(std::size_t max_size) : max_size_(max_size) { parents_.reserve(max_size + 1); }

  void add(const RuleWeights& weights, double makespan) {
    const auto place = std::lower_bound(
        parents_.begin(), parents_.end(), makespan,
        [](const Parent& parent, double value) { return parent.makespan < value; });
    if (place != parents_.end() && place->makespan == makespan) {
      place->weights = weights;
      return;
    }
    parents_.insert(place, {weights, makespan});
    if (parents_.size() > max_size_) parents_.pop_back();
  }

  [[nodiscard]] RuleWeights child(Draws& draws) const {
    RuleWeights weights = draw(draws);
    if (parents_.size() > 1 && draws.uniform() < kCrossShare) {
      const RuleWeights& other = draw(draws);
      const bool mean = draws.below(2) == 0;
      for (std::size_t i = 0; i < kRuleWeights; ++i) {
        if (mean) {
          weights[i] = (weights[i] + other[i]) / 2;
        } else if (draws.below(2) == 0) {
          weights[i] = other[i];
        }
      }
    }
    mutate(weights, draws);
    return weights;
  }

 private:
  [[nodiscard]] const RuleWeights& draw(Draws& draws) const {
    const double u = draws.uniform();  // its square prefers the first
    return parents_[static_cast<std::size_t>(u * u * static_cast<double>(parents_.size()))].weights;
  }

  static void mutate(RuleWeights& weights, Draws& draws) {
    const double step = std::exp(-kStepRange * draws.uniform());
    double share = 1;  // of the weights that change: from one of them on average to all
    if (draws.uniform() >= kDenseShare) {
      share = std::pow(static_cast<double>(kRuleWeights), -draws.uniform());
    }
    bool changed = false;
    while (!changed) {
      for (double& weight : weights) {
        if (draws.uniform() >= share) continue;
        weight += step * (std::abs(weight) + kLeastScale) * normal(draws);
        changed = true;
      }
    }
  }

  std::size_t max_size_;
  std::vector<Parent> parents_;
};

class RuleSearch : public Agent {
 public:
  explicit RuleSearch(std::size_t n_parents) : n_parents_(n_parents) {}
  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    Evaluations evaluations(*model, options);
    LinearRule rule(model);
    Draws draws(options.seed);
    Parents parents(n_parents_);
    Measured measured;
    const auto measure = [&](const RuleWeights& weights, std::span<const DeviceId> assignment) {
      parents.add(weights, evaluations.run(assignment));
    };
    const RuleWeights first = partner_list_weights();
    const auto assignment = rule.decide(first);
    measured.add(assignment);
    measure(first, assignment);
    if (model->n_nodes() == 0 || model->n_devices() == 1) return evaluations.decision();

    int n_repeats = 0;
    while (evaluations.left()) {
      const RuleWeights weights = parents.child(draws);
      const auto decided = rule.decide(weights);
      n_repeats = measured.add(decided) ? 0 : n_repeats + 1;
      if (n_repeats > 0 && n_repeats <= kMaxRepeats) continue;
      n_repeats = 0;
      measure(weights, decided);
    }
    return evaluations.decision();
  }

 private:
  std::size_t n_parents_;
};

}  // namespace

AgentEntry rule_search_entry() {
  AgentEntry entry;
  entry.name = "rule-search";
  entry.summary = "evolution over the 18 weights of a linear select-and-place rule";
  entry.source = "own; Beyer, Schwefel, Natural Computing 1, 2002";
  entry.family = "search";
  entry.parameters = {{.name = "parents",
                       .summary = "weights of different makespan that are kept",
                       .default_value = std::int64_t{20},
                       .minimum = 1,
                       .maximum = 10000}};
  entry.make = [](const Parameters& parameters) {
    return std::make_unique<RuleSearch>(
        static_cast<std::size_t>(parameters.get<std::int64_t>("parents")));
  };
  return entry;
}

}  // namespace doppler
