// The runtime on a machine that does everything that is allowed to go slowly, out of step or wrong.
#include "executor/runtime/session.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/engine.h"
#include "executor/simulator/memory.h"
#include "executor/simulator/record.h"
#include "executor/simulator/simulator.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"
#include "tests/support/trial_machine.h"

namespace doppler {
namespace {

using runtime::Dispatcher;
using runtime::Lanes;
using runtime::Lookahead;
using runtime::RunPlan;
using runtime::Session;
using runtime::SessionOptions;
using runtime::Stream;
using runtime::StreamSet;
using runtime::StreamUse;
using simulation::Model;
using simulation::Timeline;
using testing::Draws;
using testing::random_case;
using testing::RandomCase;
using testing::TrialMachine;
using testing::TrialOptions;

std::vector<std::int32_t> by_position(const Graph& graph, const Assignment& assignment) {
  std::vector<std::int32_t> devices;
  for (const NodeId node : graph.topological_order()) {
    devices.push_back(assignment.devices[node.index()].value);
  }
  return devices;
}

// A random problem and a way to run it.
struct Trial {
  RandomCase problem;
  SessionOptions session;
};

Trial random_trial(std::uint64_t seed) {
  Trial trial{random_case(seed), {}};
  trial.problem.options.enforce_memory = false;
  Draws draws(seed + 1'000'000);
  trial.session.lanes = draws.chance(0.5) ? Lanes::channels : Lanes::pairs;
  trial.session.lookahead.depth = static_cast<std::int32_t>(draws.between(1, 4));
  trial.session.lookahead.chained = draws.chance(0.5);
  trial.session.make_input = TrialMachine::make_input;
  return trial;
}

Model model_of(const RandomCase& problem) {
  return {problem.graph, problem.cluster, problem.cost_model, problem.options};
}

// What must hold of every run, whatever the machine's luck.
void check_timeline(const RandomCase& problem, const Timeline& timeline) {
  const Graph& graph = problem.graph;
  double last = 0;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const auto p = static_cast<std::size_t>(graph.position(NodeId(static_cast<std::int64_t>(v))));
    CHECK(timeline.ready[p] <= timeline.start[p]);
    CHECK(timeline.start[p] <= timeline.end[p]);
    last = std::max(last, timeline.end[p]);
  }
  CHECK(timeline.makespan == last);
  for (const simulation::Transfer& transfer : timeline.transfers) {
    CHECK(transfer.requested <= transfer.start);
    CHECK(transfer.start <= transfer.end);
  }
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    const auto producer = static_cast<std::size_t>(graph.position(edge.producer));
    const auto reader = static_cast<std::size_t>(graph.position(edge.reader));
    CHECK(timeline.end[producer] <= timeline.start[reader]);
  }
}

void check_results(const Graph& graph, Session& session, const Model& model,
                   const std::vector<std::int32_t>& devices, Timeline& timeline) {
  std::vector<bool> seen(graph.n_tensors(), false);
  session.run(model, devices, timeline, [&](TensorId tensor, std::span<const std::byte> data) {
    seen[tensor.index()] = true;
    CHECK(TrialMachine::is_tensor(tensor, data));
  });
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    const TensorId tensor(static_cast<std::int64_t>(t));
    const NodeId producer = graph.tensor_producer(tensor);
    bool is_read = false;
    for (const EdgeId e : graph.out_edges(producer)) {
      is_read = is_read || graph.edge_tensor(e) == tensor;
    }
    CHECK(seen[t] != is_read);
  }
}

TEST_CASE("A run keeps every rule of memory and order, whatever the machine does") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Trial trial = random_trial(seed);
    INFO("seed " << seed << ": " << trial.problem);
    TrialMachine machine({.seed = seed, .threads = 1 + static_cast<int>(seed % 3)});
    {
      Session session(machine.api(), trial.problem.cluster, trial.session);
      const Model model = model_of(trial.problem);
      Timeline timeline;
      check_results(trial.problem.graph, session, model,
                    by_position(trial.problem.graph, trial.problem.assignment), timeline);
      check_timeline(trial.problem, timeline);
      REQUIRE(timeline.transfers.size() <= model.max_transfers);
      // Another assignment on the same session.
      Draws draws(seed);
      const Assignment other = testing::random_assignment(draws, trial.problem.graph.n_nodes(),
                                                          trial.problem.cluster.n_devices());
      check_results(trial.problem.graph, session, model, by_position(trial.problem.graph, other),
                    timeline);
    }
    REQUIRE(machine.faults() == std::vector<std::string>());
    REQUIRE(machine.n_live_blocks() == 0);
    REQUIRE(machine.n_live_streams() == 0);
    REQUIRE(machine.most_under_way() <= static_cast<std::size_t>(trial.session.lookahead.depth));
  }
}

