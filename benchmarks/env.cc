// The environment: steps a second of whole episodes, resets and final simulations included, with
// random legal actions; beside a slow second implementation in the same run, against which every
// observation is checked before anything is timed.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/draws.h"
#include "datasets/tasks.h"
#include "env/env.h"
#include "env/vector_env.h"
#include "tests/support/reference_schedule.h"
#include "tests/support/reference_simulator.h"

namespace doppler::benchmarks {
namespace {

constexpr std::size_t kEnvs = 256;
constexpr int kThreads = 2;

// 0 to n - 1; cheap, and even enough for what it chooses.
std::int64_t pick(Draws& draws, std::size_t n) {
  return static_cast<std::int64_t>(((draws.next() >> 32) * n) >> 32);
}

// A legal action of `sequential`.
std::int64_t random_action(const Env& env, Draws& draws) {
  if (env.selecting()) {
    const auto candidates = env.schedule().candidates();
    return candidates[static_cast<std::size_t>(pick(draws, candidates.size()))].value;
  }
  return static_cast<std::int64_t>(env.model().max_nodes()) +
         pick(draws, env.task().cluster.n_devices());
}

bool same(double a, double b, double epsilon) {
  return a == b || std::abs(a - b) <= epsilon * std::max(1e-6, std::abs(b));
}

// An episode of the definitions: calls visit(node, device, features) before each placement.
template <class Visit>
double play_reference(const Task& task, bool full, const std::vector<std::int64_t>& actions,
                      Visit&& visit) {
  testing::ReferenceSchedule schedule(task);
  Assignment assignment(task.graph.n_nodes(), DeviceId{0});
  std::vector<std::vector<double>> rows(task.cluster.n_devices());
  for (std::size_t i = 0; i < actions.size(); i += 2) {
    const NodeId node(actions[i]);
    const DeviceId device(actions[i + 1] - static_cast<std::int64_t>(task.graph.n_nodes()));
    for (std::size_t d = 0; d < rows.size(); ++d) {
      rows[d] = schedule.device_features(node, DeviceId(static_cast<std::int64_t>(d)), full);
    }
    visit(rows);
    schedule.place(node, device);
    assignment[node] = device;
  }
  return testing::reference_run(task.graph, task.cluster, task.cost_model, assignment, task.options)
      .makespan;
}

std::vector<std::int64_t> random_episode(Env& env, Draws& draws) {
  std::vector<std::int64_t> actions;
  env.reset({.seed = 1});
  while (env.running()) {
    actions.push_back(random_action(env, draws));
    env.step(actions.back());
  }
  return actions;
}

// Whether an episode of the environment shows what the definitions say.
bool agrees(const Task& task, const EnvOptions& options) {
  Env env(task, options);
  Draws draws(1);
  const auto actions = random_episode(env, draws);
  const std::size_t features = env.spec().index("device_features");
  env.reset({.seed = 1});
  std::size_t t = 0;
  bool equal = true;
  const auto compare = [&](const std::vector<std::vector<double>>& rows) {
    env.step(actions[t++]);
    const float* seen = env.observation_as<float>(features).data();
    for (const auto& row : rows) {
      for (const double expected : row) equal &= same(static_cast<double>(*seen++), expected, 1e-5);
    }
    env.step(actions[t++]);
  };
  const bool full = options.features == Features::full;
  const double makespan = play_reference(task, full, actions, compare);
  const double time = std::isinf(makespan) ? options.memory_penalty : makespan / task.time_scale();
  return equal && t == actions.size() && same(env.episode_return(), -time, 1e-12);
}

void time_steps(benchmark::State& state, const Task& task, const EnvOptions& options) {
  if (!agrees(task, options)) {
    state.SkipWithError("the environment differs from the reference");
    return;
  }
  Env env(task, options);
  Draws draws(1);
  for (auto _ : state) {
    env.reset();
    while (env.running()) benchmark::DoNotOptimize(env.step(random_action(env, draws)));
  }
  state.SetItemsProcessed(state.iterations() * env.spec().max_steps);
}

void time_reference(benchmark::State& state, const Task& task, const EnvOptions& options) {
  Env env(task, options);
  Draws draws(1);
  const auto actions = random_episode(env, draws);
  const bool full = options.features == Features::full;
  for (auto _ : state) {
    benchmark::DoNotOptimize(play_reference(
        task, full, actions, [](const auto& rows) { benchmark::DoNotOptimize(rows.data()); }));
  }
  state.SetItemsProcessed(state.iterations() * env.spec().max_steps);
}

// A plain loop over environments that does what VectorEnv does with next_step.
class Loop {
 public:
  Loop(const std::shared_ptr<const EnvModel>& model, std::size_t n) : envs_(n, Env(model)) {
    for (const ArraySpec& array : model->spec().observations) {
      arrays_.emplace_back(array.is_static ? 0 : n * array.n_bytes());
    }
    rewards_.resize(n);
  }
  void reset(std::uint64_t seed) {
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      envs_[i].reset({.seed = seed + i});
      copy(i);
    }
  }
  void step(const std::vector<std::int64_t>& actions) {
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      rewards_[i] = 0;
      if (envs_[i].running()) {
        rewards_[i] = envs_[i].step(actions[i]).reward;
      } else {
        envs_[i].reset();
      }
      copy(i);
    }
  }
  [[nodiscard]] std::size_t size() const { return envs_.size(); }
  [[nodiscard]] const Env& env(std::size_t i) const { return envs_[i]; }
  [[nodiscard]] std::span<const double> rewards() const { return rewards_; }
  [[nodiscard]] std::span<const std::byte> observation(std::size_t a) const { return arrays_[a]; }

