#include "agents/learned/learned.h"

#include <stdexcept>
#include <string>

namespace doppler {

namespace {

LearnedHost& present_host() {
  static LearnedHost host = {.make_agent = &make_agent};
  return host;
}

struct Maker {
  std::unique_ptr<Agent> (*agent)(std::string_view name, const Parameters& parameters);
  std::unique_ptr<Trainer> (*trainer)(std::string_view name, const Parameters& parameters,
                                      const TrainProblem& problem);
};

Maker maker_of(std::string_view name, const Parameters& parameters) {
  if (name == "gdp" || name == "joint" || name == "placeto") {
    return {make_peer_agent, make_peer_trainer};
  }
  if (name != "doppler" && name != "doppler-sel" && name != "doppler-plc") {
    throw std::logic_error("no learned agent '" + std::string(name) + "'");
  }
  if (parameters.get<std::string>("preset") == "paper") {
    return {make_paper_agent, make_paper_trainer};
  }
  return {make_doppler_agent, make_doppler_trainer};
}

}  // namespace

std::unique_ptr<Agent> make_learned_agent(std::string_view name, const Parameters& parameters) {
  return maker_of(name, parameters).agent(name, parameters);
}

std::unique_ptr<Trainer> make_learned_trainer(std::string_view name, const Parameters& parameters,
                                              const TrainProblem& problem) {
  return maker_of(name, parameters).trainer(name, parameters, problem);
}

void set_learned_host(const LearnedHost& host) { present_host() = host; }

std::unique_ptr<Agent> make_host_agent(std::string_view spelling) {
  return present_host().make_agent(spelling);
}

}  // namespace doppler
