#include "cli/evaluation.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "cli/parallel.h"
#include "cli/problem.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "datasets/best_known.h"
#include "graphs/error.h"
#include "graphs/lower_bound.h"

namespace doppler::cli {
namespace {

// The runs of one agent on one task; `runs` is by seed.
struct Cell {
  const Task* task = nullptr;
  std::string agent;
  double lower_bound = 0;
  bool shown = true;  // false: only to compare with
  std::vector<AssignResult> runs = {};
};

struct Item {
  std::size_t cell = 0;
  std::size_t run = 0;
};

bool is_deterministic(const std::string& agent) {
  if (agent == kBestKnown) return true;
  return agents().at(NamedCall::parse(agent).name).deterministic;
}

// Every agent's cells on a task lie side by side; the baseline's is last if it was not asked for.
std::vector<Cell> cells_of(const EvaluationPlan& plan) {
  std::vector<std::string> names = plan.agents;
  const bool asked = std::find(names.begin(), names.end(), kBaseline) != names.end();
  if (!asked) names.push_back(kBaseline);
  std::vector<Cell> cells;
  for (const Task& task : plan.tasks) {
    const double bound = task.lower_bound();
    for (std::size_t a = 0; a < names.size(); ++a) {
      const bool once = is_deterministic(names[a]) && !task.options.has_luck();
      cells.push_back(
          {&task, names[a], bound, a < plan.agents.size(),
           std::vector<AssignResult>(once ? 1 : static_cast<std::size_t>(plan.n_seeds))});
    }
  }
  return cells;
}

void check_bound(const Cell& cell, double makespan) {
  if (cell.task->options.noise > 0 || !below_bound(makespan, cell.lower_bound)) return;
  throw RunError(cell.task->name + ", agent " + cell.agent +
                 ": the makespan is below the proved lower bound; this is a fault of doppler-gym, "
                 "please report it");
}

AssignResult best_known_result(const Task& task) {
  const BestKnown* const known = find_best_known(task);
  if (known == nullptr) {
    throw UsageError("no best-known assignment of '" + task.name +
                     "' with these settings; leave best-known out, or add one by "
                     "scripts/best_known.py");
  }
  return {.assignment = known->assignment,
          .makespan = task.simulator().makespan(known->assignment.devices),
          .evaluations = 1};
}

AssignResult run_cell(const Cell& cell, const BudgetOptions& budget, std::uint64_t seed) {
  Task task = *cell.task;
  task.options.seed = seed;
  AssignResult result = cell.agent == kBestKnown ? best_known_result(task)
                                                 : run_agent(cell.agent, task, budget, seed);
  check_bound(cell, result.makespan);
  result.assignment = {};  // not kept: a thousand seeds of a large graph are much memory
  return result;
}

void run_all(std::vector<Cell>& cells, const EvaluationPlan& plan) {
  std::vector<Item> items;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    for (std::size_t r = 0; r < cells[c].runs.size(); ++r) items.push_back({c, r});
  }
  Progress progress(items.size());
  std::vector<std::exception_ptr> faults(items.size());
  side_by_side(items.size(), plan.jobs, [&](std::size_t i) {
    Cell& cell = cells[items[i].cell];
    try {
      const auto seed = static_cast<std::uint64_t>(plan.first_seed) + items[i].run;
      cell.runs[items[i].run] = run_cell(cell, plan.budget, seed);
      progress.advance(cell.task->name + "  " + cell.agent);
      return true;
    } catch (...) {
      faults[i] = std::current_exception();
      return false;
    }
  });
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

EvaluationRow summary(const Cell& cell) {
  EvaluationRow row;
  row.task = cell.task->name;
  row.agent = cell.agent;
  row.lower_bound = cell.lower_bound;
  std::vector<double> seconds;
  std::vector<double> evaluations;
  for (const AssignResult& run : cell.runs) {
    row.makespans.push_back(run.makespan);
    seconds.push_back(run.seconds);
    evaluations.push_back(static_cast<double>(run.evaluations));
    if (!std::isfinite(run.makespan)) ++row.n_out_of_memory;
  }
  row.mean = mean(row.makespans);
  row.interval = half_interval_95(row.makespans);
  row.best = *std::min_element(row.makespans.begin(), row.makespans.end());
  row.seconds = mean(seconds);
  row.evaluations = mean(evaluations);
  if (std::isfinite(row.mean) && row.lower_bound > 0) row.gap = row.mean / row.lower_bound - 1;
  return row;
}

}  // namespace

std::vector<EvaluationRow> evaluate(const EvaluationPlan& plan) {
  std::vector<Cell> cells = cells_of(plan);
  run_all(cells, plan);
  std::vector<EvaluationRow> rows;
  const std::size_t n_agents = plan.tasks.empty() ? 0 : cells.size() / plan.tasks.size();
  for (std::size_t first = 0; first < cells.size(); first += n_agents) {
    std::vector<EvaluationRow> group;
    for (std::size_t a = 0; a < n_agents; ++a) group.push_back(summary(cells[first + a]));
    const double baseline = std::find_if(group.begin(), group.end(), [](const EvaluationRow& row) {
                              return row.agent == kBaseline;
                            })->mean;
    for (std::size_t a = 0; a < n_agents; ++a) {
      EvaluationRow& row = group[a];
      if (std::isfinite(row.mean) && std::isfinite(baseline) && baseline > 0) {
        row.ratio = row.mean / baseline;
      }
      if (cells[first + a].shown) rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace doppler::cli
