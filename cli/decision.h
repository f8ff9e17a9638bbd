// An assignment from a file or from an agent, for commands that look at one.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "agents/agent.h"
#include "cli/command_line.h"
#include "env/task.h"

namespace doppler::cli {

// What an agent may spend.
struct BudgetOptions {
  std::int64_t evaluations = 1000;
  double seconds = std::numeric_limits<double>::infinity();
};
void add_budget_options(Command& command, BudgetOptions& options);

struct DecisionOptions {
  std::optional<std::string> assignment = {};
  std::optional<std::string> agent = {};
  BudgetOptions budget = {};
};
// Refers to `options` until the command has run.
void add_decision_options(Command& command, DecisionOptions& options);

// The assignment that the options name, checked. Throws UsageError unless there is exactly one.
Assignment decide_assignment(const DecisionOptions& options, const Task& task);

// A registered agent by its spelling. Throws UsageError; for an unknown name it also says where
// agents that are written in Python are known.
std::unique_ptr<Agent> named_agent(const std::string& spelling);

// What the named agent finds with this seed within the budget.
AssignResult run_agent(const std::string& agent, const Task& task, const BudgetOptions& budget,
                       std::uint64_t seed);

}  // namespace doppler::cli
