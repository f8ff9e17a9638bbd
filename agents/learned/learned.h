// What the learned agents offer to the module's border, and what they need of the program.
#pragma once

#include <memory>
#include <string_view>

#include "agents/learned_module.h"

namespace doppler {

// Of an agent in agents/learned_agents.cc, with parameters of its schema there.
std::unique_ptr<Agent> make_learned_agent(std::string_view name, const Parameters& parameters);
std::unique_ptr<Trainer> make_learned_trainer(std::string_view name, const Parameters& parameters,
                                              const TrainProblem& problem);

// Before the first agent. Not thread safe.
void set_learned_host(const LearnedHost& host);
// An agent of the program's registry; of this library's own before set_learned_host().
std::unique_ptr<Agent> make_host_agent(std::string_view spelling);

// By the name of the agent, which doppler shares with its ablations. One for each preset of
// doppler, doppler-sel and doppler-plc:
std::unique_ptr<Agent> make_paper_agent(std::string_view name, const Parameters& parameters);
std::unique_ptr<Trainer> make_paper_trainer(std::string_view name, const Parameters& parameters,
                                            const TrainProblem& problem);
std::unique_ptr<Agent> make_doppler_agent(std::string_view name, const Parameters& parameters);
std::unique_ptr<Trainer> make_doppler_trainer(std::string_view name, const Parameters& parameters,
                                              const TrainProblem& problem);
// gdp, joint and placeto:
std::unique_ptr<Agent> make_peer_agent(std::string_view name, const Parameters& parameters);
std::unique_ptr<Trainer> make_peer_trainer(std::string_view name, const Parameters& parameters,
                                           const TrainProblem& problem);

}  // namespace doppler
