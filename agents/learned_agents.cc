// What the registry says of the learned agents; what they do is in the module.
#include "agents/learned_module.h"

namespace doppler {

namespace {

// The parameters of the paper's preset have its values (reference: DOPPLER, section 5 and
// appendix).
std::vector<ParameterSpec> doppler_parameters() {
  return {{.name = "preset",
           .summary = "best: searched in parameter space; paper: as published",
           .default_value = std::string("best"),
           .choices = {"best", "paper"}},
          {.name = "policy",
           .summary = "policy file to start from; 'generalist' is the one that comes with the "
                      "package; empty: from nothing",
           .default_value = std::string()},
          {.name = "teacher",
           .summary = "agent that stage I imitates; empty: the preset's own",
           .default_value = std::string()},
          {.name = "imitation_episodes",
           .summary = "preset paper: episodes of stage I",
           .default_value = std::int64_t{2000},
           .minimum = 0,
           .maximum = 1e9},
          {.name = "episodes",
           .summary = "preset paper: episodes of stage II",
           .default_value = std::int64_t{8000},
           .minimum = 0,
           .maximum = 1e9},
          {.name = "batch",
           .summary = "preset paper: episodes of one update",
           .default_value = std::int64_t{1},
           .minimum = 1,
           .maximum = 4096}};
}

}  // namespace

AgentEntry doppler_entry() {
  AgentEntry entry;
  entry.name = "doppler";
  entry.summary = "two learned policies over a graph network: SEL takes a node, PLC its device";
  entry.source = "Yao et al., DOPPLER, 2025";
  entry.family = "learned";
  entry.parameters = doppler_parameters();
  entry.make = [](const Parameters& parameters) {
    return learned_module().make_agent("doppler", parameters);
  };
  entry.train = [](const Parameters& parameters, const TrainProblem& problem) {
    return learned_module().make_trainer("doppler", parameters, problem);
  };
  entry.imitates_demonstrations = true;
  entry.missing = missing_learned_module;
  return entry;
}

}  // namespace doppler
