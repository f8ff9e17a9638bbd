// The course of a run by REINFORCE: its stages, and what each update does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agents/training.h"
#include "graphs/hash.h"

namespace doppler {

// The numbers of doppler(preset=paper): section 5, appendix, and the authors' defaults.
struct ReinforceOptions {
  std::string teacher = "critical-path";
  std::int64_t imitation_episodes = 2000;  // stage I
  std::int64_t simulator_episodes = 8000;  // stage II
  std::int64_t engine_episodes = 4000;     // stage III
  std::int64_t batch = 1;                  // episodes of one update
  double imitation_learning_rate = 1e-3;
  double imitation_epsilon = 1;  // share of uniform choices, falling linearly to 0
  double imitation_entropy_weight = 1e-3;
  double first_learning_rate = 1e-4;  // stages II and III, linearly to
  double last_learning_rate = 1e-7;
  double simulator_epsilon = 0.2;
  double simulator_entropy_weight = 1e-2;
  double discount = 0.99;
  double memory_penalty = 10;  // time scales that an assignment counts which does not fit
};

struct StagePlan {
  int stage = 0;
  std::int64_t n_episodes = 0;
};

// One update: which episodes, and how they act and teach.
struct UpdatePlan {
  int stage = 0;
  std::int64_t first_episode = 0;  // of the stage
  std::size_t n_episodes = 0;
  std::size_t task = 0;
  double epsilon = 0;
  double learning_rate = 0;
  double entropy_weight = 0;
};

// The stages of a run. An episode of stage II takes so many evaluations, one of stage III as many
// executions. Where the budget does not allow all of stage II, that shrinks to what it allows, and
// stage I to as large a share as the evaluations are of the episodes of stage II; stage III shrinks
// to its own budget, of which one execution a task goes to what it starts from. Stages without
// episodes are left out.
std::vector<StagePlan> stages_of(const ReinforceOptions& numbers, const TrainOptions& options,
                                 std::int64_t evaluations_of_episode, std::int64_t n_tasks);

// Fills rates, epsilon and weight for an update that begins with `first_episode` of the stage.
void fill_rates(const ReinforceOptions& numbers, const StagePlan& stage, UpdatePlan& plan);

// What of the options two runs must share for one to continue the other, after `teacher`.
void add_numbers(const ReinforceOptions& numbers, Hasher& hasher);

// What each step of an episode is worth, less the baseline, whose reward comes with the last step.
std::vector<double> end_advantages(std::size_t n_steps, double reward, double baseline,
                                   double discount);
// What each step of a refinement is worth: its reward is by how much the cost falls. `costs`: of
// where it begins and after each step.
std::vector<double> refining_returns(std::span<const double> costs, double discount);

}  // namespace doppler
