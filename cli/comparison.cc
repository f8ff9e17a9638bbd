#include "cli/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "agents/agent.h"
#include "agents/draws.h"
#include "cli/agreement.h"
#include "cli/progress.h"
#include "executor/calibration/fit.h"
#include "executor/engine.h"

namespace doppler::cli {
namespace {

constexpr std::int64_t kCandidates = 20;  // drawn for each that is taken

// A device for each of `n` things: at random, with weights of their own that are more or less even.
std::vector<DeviceId> weighted_devices(Draws& draws, std::size_t n, std::size_t n_devices) {
  std::vector<double> weights(n_devices);
  const double unevenness = 4 * draws.uniform();
  double sum = 0;
  for (double& weight : weights) sum += weight = std::pow(draws.uniform(), unevenness);
  std::vector<DeviceId> devices(n);
  for (DeviceId& device : devices) {
    double left = draws.uniform() * sum;
    std::size_t d = 0;
    while (d + 1 < n_devices && left >= weights[d]) left -= weights[d++];
    device = DeviceId(static_cast<std::int64_t>(d));
  }
  return devices;
}

Assignment by_tensor_operation(Draws& draws, const Task& task) {
  const Graph& graph = task.graph;
  std::int32_t n_groups = 1;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    n_groups = std::max(n_groups, graph.meta_op(NodeId(static_cast<std::int64_t>(v))) + 2);
  }
  const auto devices =
      weighted_devices(draws, static_cast<std::size_t>(n_groups), task.cluster.n_devices());
  Assignment assignment(graph.n_nodes(), DeviceId(0));
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    assignment[node] = devices[static_cast<std::size_t>(graph.meta_op(node) + 1)];
  }
  return assignment;
}

Assignment by_runs(Draws& draws, const Task& task) {
  const auto order = task.graph.topological_order();
  const std::size_t length = 1 + draws.below(std::max<std::size_t>(1, order.size() / 2));
  const auto devices = weighted_devices(draws, order.size() / length + 1, task.cluster.n_devices());
  Assignment assignment(order.size(), DeviceId(0));
  for (std::size_t p = 0; p < order.size(); ++p) assignment[order[p]] = devices[p / length];
  return assignment;
}

Assignment by_levels(const Task& task) {
  Assignment assignment(task.graph.n_nodes(), DeviceId(0));
  const auto n_devices = static_cast<std::int64_t>(task.cluster.n_devices());
  for (std::size_t v = 0; v < assignment.size(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    assignment[node] = DeviceId(task.graph.level(node) % n_devices);
  }
  return assignment;
}

double median_of(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The run whose makespan is the median, or the smaller of the two in the middle.
const Execution& median_run(const std::vector<Execution>& runs) {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return runs[a].makespan < runs[b].makespan; });
  return runs[order[(order.size() - 1) / 2]];
}

// The engine with a single run at a time: rounds take the place of its repeats.
std::unique_ptr<Engine> engine_for_rounds(const std::string& spelling) {
  NamedCall call = NamedCall::parse(spelling);
  const EngineEntry& entry = engines().at(call.name);
  const Parameters given(entry.parameters, call);
  for (const ParameterSpec& parameter : entry.parameters) {
    if (given.given(parameter.name)) continue;
    if (parameter.name == "warm_up") call.named.emplace_back("warm_up", "0");
    if (parameter.name == "repeats") call.named.emplace_back("repeats", "1");
  }
  return entry.make(Parameters(entry.parameters, call));
}

// The runs of each assignment, by round.
std::vector<std::vector<Execution>> measure(const ComparisonPlan& plan,
                                            const std::vector<ComparedAssignment>& assignments) {
  const std::unique_ptr<Engine> engine = engine_for_rounds(plan.engine);
  Task task = plan.task;
  task.options.record_timeline = true;
  std::vector<std::vector<Execution>> runs(assignments.size());
  Progress progress(assignments.size() * static_cast<std::size_t>(plan.rounds + 1));
  for (std::int64_t round = 0; round <= plan.rounds; ++round) {
    for (std::size_t i = 0; i < assignments.size(); ++i) {
      Execution execution = engine->run(task.graph, task.cluster, task.cost_model,
                                        assignments[i].assignment, task.options);
      if (round > 0) runs[i].push_back(std::move(execution));
      progress.advance(round > 0 ? "round " + std::to_string(round) : "warm-up");
    }
  }
  return runs;
}

Agreement agreement(const std::vector<ComparedAssignment>& assignments,
                    double ComparedAssignment::*prediction) {
  std::vector<const ComparedAssignment*> sorted;
  for (const ComparedAssignment& one : assignments) sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->measured < b->measured; });
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const ComparedAssignment* one : sorted) {
    predicted.push_back(one->*prediction);
    measured.push_back(one->measured);
  }
  const std::size_t quarter = (sorted.size() + 3) / 4;
  return {.spearman = spearman(predicted, measured),
          .spearman_best_quarter =
              spearman(std::span(predicted).first(quarter), std::span(measured).first(quarter)),
          .kendall = kendall(predicted, measured),
          .mean_relative_error = mean_relative_error(predicted, measured)};
}

}  // namespace

