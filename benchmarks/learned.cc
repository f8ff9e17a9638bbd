// The learned agents: episodes a second. Before a rollout is timed, the log-probability of its
// choices is compared with LibTorch's, and LibTorch's own time for the same numbers stands beside
// it.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <string>

#include "agents/learned/gdp_policy.h"
#include "agents/learned/joint_policy.h"
#include "agents/learned/paper_network.h"
#include "agents/learned/paper_policy.h"
#include "agents/learned/placeto_policy.h"
#include "agents/learned/torch_device.h"
#include "benchmarks/layered_graph.h"
#include "datasets/tasks.h"

namespace doppler::benchmarks {
namespace {

constexpr std::size_t kWidth = 64;
constexpr double kEpsilon = 0.2;

using Model = std::shared_ptr<const PlacementModel>;

Model named_model(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

Model layered_model(std::size_t n) {
  return std::make_shared<const PlacementModel>(
      Task{.name = "layered",
           .graph = layered_graph(n, kWidth),
           .cluster = Cluster::uniform(4),
           .cost_model = CostModel::raw(),
           .options = {.network = Network::independent, .record_timeline = false}});
}

// An untrained network of the paper's size on a task.
struct Paper {
  explicit Paper(const Model& model)
      : network(PaperSizes{}, 1),
        task(std::make_shared<const PaperTask>(model, static_cast<int>(network.sizes.steps))),
        tensors(task, torch::TensorOptions()),
        weights(network.weights()),
        rollout(task) {
    const torch::NoGradGuard no_gradient;
    embedding = plain_embedding(network, tensors);
  }

  void run(PaperEpisode& episode, bool record) {
    rollout.run(weights, embedding, {.epsilon = kEpsilon, .seed = ++seed, .record = record},
                episode);
  }
  // The log-probability of an episode by LibTorch, without the steps that have one row.
  double log_probability(const PaperEpisode& episode) {
    const std::span<const PaperEpisode> one(&episode, 1);
    return network.select->choices(tensors, network.select->embed(tensors), one)
               .log_probability.sum()
               .item<double>() +
           network.place->choices(tensors, network.place->embed(tensors), one)
               .log_probability.sum()
               .item<double>();
  }

  const SingleThreadedTorch single_threaded = {};
  PaperNetwork network;
  std::shared_ptr<const PaperTask> task;
  PaperTensors tensors;
  PaperWeights weights;
  PaperEmbedding embedding;
  PaperRollout rollout;
  std::uint64_t seed = 0;
};

// Of the steps that are not in LibTorch's batch: among k equal candidates each has 1 / k.
double certain_steps(const PaperEpisode& episode, const Model& model) {
  PartialSchedule schedule(model);
  std::size_t recorded = 0;
  double sum = 0;
  for (std::size_t step = 0; step < episode.node.size(); ++step) {
    if (recorded < episode.select_step.size() &&
        episode.select_step[recorded] == static_cast<std::int32_t>(step)) {
      ++recorded;
    } else {
      sum -= std::log(static_cast<double>(schedule.candidates().size()));
    }
    schedule.place(episode.node[step], episode.assignment[episode.node[step]]);
  }
  return sum;
}

bool agrees(Paper& paper, const Model& model) {
  const torch::NoGradGuard no_gradient;
  PaperEpisode episode;
  paper.run(episode, true);
  const double want = paper.log_probability(episode) + certain_steps(episode, model);
  return std::abs(want - episode.log_probability) <= 1e-4 * std::abs(want);
}

void time_rollout(benchmark::State& state, const Model& model, bool checked) {
  Paper paper(model);
  if (checked && !agrees(paper, model)) {
    state.SkipWithError("the rollout differs from LibTorch");
    return;
  }
  PaperEpisode episode;
  for (auto _ : state) {
    paper.run(episode, false);
    benchmark::DoNotOptimize(episode.assignment);
  }
  state.SetItemsProcessed(state.iterations());
}

// What the rollout computes, by LibTorch in one batch for a known episode: no step waits for
// another.
void time_batch_of_libtorch(benchmark::State& state, const Model& model) {
  Paper paper(model);
  PaperEpisode episode;
  paper.run(episode, true);
  const torch::NoGradGuard no_gradient;
  const std::span<const PaperEpisode> one(&episode, 1);
  const auto select = paper.network.select->embed(paper.tensors);
  const auto place = paper.network.place->embed(paper.tensors);
  for (auto _ : state) {
    benchmark::DoNotOptimize(paper.network.select->choices(paper.tensors, select, one));
    benchmark::DoNotOptimize(paper.network.place->choices(paper.tensors, place, one));
  }
  state.SetItemsProcessed(state.iterations());
}

// Message passing of both policies, once a set of parameters.
void time_embedding(benchmark::State& state, const Model& model) {
  Paper paper(model);
  const torch::NoGradGuard no_gradient;
  for (auto _ : state) {
    benchmark::DoNotOptimize(paper.network.select->embed(paper.tensors));
    benchmark::DoNotOptimize(paper.network.place->embed(paper.tensors));
  }
  state.SetItemsProcessed(state.iterations());
}

// Episodes of stage II: embedding, rollout, simulation, gradient, step.
void time_training(benchmark::State& state, const Model& model, std::int64_t batch, int n_threads) {
  PaperOptions numbers;
  numbers.training.batch = batch;
  numbers.training.simulator_episodes = std::int64_t{1} << 40;
  const auto trainer = make_paper_trainer(
      numbers,
      {.tasks = {model}, .options = {.stages = {2}, .max_evaluations = 0, .n_threads = n_threads}});
  for (auto _ : state) benchmark::DoNotOptimize(trainer->update());
  state.SetItemsProcessed(state.iterations() * batch);
}

// The peers in the sizes of their agents, untrained.
MakeReinforcePolicy peer(const std::string& name) {
  if (name == "gdp") return gdp_policy({});
  if (name == "gdp, each step") {
    return gdp_policy({.message_passing = MessagePassingTime::step});
  }
  if (name == "joint") return joint_policy({});
  if (name == "doppler") return paper_policy({});
  if (name == "doppler, each step") {
    return paper_policy({.message_passing = MessagePassingTime::step});
  }
  const bool refines = name == "placeto";
  return placeto_policy({.sizes = {.rounds = refines ? 8 : 3}, .refines = refines});
}

// A greedy episode, with what the parameters make of the task.
void time_decision(benchmark::State& state, const Model& model, const std::string& name) {
  const SingleThreadedTorch single_threaded;
  const auto policy = peer(name)({model}, torch::kCPU, 1);
  for (auto _ : state) benchmark::DoNotOptimize(policy->decide(0));
  state.SetItemsProcessed(state.iterations());
}

// Episodes of stage II, one an update, on one thread.
void time_peer_training(benchmark::State& state, const Model& model, const std::string& name) {
  ReinforceOptions numbers;
  numbers.simulator_episodes = std::int64_t{1} << 40;
  const auto trainer = make_reinforce_trainer(
      peer(name), numbers, {.tasks = {model}, .options = {.stages = {2}, .max_evaluations = 0}});
  for (auto _ : state) benchmark::DoNotOptimize(trainer->update());
  state.SetItemsProcessed(state.iterations());
}

// The largest graph of 100, 1,000, ... nodes whose episode takes seconds, not minutes: where
// messages pass each step the work grows with the square of the nodes.
std::int64_t largest_graph(const std::string& name, bool trains) {
  if (name == "gdp" || name == "gdp, each step") return 100'000;
  if (name == "doppler") return trains ? 10'000 : 100'000;
  if (name == "doppler, each step") return 100;
  if (name == "joint") return trains ? 1'000 : 100'000;
  return trains ? 1'000 : 10'000;
}

void add_peers() {
  for (const std::string name : {"gdp", "gdp, each step", "joint", "placeto", "placeto, one pass",
                                 "doppler", "doppler, each step"}) {
    for (const std::string graph : {"ffnn", "llama-layer", "llama-layer-8"}) {
      const std::string task = "published/" + graph;
      benchmark::RegisterBenchmark(
          ("peers/decision/" + name + "/" + task).c_str(),
          [task, name](benchmark::State& s) { time_decision(s, named_model(task), name); })
          ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark(
          ("peers/training/" + name + "/" + task).c_str(),
          [task, name](benchmark::State& s) { time_peer_training(s, named_model(task), name); })
          ->Unit(benchmark::kMillisecond);
    }
    const auto grown = [](benchmark::State& state) {
      return layered_model(static_cast<std::size_t>(state.range(0)));
    };
    benchmark::RegisterBenchmark(
        ("peers/growth/decision/" + name).c_str(),
        [grown, name](benchmark::State& s) { time_decision(s, grown(s), name); })
        ->RangeMultiplier(10)
        ->Range(100, largest_graph(name, false))
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(
        ("peers/growth/training/" + name).c_str(),
        [grown, name](benchmark::State& s) { time_peer_training(s, grown(s), name); })
        ->RangeMultiplier(10)
        ->Range(100, largest_graph(name, true))
        ->Unit(benchmark::kMillisecond);
  }
}

void add_all() {
  for (const std::string name : {"ffnn", "llama-layer", "llama-layer-8"}) {
    const std::string task = "published/" + name;
    benchmark::RegisterBenchmark(("paper/rollout/" + task).c_str(), [task](benchmark::State& s) {
      time_rollout(s, named_model(task), true);
    });
    benchmark::RegisterBenchmark(
        ("libtorch/known episode/" + task).c_str(),
        [task](benchmark::State& s) { time_batch_of_libtorch(s, named_model(task)); });
    benchmark::RegisterBenchmark(
        ("paper/message passing/" + task).c_str(),
        [task](benchmark::State& s) { time_embedding(s, named_model(task)); });
    for (const auto& [batch, n_threads] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{32, 2}}) {
      const std::string title = "paper/training, batch " + std::to_string(batch) + ", " +
                                std::to_string(n_threads) + " threads/" + task;
      benchmark::RegisterBenchmark(title.c_str(), [task, b = batch,
                                                   t = n_threads](benchmark::State& s) {
        time_training(s, named_model(task), b, t);
      })->UseRealTime();
    }
  }
  const auto layered = [](benchmark::State& state) {
    return layered_model(static_cast<std::size_t>(state.range(0)));
  };
  benchmark::RegisterBenchmark(
      "paper/growth/rollout",
      [layered](benchmark::State& s) { time_rollout(s, layered(s), s.range(0) <= 1000); })
      ->RangeMultiplier(10)
      ->Range(100, 100'000)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("paper/growth/message passing",
                               [layered](benchmark::State& s) { time_embedding(s, layered(s)); })
      ->RangeMultiplier(10)
      ->Range(100, 100'000)
      ->Unit(benchmark::kMillisecond);
  // Beyond 10,000 nodes the states that the gradient keeps take more memory than small machines
  // have.
  benchmark::RegisterBenchmark(
      "paper/growth/training",
      [layered](benchmark::State& s) { time_training(s, layered(s), 1, 1); })
      ->RangeMultiplier(10)
      ->Range(100, 10'000)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace doppler::benchmarks

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  doppler::benchmarks::add_all();
  doppler::benchmarks::add_peers();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
