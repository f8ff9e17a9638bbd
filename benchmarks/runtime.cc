// What the runtime itself costs on the CPU engine: wall time of empty nodes. `per node` and `per
// edge` are microseconds; a run is the engine's own makespan, without the making of its plan.
#include <benchmark/benchmark.h>

#include <string>

#include "executor/engine.h"
#include "graphs/graph_builder.h"

namespace doppler::benchmarks {
namespace {

constexpr std::int64_t kNodes = 10'000;
constexpr double kMicro = 1e6;

Graph empty_nodes(bool chain, double bytes) {
  GraphBuilder builder(chain ? "chain" : "wide");
  for (std::int64_t v = 0; v < kNodes; ++v) {
    builder.add_node({.name = "n" + std::to_string(v), .outputs = {{.bytes = bytes}}});
    if (chain && v > 0) builder.add_edge(NodeId(v - 1), NodeId(v));
  }
  return builder.build();
}

Assignment alternating(std::int64_t n_devices) {
  Assignment assignment(kNodes, DeviceId(0));
  for (std::int64_t v = 0; v < kNodes; ++v) assignment[NodeId(v)] = DeviceId(v % n_devices);
  return assignment;
}

void time_nodes(benchmark::State& state, const std::string& counter, bool chain,
                std::int64_t n_devices, double bytes) {
  const EngineEntry& entry = engines().at("cpu");
  const auto engine = entry.make(Parameters(
      entry.parameters, NamedCall::parse("cpu(emulate_links=false,warm_up=0,repeats=1)")));
  const Graph graph = empty_nodes(chain, bytes);
  const Cluster cluster = Cluster::uniform(n_devices);
  const Assignment assignment = alternating(n_devices);
  double seconds = 0;
  for (auto _ : state) {
    const double makespan =
        engine->run(graph, cluster, CostModel::analytical(), assignment, {}).makespan;
    state.SetIterationTime(makespan);
    seconds += makespan;
  }
  state.counters[counter] = kMicro * seconds / static_cast<double>(kNodes * state.iterations());
}

void add_all() {
  const auto add = [](const std::string& name, const std::string& counter, bool chain,
                      std::int64_t n_devices, double bytes) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [=](benchmark::State& state) { time_nodes(state, counter, chain, n_devices, bytes); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(20);
  };
  add("cpu/10000 empty nodes/wide/1 device", "us per node", false, 1, 0);
  add("cpu/10000 empty nodes/wide/2 devices", "us per node", false, 2, 0);
  add("cpu/10000 empty nodes/chain/1 device", "us per node", true, 1, 0);
  add("cpu/10000 empty nodes/alternating chain/2 devices", "us per edge", true, 2, 0);
  add("cpu/10000 empty nodes/alternating chain of 4 KiB tensors/2 devices", "us per edge", true, 2,
      4096);
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