 private:
  void copy(std::size_t i) {
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      if (arrays_[a].empty()) continue;
      const auto from = envs_[i].observation(a);
      std::memcpy(arrays_[a].data() + i * from.size(), from.data(), from.size());
    }
  }
  std::vector<Env> envs_;
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<double> rewards_;
};

template <class Envs>
void random_actions(const Envs& envs, Draws& draws, std::vector<std::int64_t>& actions) {
  for (std::size_t i = 0; i < envs.size(); ++i) {
    actions[i] = envs.env(i).running() ? random_action(envs.env(i), draws) : 0;
  }
}

bool agrees(VectorEnv& envs, Loop& loop) {
  envs.reset(1);
  loop.reset(1);
  Draws draws(1);
  std::vector<std::int64_t> actions(envs.size());
  for (std::int64_t t = 0; t < envs.spec().max_steps + 10; ++t) {
    random_actions(envs, draws, actions);
    envs.step(actions);
    loop.step(actions);
    if (!std::ranges::equal(envs.rewards(), loop.rewards())) return false;
    for (std::size_t a = 0; a < envs.spec().observations.size(); ++a) {
      if (envs.spec().observations[a].is_static) continue;
      if (!std::ranges::equal(envs.observation(a), loop.observation(a))) return false;
    }
  }
  return true;
}

template <class Envs>
void time_batches(benchmark::State& state, Envs& envs) {
  Draws draws(1);
  std::vector<std::int64_t> actions(envs.size());
  envs.reset(1);
  for (auto _ : state) {
    random_actions(envs, draws, actions);
    envs.step(actions);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(envs.size()));
}

void time_vector(benchmark::State& state, const Task& task, const EnvOptions& options) {
  const auto model = std::make_shared<const EnvModel>(std::vector<Task>{task}, options);
  VectorEnv envs(model, kEnvs, {.n_threads = kThreads});
  Loop loop(model, kEnvs);
  if (!agrees(envs, loop)) {
    state.SkipWithError("the vector differs from a loop over its environments");
    return;
  }
  time_batches(state, envs);
}

void time_loop(benchmark::State& state, const Task& task, const EnvOptions& options) {
  const auto model = std::make_shared<const EnvModel>(std::vector<Task>{task}, options);
  Loop loop(model, kEnvs);
  time_batches(state, loop);
}

using Time = void (*)(benchmark::State&, const Task&, const EnvOptions&);

benchmark::internal::Benchmark* add(const std::string& name, Time time, const std::string& task,
                                    Features features) {
  return benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    Task made = make_task(task);
    made.options.record_timeline = false;
    time(state, made, {.features = features});
  });
}

void add_all() {
  for (const char* task : {"published/llama-layer", "llama-layer@p100x4"}) {
    for (const Features features : {Features::paper, Features::full}) {
      const std::string what = std::string(task) + "/features " + std::string(to_string(features));
      add("env/steps/" + what, time_steps, task, features);
      add("reference/steps/" + what, time_reference, task, features);
      add("env/vector of 256, 2 threads/" + what, time_vector, task, features)->UseRealTime();
      add("reference/vector of 256, 2 threads/" + what, time_loop, task, features)->UseRealTime();
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
