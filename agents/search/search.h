// The agents that search with runs of the simulator, or by enumeration. Each has a file of its own
// name.
#pragma once

#include "agents/agent.h"

namespace doppler {

AgentEntry annealing_entry();
AgentEntry enumerative_entry();
AgentEntry local_search_entry();
AgentEntry rule_search_entry();

// The parameter `start` of searches that improve an assignment, and the agent that it names: its
// assignment costs one evaluation, as any other.
ParameterSpec start_parameter();
// The parameter `moves` that the agents which walk share; see parse_move_kinds().
ParameterSpec moves_parameter();

}  // namespace doppler
