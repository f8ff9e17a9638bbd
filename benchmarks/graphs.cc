// Graphs: building, memory, reading and analysis.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <fstream>
#include <string>

#include "benchmarks/layered_graph.h"
#include "graphs/analysis.h"
#include "graphs/formats.h"
#include "graphs/lower_bound.h"

namespace doppler::benchmarks {
namespace {

constexpr std::size_t kWidth = 64;

void count_nodes(benchmark::State& state, std::size_t n) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(n));
}

// A line of /proc/self/status, in bytes.
double process_memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kibibytes = 0;
  while (status >> word) {
    if (word == field + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

// Bytes that stay resident for the graph, and the most that were while it was built.
void build(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  double resident = 0;
  double peak = 0;
  for (auto _ : state) {
    state.PauseTiming();
    malloc_trim(0);
    const double before = process_memory("VmRSS");
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak counts from here
    state.ResumeTiming();
    const Graph graph = layered_graph(n, kWidth);
    state.PauseTiming();
    peak = process_memory("VmHWM") - before;
    malloc_trim(0);
    resident = process_memory("VmRSS") - before;
    state.ResumeTiming();
  }
  count_nodes(state, n);
  state.counters["resident_bytes"] = resident;
  state.counters["peak_bytes"] = peak;
}

// Reads `content`, which must give `graph` again.
template <class Parse>
void read(benchmark::State& state, const Graph& graph, const std::string& content, Parse parse) {
  if (!(parse(content, "benchmark") == graph)) {
    state.SkipWithError("the graph that is read is not the one that was written");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(parse(content, "benchmark"));
  count_nodes(state, graph.n_nodes());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(content.size()));
}

void read_json(benchmark::State& state) {
  const Graph graph = layered_graph(static_cast<std::size_t>(state.range(0)), kWidth);
  read(state, graph, to_json(graph), parse_graph_json);
}

void read_text(benchmark::State& state) {
  // The text format has no names: what it holds is what was read once.
  const std::string content =
      to_text(layered_graph(static_cast<std::size_t>(state.range(0)), kWidth));
  read(state, parse_graph_text(content, "benchmark"), content, parse_graph_text);
}

void analyse(benchmark::State& state) {
  const Graph graph = layered_graph(static_cast<std::size_t>(state.range(0)), kWidth);
  const Cluster cluster = Cluster::uniform(4);
  for (auto _ : state) {
    const CostTable costs(graph, cluster, CostModel::raw());
    benchmark::DoNotOptimize(levels(graph, costs));
    benchmark::DoNotOptimize(lower_bound(graph, cluster, costs));
  }
  count_nodes(state, graph.n_nodes());
}

BENCHMARK(build)->Name("graphs/build")->Arg(1'000'000)->Iterations(1);
BENCHMARK(read_json)->Name("graphs/read json")->Arg(100'000);
BENCHMARK(read_text)->Name("graphs/read text")->Arg(100'000);
BENCHMARK(analyse)->Name("graphs/levels and lower bound")->Arg(100'000);

}  // namespace
}  // namespace doppler::benchmarks

BENCHMARK_MAIN();
