// A policy that REINFORCE trains as an agent: with a policy file it decides greedily, and what
// evaluations are left train it further; without one all of them do.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agents/agent.h"
#include "agents/learned/reinforce_trainer.h"

namespace doppler {

struct ReinforceSetup {
  MakeReinforcePolicy make;
  ReinforceOptions training = {};
  std::string kind;              // of its policy files
  std::string policy_path = {};  // as the user named it; empty: from nothing
  std::string policy = {};       // its content
};

// Fills the numbers that the parameters have (teacher, imitation_episodes, episodes, batch,
// learning_rate, entropy_weight) into `training`, and reads the policy file that they name. Throws
// RunError if it is not there, ParseError if it is of another kind.
void read_parameters(const Parameters& parameters, ReinforceSetup& setup);

using DecisionInstant = std::chrono::steady_clock::time_point;
// The better of `first`, which a policy decided and measured in one evaluation, and what training
// comes to with the evaluations that are left. Without a policy `first` is empty, and training
// begins with stage I. `begin`: when the decision began.
Decision decide_by_training(const ReinforceSetup& setup, Decision first,
                            const std::shared_ptr<const PlacementModel>& model,
                            const AssignOptions& options, DecisionInstant begin);

std::unique_ptr<Agent> make_reinforce_agent(ReinforceSetup setup);
// Begins with the setup's policy unless the problem has one.
std::unique_ptr<Trainer> make_setup_trainer(const ReinforceSetup& setup,
                                            const TrainProblem& problem);

}  // namespace doppler
