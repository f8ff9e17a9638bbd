// DOPPLER's two policies as published, for the trainer: Yao et al., DOPPLER, 2025.
#pragma once

#include <memory>
#include <string>

#include "agents/learned/paper_network.h"
#include "agents/learned/reinforce_trainer.h"

namespace doppler {

struct PaperOptions {
  PaperSizes sizes = {};
  PaperHalves halves = PaperHalves::both;
  MessagePassingTime message_passing = MessagePassingTime::episode;
  ReinforceOptions training = {};
};

// What a policy file is called.
std::string paper_policy_kind(PaperHalves halves,
                              MessagePassingTime time = MessagePassingTime::episode);
inline constexpr const char* kPaperPolicyKind = "doppler(preset=paper)";
// The parts of the policy.
PolicyTraits paper_traits(const PaperNetwork& network);

MakeReinforcePolicy paper_policy(const PaperOptions& options);
std::unique_ptr<Trainer> make_paper_trainer(const PaperOptions& options,
                                            const TrainProblem& problem);

}  // namespace doppler
