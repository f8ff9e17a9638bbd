// The CPU engine: threads, real kernels, real copies.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "datasets/workloads.h"
#include "executor/cpu/cpu_devices.h"
#include "executor/runtime/machine_lock.h"
#include "executor/runtime/real_engine.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/random_cases.h"
#include "tests/support/small_workloads.h"

namespace doppler {
namespace {

using runtime::RealEngine;
using testing::Draws;

constexpr std::uint64_t kInputSeed = 5;

std::unique_ptr<runtime::DeviceApi> open_devices(const Cluster& cluster, bool limit_memory) {
  return cpu::open_cpu_devices(cluster, limit_memory, true);
}

RealEngine cpu_engine(bool emulate_links = false) {
  return RealEngine({.open = open_devices,
                     .emulate_links = emulate_links,
                     .warm_up = 0,
                     .repeats = 1,
                     .input_seed = kInputSeed});
}

std::unique_ptr<Engine> engine_of(const std::string& spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const EngineEntry& entry = engines().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

// Runs of a graph, of which each must leave what the host computes node by node, to the last bit.
class Comparison {
 public:
  Comparison(RealEngine& engine, const Graph& graph)
      : engine_(engine),
        graph_(graph),
        expected_(testing::run_on_host(graph, testing::filled_inputs(graph, kInputSeed))) {}

  void check(const Cluster& cluster, const Assignment& assignment, const RunOptions& options) {
    std::size_t n_results = 0;
    const Execution execution = engine_.run_once(
        graph_, cluster, CostModel::analytical(), assignment, options,
        [&](TensorId tensor, std::span<const std::byte> data) {
          ++n_results;
          const auto& expected = expected_[graph_.tensor_producer(tensor).index()];
          CHECK(std::equal(data.begin(), data.end(), expected.begin(), expected.end()));
        });
    CHECK(n_results > 0);
    CHECK(execution.makespan > 0);
  }

 private:
  RealEngine& engine_;
  Graph graph_;
  std::vector<testing::Bytes> expected_;
};

TEST_CASE("Every workload computes on the CPU engine what it computes node by node") {
  RealEngine engine = cpu_engine();
  std::uint64_t seed = 0;
  testing::for_each_small([&](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    CAPTURE(entry.name, arguments);
    const Graph graph = entry.make(testing::parameters_of(entry.name, arguments), 1);
    Comparison comparison(engine, graph);
    Draws draws(++seed);
    for (int i = 0; i < 3; ++i) {
      const std::size_t n_devices = 1 + draws.below(8);
      RunOptions options = testing::random_options(draws, graph, n_devices);
      options.enforce_memory = false;
      comparison.check(Cluster::uniform(static_cast<std::int64_t>(n_devices)),
                       testing::random_assignment(draws, graph.n_nodes(), n_devices), options);
    }
  });
}

TEST_CASE("Devices with several slots and any lookahead compute the same") {
  const Graph graph = make_workload("ffnn(batch=40,inputs=8,hidden=30,outputs=6,shards=3)", 3);
  Draws draws(3);
  for (const std::int32_t depth : {1, 2, 3}) {
    for (const bool chained : {false, true}) {
      RealEngine engine({.open = open_devices,
                         .lanes = runtime::Lanes::pairs,
                         .lookahead = {depth, chained},
                         .input_seed = kInputSeed});
      Comparison comparison(engine, graph);
      for (const std::int32_t streams : {1, 3}) {
        ClusterParts parts = Cluster::uniform(3).parts();
        for (Device& device : parts.devices) device.streams = streams;
        comparison.check(Cluster(parts), testing::random_assignment(draws, graph.n_nodes(), 3), {});
      }
    }
  }
}

// Two devices whose links both ways hold one channel.
Cluster slow_pair(double latency, double bandwidth) {
  ClusterParts parts;
  parts.name = "slow pair";
  parts.devices.resize(2);
  parts.channels = {{"both ways", bandwidth}};
  parts.links = {{DeviceId(0), DeviceId(1), latency, bandwidth, ChannelId(0)},
                 {DeviceId(1), DeviceId(0), latency, bandwidth, ChannelId(0)}};
  return Cluster(parts);
}

TEST_CASE("An emulated link is never faster than it says, and its channel holds one transfer") {
  const Graph graph = make_workload("chainmm(n=32,shards=2)", 2);
  const double latency = 2e-4;
  const double bandwidth = 4e6;
  const Cluster cluster = slow_pair(latency, bandwidth);
  RealEngine engine = cpu_engine(true);
  Draws draws(1);
  for (int i = 0; i < 5; ++i) {
    const Execution execution =
        engine.run(graph, cluster, CostModel::analytical(),
                   testing::random_assignment(draws, graph.n_nodes(), 2), {});
    std::vector<TransferRun> transfers = execution.transfers;
    for (const TransferRun& transfer : transfers) {
      CHECK(transfer.end - transfer.start >= latency + transfer.bytes / bandwidth);
      CHECK(transfer.requested <= transfer.start);
    }
    std::sort(transfers.begin(), transfers.end(),
              [](const TransferRun& a, const TransferRun& b) { return a.start < b.start; });
    for (std::size_t t = 1; t < transfers.size(); ++t) {
      CHECK(transfers[t - 1].end <= transfers[t].start);
    }
  }
}

TEST_CASE("The timeline of a real run has the records of a simulated one") {
  const Graph graph = make_workload("llama-block(sequence=8,width=16,heads=4,hidden=12)", 2);
  Draws draws(2);
  const Cluster cluster = Cluster::uniform(2);
  const Assignment assignment = testing::random_assignment(draws, graph.n_nodes(), 2);
  const auto real = engine_of("cpu(emulate_links=false,warm_up=1,repeats=4)");
  const auto simulator = engine_of("simulator");
  const CostModel costs = CostModel::analytical();
  const Execution measured = real->run(graph, cluster, costs, assignment, {});
  const Execution simulated = simulator->run(graph, cluster, costs, assignment, {});

  CHECK(measured.bytes_moved == simulated.bytes_moved);
  CHECK(measured.bytes_local == simulated.bytes_local);
  REQUIRE(measured.nodes.size() == simulated.nodes.size());
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    CHECK(measured.nodes[v].device == simulated.nodes[v].device);
    CHECK(measured.nodes[v].ready <= measured.nodes[v].start);
    CHECK(measured.nodes[v].start <= measured.nodes[v].end);
  }
  const auto moves = [](const Execution& execution) {
    std::vector<std::tuple<TensorId, DeviceId, DeviceId, ChannelId, double>> result;
    for (const TransferRun& t : execution.transfers) {
      result.emplace_back(t.tensor, t.from, t.to, t.channel, t.bytes);
    }
    std::sort(result.begin(), result.end());
    return result;
  };
  CHECK(moves(measured) == moves(simulated));

  // The second smallest of four is the median; the timeline is that run's.
  std::vector<double> makespans = measured.makespans;
  REQUIRE(makespans.size() == 4);
  std::sort(makespans.begin(), makespans.end());
  CHECK(measured.makespan == makespans[1]);
  double last = 0;
  for (const NodeRun& node : measured.nodes) last = std::max(last, node.end);
  CHECK(measured.makespan == last);
  CHECK(simulated.makespans.empty());

  const Execution brief = real->run(graph, cluster, costs, assignment, {.record_timeline = false});
  CHECK(brief.nodes.empty());
  CHECK(brief.transfers.empty());
  CHECK(brief.makespan > 0);
}

TEST_CASE("A bulk synchronous run has a barrier after each level and its transfers") {
  const Graph graph = make_workload("chainmm(n=24,shards=2)", 2);
  Draws draws(4);
  RealEngine engine = cpu_engine();
  const Execution execution = engine.run(graph, Cluster::uniform(3), CostModel::analytical(),
                                         testing::random_assignment(draws, graph.n_nodes(), 3),
                                         {.schedule = Schedule::bulk_synchronous});
  std::map<std::int32_t, double> first_start;
  std::map<std::int32_t, double> last_end;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const std::int32_t level = graph.level(NodeId(static_cast<std::int64_t>(v)));
    const NodeRun& node = execution.nodes[v];
    const auto [first, added] = first_start.emplace(level, node.start);
    first->second = std::min(first->second, node.start);
    last_end[level] = std::max(last_end[level], node.end);
  }
  std::map<std::int32_t, double> barrier = last_end;
  for (const TransferRun& transfer : execution.transfers) {
    const std::int32_t level = graph.level(graph.tensor_producer(transfer.tensor));
    CHECK(last_end.at(level) <= transfer.start);
    barrier[level] = std::max(barrier[level], transfer.end);
  }
  for (const auto& [level, end] : barrier) {
    if (first_start.contains(level + 1)) CHECK(end <= first_start.at(level + 1));
  }
}

TEST_CASE("What the CPU engine cannot run is refused and named") {
  RealEngine engine = cpu_engine();
  const Cluster cluster = Cluster::uniform(1);
  const auto message_of = [&](const Graph& graph) -> std::string {
    try {
      engine.run(graph, cluster, CostModel::of(graph), Assignment(graph.n_nodes(), DeviceId(0)),
                 {});
    } catch (const InvalidError& error) {
      return error.what();
    }
    return "";
  };
  GraphBuilder raw;
  raw.add_node({.name = "costs alone", .outputs = {{.bytes = 8}}});
  raw.set_raw_compute({1});
  CHECK(message_of(raw.build()).find("'costs alone'") != std::string::npos);
  GraphBuilder flops;
  flops.add_node({.name = "mystery", .flops = 1, .outputs = {{.bytes = 8}}});
  CHECK(message_of(flops.build()).find("'mystery'") != std::string::npos);
  // What has nothing to do does nothing.
  GraphBuilder empty;
  empty.add_node({.name = "nothing", .outputs = {{.bytes = 8}}});
  CHECK(message_of(empty.build()).empty());
  CHECK(message_of(make_workload("random-dag(n=50)", 2)).empty());
  CHECK_THROWS_AS(
      engine.run(empty.build(), cluster, CostModel::analytical(), Assignment(1, DeviceId(1)), {}),
      InvalidError);
}

TEST_CASE("Memory is what the cluster says if it is enforced") {
  ClusterParts parts = Cluster::uniform(1).parts();
  parts.devices[0].memory = 100;
  const Cluster cluster(parts);
  GraphBuilder builder;
  builder.add_node({.name = "large", .outputs = {{.bytes = 101}}});
  const Graph graph = builder.build();
  RealEngine engine = cpu_engine();
  const auto run = [&](bool enforce) {
    return engine.run(graph, cluster, CostModel::analytical(), Assignment(1, DeviceId(0)),
                      {.enforce_memory = enforce});
  };
  CHECK(run(false).devices[0].peak_memory == 101);
  CHECK_THROWS_AS(run(true), OutOfMemoryError);
  CHECK_NOTHROW(run(false));
}

TEST_CASE("Real executions hold the machine's lock, and threads share an engine") {
  const std::string path = runtime::MachineLock::path();
  const auto is_free = [&] {
    const int file = ::open(path.c_str(), O_RDONLY);
    const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return free;
  };
  {
    const runtime::MachineLock lock;
    CHECK(!is_free());
  }

  RealEngine engine = cpu_engine();
  const Graph graph = make_workload("chainmm(n=16,shards=2)", 2);
  Comparison comparison(engine, graph);
  std::vector<std::jthread> threads;
  std::vector<double> makespans(4);
  for (std::size_t t = 0; t < makespans.size(); ++t) {
    threads.emplace_back([&, t] {
      Draws draws(t);
      for (int i = 0; i < 5; ++i) {
        makespans[t] = engine
                           .run(graph, Cluster::uniform(2), CostModel::analytical(),
                                testing::random_assignment(draws, graph.n_nodes(), 2), {})
                           .makespan;
      }
    });
  }
  threads.clear();
  for (const double makespan : makespans) CHECK(makespan > 0);
}

TEST_CASE("links that would hold the machine for hours are refused, and can be left out") {
  GraphBuilder builder;
  const NodeId producer = builder.add_node({.name = "a", .outputs = {{.bytes = 1e9}}});
  const NodeId reader = builder.add_node({.name = "b"});
  builder.add_edge(producer, reader);
  const Graph graph = builder.build();
  const Assignment apart{{DeviceId{0}, DeviceId{1}}};
  const Cluster slow = Cluster::uniform(2);  // 1 byte/s
  CHECK_THROWS_WITH(
      engine_of("cpu")->run(graph, slow, CostModel::analytical(), apart, {}),
      Catch::Matchers::Contains("emulate_links=false") && Catch::Matchers::Contains("uniform"));
}

}  // namespace
}  // namespace doppler
