// The policy over pairs of a node and a device, for the trainer.
#pragma once

#include <string>

#include "agents/learned/joint_network.h"
#include "agents/learned/reinforce_trainer.h"

namespace doppler {

struct JointOptions {
  PaperSizes sizes = {};
  MessagePassingTime message_passing = MessagePassingTime::episode;
};

std::string joint_kind(MessagePassingTime time);
MakeReinforcePolicy joint_policy(const JointOptions& options);

}  // namespace doppler
