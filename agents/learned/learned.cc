#include "agents/learned/learned.h"

#include <stdexcept>
#include <string>

namespace doppler {

namespace {

LearnedHost& present_host() {
  static LearnedHost host = {.make_agent = &make_agent};
  return host;
}

bool is_paper(std::string_view name, const Parameters& parameters) {
  if (name != "doppler") throw std::logic_error("no learned agent '" + std::string(name) + "'");
  return parameters.get<std::string>("preset") == "paper";
}

}  // namespace

std::unique_ptr<Agent> make_learned_agent(std::string_view name, const Parameters& parameters) {
  return is_paper(name, parameters) ? make_paper_agent(parameters) : make_doppler_agent(parameters);
}

std::unique_ptr<Trainer> make_learned_trainer(std::string_view name, const Parameters& parameters,
                                              const TrainProblem& problem) {
  return is_paper(name, parameters) ? make_paper_trainer(parameters, problem)
                                    : make_doppler_trainer(parameters, problem);
}

void set_learned_host(const LearnedHost& host) { present_host() = host; }

std::unique_ptr<Agent> make_host_agent(std::string_view spelling) {
  return present_host().make_agent(spelling);
}

}  // namespace doppler
