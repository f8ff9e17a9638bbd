#include "agents/learned/imitation.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace doppler {

namespace {

constexpr double kMeanDecay = 0.9;
constexpr double kSquareDecay = 0.999;
constexpr double kLeastRoot = 1e-8;

}  // namespace

double Imitation::update(DopplerNetwork& network, std::span<const ImitationExample> examples,
                         const Rates& rates) {
  std::map<std::size_t, std::vector<const Trajectory*>> by_task;
  for (const ImitationExample& example : examples) {
    by_task[example.task].push_back(example.trajectory);
  }
  const std::size_t n_latents = head_.size() / kRuleWeights - 1;
  Head head_gradient(head_.size(), 0.0);
  std::vector<LatentGradient> latent_gradients;
  double loss = 0;
  for (const auto& [index, trajectories] : by_task) {
    const ImitationTask& task = tasks_[index];
    const Latents latents = network.latents(*task.inputs);
    std::vector<RuleWeights> weights(task.n_nodes);
    write_node_weights(head_, latents, weights);
    std::vector<RuleWeights> gradient(task.n_nodes, RuleWeights{});
    const double share =
        -1 / static_cast<double>(task.n_nodes) / static_cast<double>(examples.size());
    for (const Trajectory* trajectory : trajectories) {
      const auto logs = task.gradient->run(weights, *trajectory, share, gradient);
      loss += share * (logs.select + logs.place);
    }
    LatentGradient item{.inputs = task.inputs,
                        .gradient = {.n_latents = n_latents,
                                     .select = std::vector<float>(task.n_nodes * n_latents),
                                     .place = std::vector<float>(task.n_nodes * n_latents)}};
    for (std::size_t v = 0; v < task.n_nodes; ++v) {
      for (std::size_t i = 0; i < kRuleWeights; ++i) {
        const double slope = gradient[v][i];
        const bool selects = i < kNodeFeatures;
        head_gradient[i] += slope;
        for (std::size_t k = 0; k < n_latents; ++k) {
          const std::size_t at = v * n_latents + k;
          const double z = selects ? latents.select[at] : latents.place[at];
          head_gradient[(k + 1) * kRuleWeights + i] += slope * z;
          float& target = selects ? item.gradient.select[at] : item.gradient.place[at];
          target += static_cast<float>(slope * head_[(k + 1) * kRuleWeights + i]);
        }
      }
    }
    latent_gradients.push_back(std::move(item));
  }
  if (!std::isfinite(loss)) {
    throw RunError("the imitation loss is not finite: training has diverged");
  }

  network.learn(latent_gradients, rates.network);
  mean_.resize(head_.size());
  square_.resize(head_.size());
  ++n_updates_;
  const double mean_share = 1 - std::pow(kMeanDecay, n_updates_);
  const double square_share = 1 - std::pow(kSquareDecay, n_updates_);
  for (std::size_t i = 0; i < head_.size(); ++i) {
    const double slope = head_gradient[i];
    mean_[i] += (1 - kMeanDecay) * (slope - mean_[i]);
    square_[i] += (1 - kSquareDecay) * (slope * slope - square_[i]);
    head_[i] -=
        rates.head * (mean_[i] / mean_share) / (std::sqrt(square_[i] / square_share) + kLeastRoot);
  }
  return loss;
}

nlohmann::json Imitation::state() const {
  return {{"head", head_}, {"mean", mean_}, {"square", square_}, {"updates", n_updates_}};
}

void Imitation::restore(const nlohmann::json& state) {
  head_ = state.at("head").get<Head>();
  mean_ = state.at("mean").get<Head>();
  square_ = state.at("square").get<Head>();
  n_updates_ = state.at("updates").get<std::int64_t>();
}

}  // namespace doppler
