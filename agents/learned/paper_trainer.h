// Training of DOPPLER as published: stage I imitates a teacher on the policies' own episodes,
// stage II learns from the simulator by REINFORCE (Williams, 1992) with a running mean as baseline.
#pragma once

#include <memory>
#include <string>

#include "agents/learned/paper_network.h"
#include "agents/training.h"

namespace doppler {

// The paper's numbers (section 5, appendix, and the authors' defaults).
struct PaperHyperparameters {
  PaperSizes sizes = {};
  std::string teacher = "critical-path";
  std::int64_t imitation_episodes = 2000;  // stage I
  std::int64_t simulator_episodes = 8000;  // stage II
  std::int64_t batch = 1;                  // episodes of one update
  double imitation_learning_rate = 1e-3;
  double imitation_epsilon = 1;  // share of uniform choices, falling linearly to 0
  double imitation_entropy_weight = 1e-3;
  double first_learning_rate = 1e-4;  // stage II, linearly to
  double last_learning_rate = 1e-7;
  double simulator_epsilon = 0.2;
  double simulator_entropy_weight = 1e-2;
  double discount = 0.99;
  double memory_penalty = 10;  // time scales that an assignment counts which does not fit
};

// What a policy file of this agent is called.
inline constexpr const char* kPaperPolicyKind = "doppler(preset=paper)";

// See Trainer. In stage I an episode is no evaluation; in stage II it is one. With
// options.max_evaluations M > 0 stage II has M episodes, and stage I's share of them stays.
std::unique_ptr<Trainer> make_paper_trainer(const PaperHyperparameters& hyperparameters,
                                            const TrainProblem& problem);

}  // namespace doppler
