#include "cli/decision.h"

#include "cli/problem.h"
#include "graphs/error.h"

namespace doppler::cli {

void add_budget_options(Command& command, BudgetOptions& options) {
  command.option({"--evaluations", "N",
                  "The most runs of the engine that an agent may use; heuristics use one. Default "
                  "1000"},
                 into(options.evaluations, 1));
  command.option({"--seconds", "S", "The most seconds that an agent may think. Default: no limit"},
                 into(options.seconds, 0.0));
}

void add_decision_options(Command& command, DecisionOptions& options) {
  command.group("Assignment");
  command.option({"--assignment", "FILE",
                  "{\"assignment\": [device of each node in the order of the graph's file]}"},
                 into(options.assignment));
  command.option({"--agent", "NAME", "An agent that decides it; see doppler-gym tasks --agents"},
                 into(options.agent));
  add_budget_options(command, options.budget);
}

Assignment decide_assignment(const DecisionOptions& options, const Task& task) {
  if (options.assignment.has_value() == options.agent.has_value()) {
    throw UsageError("give --assignment FILE or --agent NAME, one of them");
  }
  if (options.assignment) return load_assignment(*options.assignment, task);
  return run_agent(*options.agent, task, options.budget, task.options.seed).assignment;
}

std::unique_ptr<Agent> named_agent(const std::string& spelling) {
  try {
    return make_agent(spelling);
  } catch (const UsageError& error) {
    if (agents().contains(NamedCall::parse(spelling).name)) throw;
    throw UsageError(std::string(error.what()) +
                     "; agents written in Python are known to the Python package's doppler-gym "
                     "only, by an entry point doppler_gym.agents");
  }
}

AssignResult run_agent(const std::string& agent, const Task& task, const BudgetOptions& budget,
                       std::uint64_t seed) {
  const std::unique_ptr<Agent> made = named_agent(agent);
  AssignOptions options;
  options.seed = seed;
  options.max_evaluations = budget.evaluations;
  options.max_seconds = budget.seconds;
  return assign(*made, task, options);
}

}  // namespace doppler::cli
