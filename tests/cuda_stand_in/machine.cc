// The CUDA engine's module on a stand-in for CUDA: streams, memory, transfers, matrix calls, and
// every call failing once.
#include <map>
#include <string>
#include <vector>

#include "datasets/workloads/builtin.h"
#include "executor/cuda/cuda_engine.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/kernel_cases.h"
#include "tests/support/machine_run.h"
#include "tests/support/one_node.h"
#include "tests/support/random_cases.h"
#include "tests/support/small_workloads.h"

extern "C" doppler::cuda::OpenDevices doppler_cuda_open_devices;

namespace doppler {
namespace {

using Catch::Matchers::Contains;
using cuda::CudaOptions;
using cuda::Transport;
using testing::Draws;
using testing::MachineRun;

std::unique_ptr<runtime::DeviceApi> open(std::size_t n_devices, const CudaOptions& options) {
  return std::unique_ptr<runtime::DeviceApi>(doppler_cuda_open_devices(n_devices, options));
}

MachineRun machine(std::size_t n_devices, const CudaOptions& options) {
  return {open(n_devices, options), Cluster::uniform(static_cast<std::int64_t>(n_devices)),
          cuda::real_engine_options(options).lookahead};
}

// A graph with what the host makes of it.
struct Problem {
  explicit Problem(const Graph& of)
      : graph(of),
        inputs(testing::filled_inputs(graph, 5)),
        expected(testing::run_on_host(graph, inputs)) {}

  // Whether a run on random devices leaves that, up to the order of sums.
  void check(MachineRun& on, std::size_t n_devices, std::uint64_t seed) const {
    Draws draws(seed);
    RunOptions options = testing::random_options(draws, graph, n_devices);
    options.enforce_memory = false;
    const auto computed = on.run(
        graph, inputs, testing::random_assignment(draws, graph.n_nodes(), n_devices), options);
    const auto arrays = testing::output_arrays(graph, computed);
    const auto of_host = testing::output_arrays(graph, expected);
    std::size_t n_compared = 0;
    for (std::size_t v = 0; v < computed.size(); ++v) {
      if (computed[v].empty()) continue;
      ++n_compared;
      // Blocks by themselves: one of small numbers differs by more than the whole tensor's 1e-5.
      CHECK(testing::relative_distance(arrays[v], of_host[v]) <= 1e-4);
    }
    CHECK(n_compared > 0);
  }

  Graph graph;
  std::vector<testing::Bytes> inputs;
  std::vector<testing::Bytes> expected;
};

void check_no_faults() {
  for (const std::string& fault : stand_in::faults()) FAIL_CHECK(fault);
  CHECK(stand_in::n_alive() == 0);
}

// Small workloads on so many devices.
void check_workloads(std::size_t n_devices, const CudaOptions& options) {
  MachineRun on = machine(n_devices, options);
  std::uint64_t seed = 0;
  testing::for_each_small([&](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program || ++seed % 3 != 0) return;
    CAPTURE(entry.name, arguments);
    Problem(entry.make(testing::parameters_of(entry.name, arguments), 1))
        .check(on, n_devices, seed);
  });
}

}  // namespace

TEST_CASE("Matrix products are asked of cuBLAS in every layout") {
  stand_in::reset({});
  {
    MachineRun on = machine(1, {});
    for (const testing::KernelCase& one : testing::kernel_cases()) {
      CAPTURE(one.graph.attributes(NodeId(0)), to_string(one.graph.dtype(NodeId(0))));
      const auto expected = testing::run_on_host(one.graph, one.inputs);
      const auto computed = on.run(one.graph, one.inputs, Assignment(1, DeviceId(0)));
      CHECK(testing::relative_distance(testing::output_arrays(one.graph, computed).at(0),
                                       testing::output_arrays(one.graph, expected).at(0)) <=
            one.tolerance);
    }
  }
  check_no_faults();
}

TEST_CASE("Devices that share GPUs and devices of their own compute the same") {
  for (const std::vector<std::int32_t>& gpus :
       {std::vector<std::int32_t>{}, {0, 0, 0, 0}, {0, 0, 1, 1}, {3, 1, 0, 2}}) {
    for (const Transport transport : {Transport::peer, Transport::staged, Transport::nccl}) {
      CAPTURE(gpus, to_string(transport));
      stand_in::reset({.n_gpus = 4});
      check_workloads(4, {.gpus = gpus, .transport = transport});
      const stand_in::Traffic traffic = stand_in::traffic();
      const bool has_several = gpus != std::vector<std::int32_t>{0, 0, 0, 0};
      CHECK((traffic.between > 0) == (has_several && transport == Transport::peer));
      CHECK((traffic.to_host > 0) == (has_several && transport == Transport::staged));
      CHECK((traffic.nccl > 0) == (has_several && transport == Transport::nccl));
      CHECK(traffic.to_host == traffic.from_host);
      check_no_faults();
    }
  }
}

TEST_CASE("GPUs that cannot reach each other exchange data through the host") {
  stand_in::reset({.n_gpus = 3, .unreachable = {{0, 1}, {1, 0}, {2, 1}}});
  check_workloads(3, {});
  CHECK(stand_in::traffic().to_host > 0);
  CHECK(stand_in::traffic().between > 0);
  check_no_faults();
}

TEST_CASE("Devices of one GPU exchange data as if they were on several, if tests ask for it") {
  for (const Transport transport : {Transport::staged, Transport::nccl}) {
    CAPTURE(to_string(transport));
    stand_in::reset({});
    check_workloads(3, {.gpus = {0, 0, 0}, .transport = transport, .transports_within_gpu = true});
    CHECK((stand_in::traffic().nccl > 0) == (transport == Transport::nccl));
    CHECK(stand_in::traffic().within == 0);
    check_no_faults();
  }
}

