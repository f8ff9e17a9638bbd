// Placeto for the trainer: goes over the nodes of a placement once, and sets each one's device.
#pragma once

#include <string>

#include "agents/learned/paper_task.h"
#include "agents/learned/placeto_rollout.h"
#include "agents/learned/reinforce_trainer.h"

namespace doppler {

struct PlacetoOptions {
  PlacetoSizes sizes = {};
  // Begins with a full placement, and each step is rewarded by its improvement, as in its paper;
  // otherwise with none, and the end is rewarded, as the DOPPLER authors ran it.
  bool refines = true;
  MessagePassingTime message_passing = MessagePassingTime::step;
};

std::string placeto_kind(const PlacetoOptions& options);
MakeReinforcePolicy placeto_policy(const PlacetoOptions& options);

}  // namespace doppler
