// The simulator: makespans a second, beside the slow reference implementation of the tests in the
// same run. Before anything is timed, its results are compared with that implementation's.
#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"
#include "benchmarks/layered_graph.h"
#include "datasets/tasks.h"
#include "executor/simulator/simulator.h"
#include "tests/support/reference_simulator.h"

namespace doppler::benchmarks {
namespace {

constexpr std::size_t kAssignments = 256;  // different ones, so that no run predicts the next
constexpr std::size_t kWidth = 64;

double reference_makespan(const Task& task, const std::vector<DeviceId>& devices) {
  return testing::reference_run(task.graph, task.cluster, task.cost_model, Assignment(devices),
                                task.options)
      .makespan;
}

// Whether two makespans are the same but for rounding.
bool same(double a, double b) { return a == b || std::abs(a - b) <= 1e-12 * std::abs(b); }

void count_makespans(benchmark::State& state, std::size_t n_a_round = 1) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n_a_round));
}

std::vector<std::vector<DeviceId>> random_assignments(const Task& task) {
  std::vector<std::vector<DeviceId>> result;
  for (std::size_t seed = 0; seed < kAssignments; ++seed) {
    result.push_back(random_devices(task.graph.n_nodes(), task.cluster.n_devices(), seed));
  }
  return result;
}

void time_random_assignments(benchmark::State& state, const Task& task) {
  Simulator simulator = task.simulator();
  const auto assignments = random_assignments(task);
  for (const auto& devices : assignments) {
    if (!same(simulator.makespan(devices), reference_makespan(task, devices))) {
      state.SkipWithError("the simulator differs from the reference");
      return;
    }
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulator.makespan(assignments[i]));
    i = (i + 1) % kAssignments;
  }
  count_makespans(state);
}

void time_reference(benchmark::State& state, const Task& task) {
  const auto assignments = random_assignments(task);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(reference_makespan(task, assignments[i]));
    i = (i + 1) % kAssignments;
  }
  count_makespans(state);
}

// Changes of one node, drawn at random, to an assignment that stays.
void time_moves(benchmark::State& state, const Task& task, const std::vector<DeviceId>& base) {
  struct Move {
    NodeId node;
    DeviceId device;
  };
  std::mt19937_64 random(1);
  std::vector<Move> moves;
  while (moves.size() < 4 * kAssignments) {
    const NodeId node(static_cast<std::int64_t>(random() % task.graph.n_nodes()));
    const DeviceId device(static_cast<std::int64_t>(random() % task.cluster.n_devices()));
    if (device != base[node.index()]) moves.push_back({node, device});
  }

  Simulator simulator = task.simulator();
  simulator.set_base(base);
  for (std::size_t i = 0; i < kAssignments; ++i) {
    auto changed = base;
    changed[moves[i].node.index()] = moves[i].device;
    if (!same(simulator.makespan_after_move(moves[i].node, moves[i].device),
              reference_makespan(task, changed))) {
      state.SkipWithError("the simulator differs from the reference");
      return;
    }
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulator.makespan_after_move(moves[i].node, moves[i].device));
    i = (i + 1) % moves.size();
  }
  count_makespans(state);
}

// Many assignments at once on every core.
void time_batch(benchmark::State& state, const Task& task) {
  Simulator simulator = task.simulator();
  std::vector<DeviceId> flat;
  std::vector<double> expected;
  for (const auto& devices : random_assignments(task)) {
    flat.insert(flat.end(), devices.begin(), devices.end());
    expected.push_back(simulator.makespan(devices));
  }
  if (simulator.makespans(flat, 0) != expected) {
    state.SkipWithError("a batch differs from its assignments one by one");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(simulator.makespans(flat, 0));
  count_makespans(state, kAssignments);
}

// Makespans of a layered graph of state.range(0) nodes; the time of one node is what counts. So
// many assignments take turns that no size has its branches learnt by heart.
void time_growth(benchmark::State& state, bool shuffled) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const Task task{.name = "layered",
                  .graph = layered_graph(n, kWidth, shuffled),
                  .cluster = Cluster::uniform(4),
                  .cost_model = CostModel::raw(),
                  .options = {.network = Network::independent, .record_timeline = false}};
  Simulator simulator = task.simulator();
  std::vector<std::vector<DeviceId>> assignments;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, 100'000 / n); ++i) {
    assignments.push_back(random_devices(n, task.cluster.n_devices(), n + i));
  }
  const auto& devices = assignments.front();
  const double makespan = simulator.makespan(devices);
  // The reference is too slow for the larger ones.
  if (n <= 1000 && !same(makespan, reference_makespan(task, devices))) {
    state.SkipWithError("the simulator differs from the reference");
    return;
  }
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(simulator.makespan(assignments[next]));
    next = next + 1 == assignments.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// A task that is made when its benchmark starts, so that a filter saves its cost.
using MakeTask = std::function<Task()>;

MakeTask named_task(const std::string& name, const std::function<void(Task&)>& change = {}) {
  return [name, change] {
    Task task = make_task(name);
    task.options.record_timeline = false;
    if (change) change(task);
    return task;
  };
}

void add_random(const std::string& name, const MakeTask& make) {
  benchmark::RegisterBenchmark(
      ("simulator/random assignments/" + name).c_str(),
      [make](benchmark::State& state) { time_random_assignments(state, make()); });
  benchmark::RegisterBenchmark(("reference/random assignments/" + name).c_str(),
                               [make](benchmark::State& state) { time_reference(state, make()); });
}

void add_all() {
  const MakeTask published = named_task("published/llama-layer");
  add_random("published llama-layer", published);
  benchmark::RegisterBenchmark(
      "simulator/batch on all cores/published llama-layer",
      [published](benchmark::State& state) { time_batch(state, published()); })
      ->UseRealTime();
  benchmark::RegisterBenchmark("simulator/one-node changes/random base",
                               [published](benchmark::State& state) {
                                 const Task task = published();
                                 time_moves(state, task, random_assignments(task).front());
                               });
  benchmark::RegisterBenchmark("simulator/one-node changes/partner-list base",
                               [published](benchmark::State& state) {
                                 const Task task = published();
                                 const auto agent = make_agent("partner-list");
                                 time_moves(state, task, assign(*agent, task).assignment.devices);
                               });

  const std::string layer = "llama-layer@p100x4";
  add_random("network independent",
             named_task(layer, [](Task& t) { t.options.network = Network::independent; }));
  add_random("network channel",
             named_task(layer, [](Task& t) { t.options.network = Network::channel; }));
  add_random("network fair", named_task(layer, [](Task& t) { t.options.network = Network::fair; }));
  add_random("memory not enforced",
             named_task(layer, [](Task& t) { t.options.enforce_memory = false; }));
  add_random("noise and random choice", named_task(layer, [](Task& t) {
               t.options.noise = 0.1;
               t.options.choice = Choice::random;
             }));
  add_random("bulk synchronous",
             named_task(layer, [](Task& t) { t.options.schedule = Schedule::bulk_synchronous; }));

  for (const bool shuffled : {false, true}) {
    for (const std::int64_t n : {100, 1'000, 10'000, 100'000, 1'000'000}) {
      benchmark::RegisterBenchmark(
          shuffled ? "simulator/growth/shuffled ids" : "simulator/growth/ids in layers",
          [shuffled](benchmark::State& state) { time_growth(state, shuffled); })
          ->Arg(n)
          ->Iterations(std::max<std::int64_t>(2, 2'000'000 / n));
    }
  }
}

}  // namespace
}  // namespace doppler::benchmarks

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  doppler::benchmarks::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