TEST_CASE("Large data pass through pinned memory in pieces") {
  stand_in::reset({.n_gpus = 2});
  {
    // 1, 9 and 16 MiB and a rest: one half, both and a rest, both twice.
    MachineRun on = machine(2, {.transport = Transport::staged});
    for (const char* size : {"512", "1537", "2050"}) {
      GraphBuilder builder("copies");
      NodeAttributes attributes;
      attributes.index = "i j -> i j";
      const std::int64_t n = std::stoll(size);
      attributes.operands = {{{n, n}, {{OperandPiece::Source::input, 0, {0, 0}, {n, n}, {0, 0}}}}};
      const double bytes = static_cast<double>(4 * n * n);
      Node node{.name = "first",
                .kind = "relu",
                .outputs = {{bytes, {n, n}, DType::float32}},
                .attributes = to_json(attributes)};
      const NodeId first = builder.add_node(node);
      builder.add_reader(builder.add_input({"x", node.outputs[0], {}}), first);
      attributes.operands[0].pieces[0].source = OperandPiece::Source::edge;
      node.name = "second";
      node.attributes = to_json(attributes);
      builder.add_edge(first, builder.add_node(node));
      const Problem problem(builder.build());
      const auto computed = on.run(problem.graph, problem.inputs,
                                   Assignment(std::vector<DeviceId>{DeviceId(0), DeviceId(1)}));
      CHECK(computed[1] == problem.expected[1]);
    }
  }
  CHECK(stand_in::traffic().to_host == 1 + 3 + 5);
  check_no_faults();
}

TEST_CASE("A run in which any one call fails ends with an error, and the next one is right") {
  const Graph graph = make_workload("ffnn(batch=8,inputs=4,hidden=6,outputs=3,shards=2)", 2);
  const Problem problem(graph);
  for (const Transport transport : {Transport::peer, Transport::staged, Transport::nccl}) {
    const CudaOptions options{.gpus = {0, 1}, .transport = transport};
    stand_in::reset({.n_gpus = 2});
    long n_opening = 0;
    long n_all = 0;
    {
      MachineRun on = machine(2, options);
      n_opening = stand_in::n_calls();
      problem.check(on, 2, 1);
      n_all = stand_in::n_calls();
    }
    // Opening fails as a whole; nothing is left behind.
    for (long call = 0; call < n_opening; ++call) {
      CAPTURE(to_string(transport), call);
      stand_in::reset({.n_gpus = 2, .failing_call = call});
      try {
        machine(2, options);
      } catch (const RunError& error) {
        CHECK_FALSE(std::string(error.what()).empty());
      }
      check_no_faults();
    }
    long n_failed = 0;
    for (long call = n_opening; call < n_all; call += 3) {
      CAPTURE(to_string(transport), call);
      stand_in::reset({.n_gpus = 2, .failing_call = call});
      {
        MachineRun on = machine(2, options);
        // Threads do not always make the same number of calls.
        bool failed = false;
        for (std::uint64_t run = 1; run <= 3 && !failed; ++run) {
          try {
            problem.check(on, 2, run);
          } catch (const RunError&) {
            failed = true;
          }
        }
        if (failed) {
          ++n_failed;
          problem.check(on, 2, 4);
        }
      }
      check_no_faults();
    }
    CHECK(n_failed > 10);
  }
}

TEST_CASE("An NCCL that is older than the header is refused, a newer one is not") {
  const CudaOptions options{.transport = Transport::nccl};
  stand_in::reset({.nccl_version = 21000});
  try {
    open(1, options);
    FAIL("an old NCCL was accepted");
  } catch (const RunError& error) {
    CHECK_THAT(error.what(), Contains("NCCL 2.10.0") && Contains("transport=peer"));
  }
  stand_in::reset({.nccl_version = 29999});
  CHECK_NOTHROW(open(1, options));
  stand_in::reset({.nccl_version = 30000});
  CHECK_THROWS_AS(open(1, options), RunError);
  stand_in::reset({.nccl_version = 21000});
  CHECK_NOTHROW(open(1, {}));
}

TEST_CASE("A device has its share of its GPU's memory, or what it is told if that is less") {
  const std::size_t gigabyte = std::size_t{1} << 30;
  stand_in::reset({.n_gpus = 2, .memory = 5 * gigabyte});
  const auto devices = open(3, {.gpus = {0, 0, 1}, .memory = {1e6, 1e15, 1e15}});
  CHECK(devices->memory(DeviceId(0)) == 1000000);
  CHECK(devices->memory(DeviceId(1)) == 2 * gigabyte);
  CHECK(devices->memory(DeviceId(2)) == 4 * gigabyte);
  const auto stream = devices->make_stream(DeviceId(0), runtime::StreamUse::kernels);
  const runtime::Buffer buffer = stream->allocate(DeviceId(0), 600000);
  CHECK_THROWS_AS(stream->allocate(DeviceId(0), 600000), RunError);
  stream->release(buffer);
  stream->release(stream->allocate(DeviceId(0), 600000));
}

TEST_CASE("No GPU, or not the one that is named, is told in one line") {
  stand_in::reset({.n_gpus = 0});
  CHECK_THROWS_WITH(open(1, {}), Contains("finds no GPU"));
  stand_in::reset({.n_gpus = 2});
  CHECK_THROWS_WITH(open(1, {.gpus = {2}}), Contains("no GPU 2"));
}

}  // namespace doppler