TEST_CASE("Whatever call fails, the run ends with an error and the next one is right") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Trial trial = random_trial(seed);
    const Model model = model_of(trial.problem);
    const auto devices = by_position(trial.problem.graph, trial.problem.assignment);
    bool came = true;
    for (std::int64_t failing = 0; came; ++failing) {
      INFO("seed " << seed << ", call " << failing << ": " << trial.problem);
      TrialMachine machine({.seed = seed, .threads = 2, .failing = failing});
      bool threw = false;
      try {
        Session session(machine.api(), trial.problem.cluster, trial.session);
        Timeline timeline;
        try {
          session.run(model, devices, timeline, [](TensorId, std::span<const std::byte>) {});
        } catch (const RunError& error) {
          threw = true;
          REQUIRE(std::string(error.what()).find("told to fail") != std::string::npos);
        }
        machine.heal();
        check_results(trial.problem.graph, session, model, devices, timeline);
      } catch (const RunError&) {
        threw = true;  // the session could not be opened
      }
      came = machine.has_failed();
      REQUIRE(threw == came);
      REQUIRE(machine.faults() == std::vector<std::string>());
      REQUIRE(machine.n_live_blocks() == 0);
      REQUIRE(machine.n_live_streams() == 0);
    }
  }
}

// Two nodes in a row on two devices, and a graph input.
struct Pair {
  Graph graph;
  Cluster cluster = Cluster::uniform(2);
  Model model;
  Pair() : graph(make()), model(graph, cluster, CostModel::analytical(), {}) {}
  static Graph make() {
    GraphBuilder builder("pair");
    builder.add_node({.name = "first", .flops = 1, .outputs = {{.bytes = 40}}});
    builder.add_node({.name = "second", .flops = 1, .outputs = {{.bytes = 8}}});
    builder.add_edge(NodeId(0), NodeId(1));
    builder.add_input({.name = "weights", .tensor = {.bytes = 100}, .readers = {NodeId(1)}});
    return builder.build();
  }
};

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("The error of a failed kernel names the node and its device") {
  const Pair pair;
  const std::vector<std::int32_t> devices = {0, 1};
  std::vector<std::string> messages;
  // Two streams are made, the graph is loaded, ...; among the calls are both kernels.
  for (std::int64_t failing = 0; failing < 20; ++failing) {
    TrialMachine machine({.seed = 1, .threads = 1, .failing = failing});
    messages.push_back(message_of([&] {
      Session session(machine.api(), pair.cluster, {});
      Timeline timeline;
      session.run(pair.model, devices, timeline);
    }));
  }
  const auto count = [&](const std::string& message) {
    return std::count(messages.begin(), messages.end(), message);
  };
  CHECK(count("node 'first' on device 0 failed: told to fail on the way") == 1);
  CHECK(count("node 'second' on device 1 failed: told to fail on the way") == 1);
  CHECK(count("node 'first' on device 0 failed: told to fail in run") == 1);
  CHECK(count("the transfer of the output of node 'first' from device 0 to 1 failed: told to fail "
              "on the way") == 1);
}

TEST_CASE("What cannot fit is refused before the run, and the node is named") {
  const Pair pair;
  // Node "second" needs the input (100), its operand (40) and its output (8).
  for (const std::size_t memory : {147U, 148U}) {
    TrialMachine machine({.threads = 1, .memory = memory});
    Session session(machine.api(), pair.cluster, {.make_input = TrialMachine::make_input});
    Timeline timeline;
    const auto run = [&] { session.run(pair.model, std::vector<std::int32_t>{0, 1}, timeline); };
    if (memory == 148) {
      CHECK_NOTHROW(run());
    } else {
      CHECK(message_of(run).find("node 'second' does not fit on device 1") == 0);
      CHECK(machine.n_live_blocks() == 0);
    }
  }
}

TEST_CASE("A device that fills up during a run is an error that names the node") {
  GraphBuilder builder("results");
  for (int v = 0; v < 5; ++v) {
    builder.add_node({.name = "n" + std::to_string(v), .flops = 1, .outputs = {{.bytes = 10}}});
  }
  const Graph graph = builder.build();
  const Cluster cluster = Cluster::uniform(1);
  const Model model(graph, cluster, CostModel::analytical(), {});
  TrialMachine machine({.threads = 1, .memory = 49});
  Session session(machine.api(), cluster, {});
  Timeline timeline;
  try {
    session.run(model, std::vector<std::int32_t>(5, 0), timeline);
    FAIL("five results of 10 bytes fit into 49");
  } catch (const OutOfMemoryError& error) {
    CHECK(std::string(error.what()).find("node 'n4' on device 0 failed") == 0);
    CHECK(error.lack == OutOfMemory{DeviceId(0), 50, 49});
  }
}

