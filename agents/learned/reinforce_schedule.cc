#include "agents/learned/reinforce_schedule.h"

#include <algorithm>
#include <cmath>

namespace doppler {

std::vector<StagePlan> stages_of(const ReinforceOptions& numbers, const TrainOptions& options,
                                 std::int64_t evaluations_of_episode, std::int64_t n_tasks) {
  std::vector<StagePlan> stages;
  const bool simulates = std::ranges::count(options.stages, 2) > 0;
  const std::int64_t most = options.max_evaluations / evaluations_of_episode;
  for (int stage : options.stages) {
    if (stage == 3) {
      const std::int64_t n = std::min(numbers.engine_episodes,
                                      (options.max_executions - n_tasks) / evaluations_of_episode);
      if (n > 0) stages.push_back({stage, n});
      continue;
    }
    std::int64_t n = stage == 1 ? numbers.imitation_episodes : numbers.simulator_episodes;
    if (simulates && options.max_evaluations > 0 && most < numbers.simulator_episodes) {
      const double share = std::min(1.0, static_cast<double>(options.max_evaluations) /
                                             static_cast<double>(numbers.simulator_episodes));
      n = stage == 2 ? most : std::llround(share * static_cast<double>(n));
    }
    if (n > 0) stages.push_back({stage, n});
  }
  return stages;
}

void fill_rates(const ReinforceOptions& numbers, const StagePlan& stage, UpdatePlan& plan) {
  // 0 in the first update, 1 in the last.
  const std::int64_t n_updates = (stage.n_episodes + numbers.batch - 1) / numbers.batch;
  const double at = n_updates < 2 ? 1
                                  : static_cast<double>(plan.first_episode / numbers.batch) /
                                        static_cast<double>(n_updates - 1);
  if (stage.stage == 1) {
    plan.epsilon = numbers.imitation_epsilon * (1 - at);
    plan.learning_rate = numbers.imitation_learning_rate;
    plan.entropy_weight = numbers.imitation_entropy_weight;
  } else {
    plan.epsilon = numbers.simulator_epsilon * (1 - at);
    plan.learning_rate = numbers.first_learning_rate +
                         (numbers.last_learning_rate - numbers.first_learning_rate) * at;
    plan.entropy_weight = numbers.simulator_entropy_weight;
  }
}

void add_numbers(const ReinforceOptions& numbers, Hasher& hasher) {
  for (double x : {numbers.imitation_learning_rate, numbers.imitation_epsilon,
                   numbers.imitation_entropy_weight, numbers.first_learning_rate,
                   numbers.last_learning_rate, numbers.simulator_epsilon,
                   numbers.simulator_entropy_weight, numbers.discount, numbers.memory_penalty}) {
    hasher.add(x);
  }
}

std::vector<double> end_advantages(std::size_t n_steps, double reward, double baseline,
                                   double discount) {
  std::vector<double> advantages(n_steps);
  double worth = reward;
  for (std::size_t step = n_steps; step-- > 0;) {
    advantages[step] = worth - baseline;
    worth *= discount;
  }
  return advantages;
}

std::vector<double> refining_returns(std::span<const double> costs, double discount) {
  std::vector<double> returns(costs.size() - 1);
  double later = 0;
  for (std::size_t step = returns.size(); step-- > 0;) {
    later = costs[step] - costs[step + 1] + discount * later;
    returns[step] = later;
  }
  return returns;
}

}  // namespace doppler
