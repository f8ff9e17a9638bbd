// The agents gdp, joint and placeto: what their parameters mean.
#include <stdexcept>
#include <string>
#include <utility>

#include "agents/learned/gdp_policy.h"
#include "agents/learned/joint_policy.h"
#include "agents/learned/learned.h"
#include "agents/learned/placeto_policy.h"
#include "agents/learned/reinforce_agent.h"

namespace doppler {

namespace {

MessagePassingTime time_of(const Parameters& parameters) {
  return parameters.get<std::string>("message_passing") == "step" ? MessagePassingTime::step
                                                                  : MessagePassingTime::episode;
}

// Policies that draw from their probabilities explore by themselves, and all choices of one shot
// have the same reward.
ReinforceOptions sampling() {
  ReinforceOptions options;
  options.simulator_epsilon = 0;
  options.discount = 1;
  return options;
}

ReinforceSetup setup_of(std::string_view name, const Parameters& parameters) {
  const MessagePassingTime time = time_of(parameters);
  ReinforceSetup setup;
  if (name == "gdp") {
    setup = {.make = gdp_policy({.message_passing = time}),
             .training = sampling(),
             .kind = gdp_kind(time)};
  } else if (name == "joint") {
    setup = {.make = joint_policy({.message_passing = time}), .kind = joint_kind(time)};
  } else if (name == "placeto") {
    const bool refines = parameters.get<std::string>("preset") == "paper";
    const PlacetoOptions options{
        .sizes = {.rounds = refines ? 8 : 3}, .refines = refines, .message_passing = time};
    setup = {
        .make = placeto_policy(options), .training = sampling(), .kind = placeto_kind(options)};
    if (!refines) setup.training.discount = ReinforceOptions().discount;
  } else {
    throw std::logic_error("no peer '" + std::string(name) + "'");
  }
  read_parameters(parameters, setup);
  return setup;
}

}  // namespace

std::unique_ptr<Agent> make_peer_agent(std::string_view name, const Parameters& parameters) {
  return make_reinforce_agent(setup_of(name, parameters));
}

std::unique_ptr<Trainer> make_peer_trainer(std::string_view name, const Parameters& parameters,
                                           const TrainProblem& problem) {
  return make_setup_trainer(setup_of(name, parameters), problem);
}

}  // namespace doppler