TEST_CASE("Inputs that only other assignments need make room") {
  const Pair pair;
  TrialMachine machine({.threads = 1, .memory = 148});
  Session session(machine.api(), pair.cluster, {.make_input = TrialMachine::make_input});
  Timeline timeline;
  for (const std::vector<std::int32_t>& devices :
       {std::vector<std::int32_t>{0, 1}, {1, 0}, {0, 0}, {1, 1}}) {
    CHECK_NOTHROW(session.run(pair.model, devices, timeline));
  }
  CHECK(machine.faults() == std::vector<std::string>());
}

// The case with durations that are never equal by chance, so that no two ends fall together.
RandomCase without_ties(const RandomCase& problem, std::uint64_t seed) {
  Draws draws(seed);
  const Graph& graph = problem.graph;
  GraphBuilder builder("without ties");
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    Node node = graph.node(NodeId(static_cast<std::int64_t>(v)));
    for (Tensor& tensor : node.outputs) tensor.bytes = 1 + draws.real();
    builder.add_node(node);
  }
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    builder.add_edge(edge.producer, edge.reader, edge.output);
  }
  for (GraphInput input : graph.inputs()) {
    input.tensor.bytes = 1 + draws.real();
    builder.add_input(std::move(input));
  }
  std::vector<double> seconds(graph.n_nodes());
  for (double& x : seconds) x = 0.1 + draws.real();
  builder.set_raw_compute(std::move(seconds), 1);
  RandomCase result = problem;
  result.graph = builder.build();
  result.cost_model = CostModel::raw();
  result.options.noise = 0;
  result.options.network = Network::channel;
  result.options.enforce_memory = false;
  return result;
}

// Whether some transfers take the same time whatever their bytes.
bool has_unlimited_links(const Cluster& cluster) {
  for (std::size_t a = 0; a < cluster.n_devices(); ++a) {
    for (std::size_t b = 0; b < cluster.n_devices(); ++b) {
      const auto id = [](std::size_t d) { return DeviceId(static_cast<std::int64_t>(d)); };
      if (a != b && cluster.route(id(a), id(b)).bandwidth == kUnlimited) return true;
    }
  }
  return false;
}

TEST_CASE("On a machine that keeps the cost model's times, a run is what the simulator says") {
  std::size_t n_compared = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomCase problem = without_ties(random_case(seed), seed);
    if (has_unlimited_links(problem.cluster)) continue;
    ++n_compared;
    INFO("seed " << seed << ": " << problem);
    const Model model = model_of(problem);
    const Execution expected =
        Simulator(problem.graph, problem.cluster, problem.cost_model, problem.options)
            .run(problem.assignment);

    TrialMachine machine({.prompt = true, .seconds = [&](NodeId node, DeviceId device) {
                            return problem.cost_model.compute(problem.graph, node, problem.cluster,
                                                              device);
                          }});
    const auto api = machine.api();
    api->load(problem.graph);
    const RunPlan plan(model, by_position(problem.graph, problem.assignment));
    std::vector<std::unique_ptr<Stream>> streams;
    StreamSet set;
    for (std::size_t d = 0; d < problem.cluster.n_devices(); ++d) {
      const DeviceId device(static_cast<std::int64_t>(d));
      set.slots.emplace_back();
      for (std::int32_t s = 0; s < problem.cluster.device(device).streams; ++s) {
        streams.push_back(api->make_stream(device, StreamUse::kernels));
        set.slots.back().push_back(streams.back().get());
      }
    }
    std::vector<std::int32_t> channels;
    for (const runtime::PlannedTransfer& transfer : plan.transfers) {
      const auto found = std::find(channels.begin(), channels.end(), transfer.channel);
      set.lane_of_transfer.push_back(static_cast<std::uint32_t>(found - channels.begin()));
      if (found != channels.end()) continue;
      channels.push_back(transfer.channel);
      streams.push_back(api->make_stream(DeviceId(transfer.from), StreamUse::copies));
      set.lanes.push_back(streams.back().get());
    }
    std::vector<runtime::Buffer> inputs;
    for (const runtime::PlannedInput& input : plan.inputs) {
      const std::size_t bytes = plan.blocks[input.block].bytes;
      std::vector<std::byte> data(bytes);
      TrialMachine::make_input(problem.graph, input.input, data);
      inputs.push_back(set.slots[input.device.index()].front()->allocate(input.device, bytes));
      api->write(inputs.back(), data);
    }
    {
      Dispatcher dispatcher(plan, *api, set, inputs, {});
      dispatcher.emulate_links(true);
      Timeline timeline;
      dispatcher.start(timeline);
      while (machine.step()) {
      }
      dispatcher.wait();
      simulation::MemoryMeter meter(model);
      const Execution execution =
          record(model, plan.devices, timeline, meter.peaks(plan.devices, timeline));
      REQUIRE(execution == expected);
    }
    REQUIRE(machine.faults() == std::vector<std::string>());
    for (const runtime::Buffer& input : inputs) set.slots[0].front()->release(input);
    REQUIRE(machine.n_live_blocks() == 0);
  }
  REQUIRE(n_compared > 1000);
}

}  // namespace
}  // namespace doppler
