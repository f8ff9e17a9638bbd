// An agent in a shared library of its own: each node, in the order of the graph's levels, on the
// device where it can start first, then single moves as long as evaluations are left.
//
//   c++ -std=c++17 -shared -fPIC -I DOPPLERGYM examples/plugin/earliest_start.cc -o libmine.so
//   doppler-gym leaderboard run --suite paper-4 --plugin ./libmine.so --rows rows
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "agents/plugin.h"

namespace {

// Nodes so that producers stand before readers.
std::vector<std::int64_t> topological_order(const doppler_problem& problem,
                                            const std::vector<std::vector<std::int64_t>>& inputs) {
  std::vector<std::int64_t> n_open(problem.n_nodes);
  std::vector<std::vector<std::int64_t>> readers(problem.n_nodes);
  for (std::int64_t node = 0; node < problem.n_nodes; ++node) {
    n_open[node] = static_cast<std::int64_t>(inputs[node].size());
    for (const std::int64_t edge : inputs[node]) readers[problem.edge_from[edge]].push_back(node);
  }
  std::vector<std::int64_t> order;
  for (std::int64_t node = 0; node < problem.n_nodes; ++node) {
    if (n_open[node] == 0) order.push_back(node);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const std::int64_t reader : readers[order[i]]) {
      if (--n_open[reader] == 0) order.push_back(reader);
    }
  }
  return order;
}

std::vector<std::int32_t> list_schedule(const doppler_problem& problem) {
  std::vector<std::vector<std::int64_t>> inputs(problem.n_nodes);
  for (std::int64_t edge = 0; edge < problem.n_edges; ++edge) {
    inputs[problem.edge_to[edge]].push_back(edge);
  }
  std::vector<std::int32_t> assignment(problem.n_nodes, 0);
  std::vector<double> end(problem.n_nodes, 0);
  std::vector<double> device_free(problem.n_devices, 0);
  for (const std::int64_t node : topological_order(problem, inputs)) {
    double best = INFINITY;
    for (std::int32_t device = 0; device < problem.n_devices; ++device) {
      double start = device_free[device];
      for (const std::int64_t edge : inputs[node]) {
        const std::int64_t producer = problem.edge_from[edge];
        start = std::max(start, end[producer] + problem.transfer(&problem, problem.edge_bytes[edge],
                                                                 assignment[producer], device));
      }
      if (start >= best) continue;
      best = start;
      assignment[node] = device;
    }
    end[node] = best + problem.compute[node * problem.n_devices + assignment[node]];
    device_free[assignment[node]] = end[node];
  }
  return assignment;
}

int decide(const doppler_problem* problem, std::int32_t* assignment, char* message,
           std::size_t message_size) {
  if (problem->n_nodes == 0) {
    std::snprintf(message, message_size, "there is nothing to place");
    return 1;
  }
  std::vector<std::int32_t> best = list_schedule(*problem);
  // The last of the evaluations measures what is returned.
  std::int64_t n_left = problem->max_evaluations - 1;
  double makespan = n_left-- > 0 ? problem->evaluate(problem, best.data()) : INFINITY;
  std::mt19937_64 random(problem->seed);
  while (n_left-- > 0) {
    const std::size_t node = random() % best.size();
    const std::int32_t before = best[node];
    best[node] = static_cast<std::int32_t>(random() % problem->n_devices);
    const double changed = problem->evaluate(problem, best.data());
    if (changed <= makespan) {
      makespan = changed;
    } else {
      best[node] = before;
    }
  }
  std::copy(best.begin(), best.end(), assignment);
  return 0;
}

constexpr doppler_plugin_agent kAgents[] = {
    {"earliest-start", "each node where it starts first, then single moves", "search", 0, decide}};
constexpr doppler_plugin kPlugin = {DOPPLER_PLUGIN_VERSION, 1, kAgents};

}  // namespace

extern "C" const doppler_plugin* doppler_plugin_v1(void) { return &kPlugin; }
