// What the registry says of the learned agents; what they do is in the module.
#include <utility>

#include "agents/learned_module.h"

namespace doppler {

namespace {

constexpr const char* kPolicy = "policy file to start from; empty: from nothing";
constexpr const char* kTeacher = "agent that stage I imitates";
constexpr const char* kMessagePassing =
    "when the graph network runs: once an episode, or anew each step, told of the placement so far";

ParameterSpec text(std::string name, std::string summary, std::string value,
                   std::vector<std::string> choices = {}) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .default_value = std::move(value),
          .choices = std::move(choices)};
}

ParameterSpec count(std::string name, std::string summary, std::int64_t value, double minimum,
                    double maximum) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .default_value = value,
          .minimum = minimum,
          .maximum = maximum};
}

ParameterSpec number(std::string name, std::string summary, double value, double maximum) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .default_value = value,
          .minimum = 0,
          .maximum = maximum};
}

// What differs between agents that learn by REINFORCE.
struct Numbers {
  std::string of = {};  // what the numbers are of: "preset paper: "
  std::int64_t imitation_episodes = 2000;
  std::int64_t episodes = 8000;
  double learning_rate = 1e-4;
  double entropy_weight = 1e-2;
};

// The numbers of a run by REINFORCE.
void add_training(std::vector<ParameterSpec>& specs, const Numbers& numbers) {
  const std::string& of = numbers.of;
  specs.push_back(
      count("imitation_episodes", of + "episodes of stage I", numbers.imitation_episodes, 0, 1e9));
  specs.push_back(count("episodes", of + "episodes of stage II", numbers.episodes, 0, 1e9));
  specs.push_back(count("batch", of + "episodes of one update", 1, 1, 4096));
  specs.push_back(number("learning_rate",
                         of + "Adam's rate at the begin of stage II, falling linearly to 1e-7",
                         numbers.learning_rate, 1));
  specs.push_back(number("entropy_weight", of + "weight of the entropy in the loss of stage II",
                         numbers.entropy_weight, 1e3));
}

// The parameters of the paper's preset have its values (reference: DOPPLER, section 5 and
// appendix).
std::vector<ParameterSpec> doppler_parameters(const std::string& policy) {
  std::vector<ParameterSpec> specs = {
      text("preset", "best: searched in parameter space; paper: as published", "best",
           {"best", "paper"}),
      text("policy", policy, ""),
      text("teacher", "agent that stage I imitates; empty: the preset's own", ""),
      text("message_passing", std::string("preset paper: ") + kMessagePassing, "episode",
           {"episode", "step"})};
  add_training(specs, {.of = "preset paper: "});
  return specs;
}

AgentEntry learned_entry(std::string name, std::string summary, std::string source) {
  AgentEntry entry;
  entry.name = std::move(name);
  entry.summary = std::move(summary);
  entry.source = std::move(source);
  entry.family = "learned";
  entry.make = [name = entry.name](const Parameters& parameters) {
    return learned_module().make_agent(name, parameters);
  };
  entry.train = [name = entry.name](const Parameters& parameters, const TrainProblem& problem) {
    return learned_module().make_trainer(name, parameters, problem);
  };
  entry.imitates_demonstrations = true;
  entry.missing = missing_learned_module;
  return entry;
}

constexpr const char* kDoppler = "Yao et al., DOPPLER, 2025";

AgentEntry doppler_entry() {
  AgentEntry entry = learned_entry(
      "doppler", "two learned policies over a graph network: SEL takes a node, PLC its device",
      kDoppler);
  entry.parameters = doppler_parameters(
      "policy file to start from; 'generalist' is the one that comes with the package; empty: from "
      "nothing");
  return entry;
}

AgentEntry select_only_entry() {
  AgentEntry entry = learned_entry(
      "doppler-sel", "doppler with SEL alone learned; each node starts as early as can be",
      kDoppler);
  entry.parameters = doppler_parameters(kPolicy);
  return entry;
}

AgentEntry place_only_entry() {
  AgentEntry entry = learned_entry(
      "doppler-plc", "doppler with PLC alone learned; nodes by largest b-level", kDoppler);
  entry.parameters = doppler_parameters(kPolicy);
  return entry;
}

AgentEntry gdp_entry() {
  AgentEntry entry =
      learned_entry("gdp", "one shot: GraphSAGE and segment-recurrent attention over the nodes",
                    "Zhou et al., GDP, 2019; sizes as the DOPPLER authors ran it");
  entry.parameters = {text("message_passing", kMessagePassing, "episode", {"episode", "step"}),
                      text("policy", kPolicy, ""), text("teacher", kTeacher, "critical-path")};
  add_training(entry.parameters, {});
  return entry;
}

AgentEntry joint_entry() {
  AgentEntry entry = learned_entry(
      "joint", "one learned policy over pairs of a node and a device",
      "the single policy that DOPPLER's two are compared with; networks as published");
  entry.parameters = {text("message_passing", kMessagePassing, "episode", {"episode", "step"}),
                      text("policy", kPolicy, ""), text("teacher", kTeacher, "critical-path")};
  add_training(entry.parameters, {});
  return entry;
}

AgentEntry placeto_entry() {
  AgentEntry entry = learned_entry(
      "placeto", "goes over the nodes of a placement and moves each, by messages anew",
      "Addanki et al., Placeto, NeurIPS 2019");
  entry.parameters = {
      text(
          "preset",
          "paper: refines a full placement, rewarded by each improvement, 1 + nodes evaluations an "
          "episode; one-pass: as the DOPPLER authors ran it, one evaluation an episode",
          "paper", {"paper", "one-pass"}),
      text("message_passing", kMessagePassing, "step", {"step", "episode"}),
      text("policy", kPolicy, ""), text("teacher", kTeacher, "critical-path")};
  add_training(entry.parameters, {.learning_rate = 1e-3});
  return entry;
}

}  // namespace

std::vector<AgentEntry> learned_entries() {
  return {doppler_entry(), select_only_entry(), place_only_entry(),
          gdp_entry(),     joint_entry(),       placeto_entry()};
}

}  // namespace doppler
