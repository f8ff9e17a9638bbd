// The heuristics: agents that know a rule and learn nothing. Each has a file of its own name.
#pragma once

#include "agents/agent.h"

namespace doppler {

AgentEntry critical_path_entry();
AgentEntry heft_entry();
AgentEntry m_etf_entry();
AgentEntry partner_list_entry();
AgentEntry random_entry();
AgentEntry round_robin_entry();
AgentEntry single_device_entry();

}  // namespace doppler