std::vector<ComparedAssignment> varied_assignments(const Task& task, std::int64_t n,
                                                   std::uint64_t seed) {
  Simulator simulator = task.simulator();
  std::vector<ComparedAssignment> result;
  std::vector<ComparedAssignment> pool;
  double least = INFINITY;
  double most = 0;
  const auto add = [&](std::vector<ComparedAssignment>& list, const std::string& origin,
                       Assignment assignment) {
    const double makespan = simulator.makespan(assignment.devices);
    if (!std::isfinite(makespan)) return;  // an engine could not run it
    least = std::min(least, makespan);
    most = std::max(most, makespan);
    list.push_back({.origin = origin, .assignment = std::move(assignment), .before = makespan});
  };
  const auto is_chosen = [&](const Assignment& assignment) {
    return std::any_of(result.begin(), result.end(),
                       [&](const auto& one) { return one.assignment == assignment; });
  };
  for (const auto& [name, entry] : agents()) {
    if (entry.family != "heuristic" || static_cast<std::int64_t>(result.size()) == n) continue;
    Assignment assignment = assign(*make_agent(name), task, {.seed = seed}).assignment;
    if (!is_chosen(assignment)) add(result, name, std::move(assignment));
  }
  if (Assignment levels = by_levels(task); !is_chosen(levels)) add(result, "levels", levels);
  Draws draws(seed);
  for (std::int64_t i = 0; i < kCandidates * n; ++i) {
    switch (i % 4) {
      case 0:
      case 1:
        add(pool, "random",
            Assignment(weighted_devices(draws, task.graph.n_nodes(), task.cluster.n_devices())));
        break;
      case 2:
        add(pool, "operations", by_tensor_operation(draws, task));
        break;
      default:
        add(pool, "runs", by_runs(draws, task));
        break;
    }
  }
  std::stable_sort(pool.begin(), pool.end(),
                   [](const auto& a, const auto& b) { return a.before > b.before; });
  const std::int64_t n_left = n - static_cast<std::int64_t>(result.size());
  for (std::int64_t i = 0; i < n_left; ++i) {
    const double target = n_left == 1 ? most
                                      : most - (most - least) * static_cast<double>(i) /
                                                   static_cast<double>(n_left - 1);
    const ComparedAssignment* nearest = nullptr;
    for (const ComparedAssignment& one : pool) {
      if (nearest != nullptr &&
          std::abs(one.before - target) >= std::abs(nearest->before - target)) {
        continue;
      }
      if (!is_chosen(one.assignment)) nearest = &one;
    }
    if (nearest == nullptr) break;  // a small graph has not so many assignments
    result.push_back(*nearest);
  }
  for (ComparedAssignment& one : result) one.before = 0;
  return result;
}

Comparison compare(const ComparisonPlan& plan) {
  Comparison result;
  auto& assignments = result.assignments;
  assignments = varied_assignments(plan.task, plan.n_assignments, plan.seed);
  const std::vector<std::vector<Execution>> runs = measure(plan, assignments);

  std::vector<std::size_t> shuffled(assignments.size());
  std::iota(shuffled.begin(), shuffled.end(), std::size_t{0});
  Draws draws(plan.seed + 1);
  for (std::size_t i = shuffled.size(); i > 1; --i) {
    std::swap(shuffled[i - 1], shuffled[draws.below(i)]);
  }
  const Task& task = plan.task;
  Simulator simulator = task.simulator();
  for (const std::size_t half : {0, 1}) {
    std::vector<Execution> fitted;
    for (std::size_t i = half; i < shuffled.size(); i += 2) {
      fitted.push_back(median_run(runs[shuffled[i]]));
    }
    Simulator fitted_simulator(task.graph, task.cluster,
                               CostModel::measured(fit_profile(task.graph, task.cluster, fitted)),
                               task.options);
    for (std::size_t i = 1 - half; i < shuffled.size(); i += 2) {
      ComparedAssignment& one = assignments[shuffled[i]];
      for (const Execution& run : runs[shuffled[i]]) one.rounds.push_back(run.makespan);
      one.measured = median_of(one.rounds);
      one.before = simulator.makespan(one.assignment.devices);
      one.after = fitted_simulator.makespan(one.assignment.devices);
    }
  }
  const auto [least, most] =
      std::minmax_element(assignments.begin(), assignments.end(),
                          [](const auto& a, const auto& b) { return a.measured < b.measured; });
  result.span = most->measured / least->measured;
  result.before = agreement(assignments, &ComparedAssignment::before);
  result.after = agreement(assignments, &ComparedAssignment::after);
  return result;
}

}  // namespace doppler::cli
