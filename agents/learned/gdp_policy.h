// GDP for the trainer: the whole assignment at once, each node's device drawn from its softmax.
#pragma once

#include "agents/learned/gdp_rollout.h"
#include "agents/learned/reinforce_trainer.h"

namespace doppler {

struct GdpOptions {
  GdpSizes sizes = {};
  MessagePassingTime message_passing = MessagePassingTime::episode;
};

std::string gdp_kind(MessagePassingTime time);
MakeReinforcePolicy gdp_policy(const GdpOptions& options);

}  // namespace doppler
