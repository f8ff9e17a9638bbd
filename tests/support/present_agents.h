// The registered agents that this build can make.
#pragma once

#include <vector>

#include "agents/agent.h"

namespace doppler::testing {

// In the order of their names. For each agent that is registered but cannot be made (a learned
// agent without LibTorch) a Catch2 warning says what is skipped and why.
std::vector<AgentEntry> present_agents();

}  // namespace doppler::testing
