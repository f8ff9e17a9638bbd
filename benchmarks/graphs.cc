// Reading and writing graph files; the time per node must not grow with the size.
#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "graphs/formats.h"
#include "graphs/graph_builder.h"

namespace doppler {
namespace {

// Layers of 64 nodes; each node reads two of the layer above. Held exactly by both formats.
Graph layers(std::int64_t n_nodes) {
  constexpr std::int64_t kWidth = 64;
  GraphBuilder builder;
  std::vector<double> raw;
  for (std::int64_t v = 0; v < n_nodes; ++v) {
    raw.push_back(static_cast<double>(v) * 0.1);
    builder.add_node({.name = std::to_string(v),
                      .kind = "einsum",
                      .flops = raw.back(),
                      .outputs = {Tensor{4096.0 + static_cast<double>(v), {}, DType::float32}}});
    if (v < kWidth) continue;
    const std::int64_t above = v / kWidth * kWidth - kWidth;
    builder.add_edge(NodeId{above + v % kWidth}, NodeId{v});
    builder.add_edge(NodeId{above + (v + 1) % kWidth}, NodeId{v});
  }
  builder.set_raw_compute(std::move(raw));
  return builder.build();
}

using Write = std::string (*)(const Graph&);
using Read = Graph (*)(std::string_view, const std::string&);

void read_file_text(benchmark::State& state, Write write, Read read) {
  const Graph graph = layers(state.range(0));
  const std::string text = write(graph);
  if (read(text, "benchmark") != graph) throw std::logic_error("the file does not read back equal");
  for (auto _ : state) benchmark::DoNotOptimize(read(text, "benchmark"));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
  state.SetComplexityN(state.range(0));
}

void write_file_text(benchmark::State& state, Write write, Read read) {
  const Graph graph = layers(state.range(0));
  if (read(write(graph), "benchmark") != graph) {
    throw std::logic_error("the file does not read back equal");
  }
  for (auto _ : state) benchmark::DoNotOptimize(write(graph));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetComplexityN(state.range(0));
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->RangeMultiplier(10)->Range(100, 1000000)->Unit(benchmark::kMillisecond)->Complexity();
}

BENCHMARK_CAPTURE(read_file_text, json, to_json, parse_graph_json)->Apply(sizes);
BENCHMARK_CAPTURE(read_file_text, text, to_text, parse_graph_text)->Apply(sizes);
BENCHMARK_CAPTURE(write_file_text, json, to_json, parse_graph_json)->Apply(sizes);
BENCHMARK_CAPTURE(write_file_text, text, to_text, parse_graph_text)->Apply(sizes);

}  // namespace
}  // namespace doppler

BENCHMARK_MAIN();
