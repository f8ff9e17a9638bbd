// The CUDA engine. What needs no GPU is tested everywhere; the rest is reported as skipped where
// there is none.
#include "executor/cuda/cuda_engine.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "datasets/workloads/builtin.h"
#include "executor/cpu/cpu_devices.h"
#include "executor/cuda/cuda_devices.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/gpu.h"
#include "tests/support/graph_values.h"
#include "tests/support/kernel_cases.h"
#include "tests/support/machine_run.h"
#include "tests/support/one_node.h"
#include "tests/support/random_cases.h"
#include "tests/support/small_workloads.h"

namespace doppler {
namespace {

using Catch::Matchers::Contains;
using cuda::CudaOptions;
using cuda::Precision;
using cuda::Transport;
using testing::Bytes;
using testing::Draws;
using testing::MachineRun;

std::unique_ptr<Engine> engine_of(const std::string& spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const EngineEntry& entry = engines().at(call.name);
  return entry.make(Parameters(entry.parameters, call));
}

// What the engine says when it is made; nothing if it is made.
std::string refusal(const std::string& spelling, int exit_code) {
  try {
    engine_of(spelling);
  } catch (const Error& error) {
    CHECK(error.exit_code() == exit_code);
    return error.what();
  }
  return "";
}

// Every kind of kernel against the host's kernels.
void check_kernels(const std::function<std::unique_ptr<runtime::DeviceApi>()>& open) {
  MachineRun machine(open(), Cluster::uniform(1));
  for (const testing::KernelCase& one : testing::kernel_cases()) {
    CAPTURE(one.graph.kind(NodeId(0)), one.graph.attributes(NodeId(0)),
            to_string(one.graph.dtype(NodeId(0))));
    const auto expected = testing::run_on_host(one.graph, one.inputs);
    const auto computed = machine.run(one.graph, one.inputs, Assignment(1, DeviceId(0)));
    CHECK(testing::relative_distance(testing::output_arrays(one.graph, computed).at(0),
                                     testing::output_arrays(one.graph, expected).at(0)) <=
          one.tolerance);
  }
}

// A workload as a program and a graph, with the data of its inputs.
struct Workload {
  Workload(const std::string& name, const std::string& arguments)
      : Workload(workloads().at(name), testing::parameters_of(name, arguments)) {}
  Workload(const WorkloadEntry& entry, const Parameters& parameters)
      : program(entry.program(parameters, 1)),
        sharded(shard(program, sharding_options(parameters))),
        inputs(testing::filled_inputs(sharded.graph, 5)) {}

  // max |a - b| / max |b| of a run against the unsharded computation.
  double error(MachineRun& machine, const Assignment& assignment, const RunOptions& options) const {
    return testing::error_against_unsharded(
        program, sharded, inputs, machine.run(sharded.graph, inputs, assignment, options));
  }

  Program program;
  ShardedProgram sharded;
  std::vector<Bytes> inputs;
};

MachineRun gpus(std::size_t n_devices, const CudaOptions& options) {
  return {cuda::open_cuda_devices(n_devices, options),
          Cluster::uniform(static_cast<std::int64_t>(n_devices)),
          cuda::real_engine_options(options).lookahead};
}

// Every small workload on random assignments and options.
void check_workloads(std::size_t n_devices, const CudaOptions& options) {
  MachineRun machine = gpus(n_devices, options);
  std::uint64_t seed = 0;
  testing::for_each_small([&](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    CAPTURE(entry.name, arguments, n_devices);
    const Workload workload(entry.name, arguments);
    Draws draws(++seed);
    RunOptions run_options = testing::random_options(draws, workload.sharded.graph, n_devices);
    run_options.enforce_memory = false;
    const std::size_t n_nodes = workload.sharded.graph.n_nodes();
    CHECK(workload.error(machine, testing::random_assignment(draws, n_nodes, n_devices),
                         run_options) <= 1e-5);
  });
}

TEST_CASE("The engine cuda describes itself without loading its module") {
  const auto is_loaded = [] {
    std::ifstream maps("/proc/self/maps");
    std::ostringstream text;
    text << maps.rdbuf();
    return text.str().find("doppler_cuda.so") != std::string::npos;
  };
  const bool was_loaded = is_loaded();
  const EngineEntry& entry = engines().at("cuda");
  CHECK_FALSE(entry.summary.empty());
  CHECK(entry.parameters.size() == 6);
  CHECK(is_loaded() == was_loaded);
}

TEST_CASE("GPUs are told as a list, and anything else is refused") {
  for (const char* spelling : {"cuda(gpus=[0,x])", "cuda(gpus=[0,,1])", "cuda(gpus=[-1])",
                               "cuda(gpus=[0;1])", "cuda(gpus=[1)", "cuda(gpus=[0,1.5])"}) {
    CAPTURE(spelling);
    CHECK_FALSE(refusal(spelling, 2).empty());
  }
  CHECK_THAT(refusal("cuda(gpus=[0,x])", 2), Contains("gpus=[0,0,1,1]"));
  CHECK_THAT(refusal("cuda(precision=float64)", 2), Contains("tf32"));
  CHECK_THROWS_AS(cuda::open_cuda_devices(3, {.gpus = {0, 0}}), UsageError);
}

TEST_CASE("Without a GPU the engine cuda says so in one line, and the run has failed") {
  const std::string message = refusal("cuda(gpus=[0,0])", 1);
  if (message.empty()) return;  // there is one
  CHECK(message.find('\n') == std::string::npos);
  CHECK_THAT(message,
             Contains("engine 'cuda'") && (Contains("no GPU") || Contains("DOPPLER_CUDA")));
}

TEST_CASE("The CPU engine's machine gives for every kind of kernel what the host's kernels give") {
  check_kernels([] { return cpu::open_cpu_devices(Cluster::uniform(1), false, false); });
}

TEST_CASE("A GPU gives for every kind of kernel what the host's kernels give") {
  if (!testing::has_gpu()) return;
  check_kernels([] { return cuda::open_cuda_devices(1, {}); });
}

TEST_CASE("Every workload computes on GPUs what the unsharded one computes, to 1e-5") {
  if (!testing::has_gpu()) return;
  for (const std::size_t n_devices : {1, 2, 3, 8}) check_workloads(n_devices, {});
}

TEST_CASE("Devices that share a GPU exchange data by a device copy") {
  if (!testing::has_gpu()) return;
  for (const Transport transport : {Transport::peer, Transport::staged, Transport::nccl}) {
    CAPTURE(to_string(transport));
    check_workloads(4, {.gpus = {0, 0, 0, 0}, .transport = transport});
  }
}

TEST_CASE("Data staged in pinned host memory arrive whole, however many") {
  if (!testing::has_gpu()) return;
  const CudaOptions options{
      .gpus = {0, 0, 0}, .transport = Transport::staged, .transports_within_gpu = true};
  check_workloads(3, options);
  // Blocks of 1 to 20 MiB: several chunks, and a rest.
  MachineRun machine = gpus(3, options);
  for (const char* arguments : {"n=1024,shards=2", "n=2300,shards=1", "n=1500,shards=1"}) {
    CAPTURE(arguments);
    const Workload workload("chainmm", arguments);
    const auto expected = testing::run_on_host(workload.sharded.graph, workload.inputs);
    Draws draws(2);
    const auto computed =
        machine.run(workload.sharded.graph, workload.inputs,
                    testing::random_assignment(draws, workload.sharded.graph.n_nodes(), 3));
    for (const auto& [node, block] : workload.sharded.results) {
      const TensorId tensor = workload.sharded.graph.first_tensor(node);
      const auto shape = workload.sharded.graph.tensor_shape(tensor);
      CHECK(testing::relative_distance(
                testing::to_array(computed[node.index()], shape, DType::float32),
                testing::to_array(expected[node.index()], shape, DType::float32)) <= 1e-5);
    }
  }
}

TEST_CASE("A rank of NCCL sends to itself") {
  if (!testing::has_gpu()) return;
  check_workloads(3,
                  {.gpus = {0, 0, 0}, .transport = Transport::nccl, .transports_within_gpu = true});
}

TEST_CASE("All GPUs exchange data by NCCL and by staged copies") {
  if (!testing::has_gpu()) return;
  for (const Transport transport : {Transport::nccl, Transport::staged}) {
    CAPTURE(to_string(transport));
    check_workloads(8, {.transport = transport});
  }
}

TEST_CASE("Tensor cores are as exact as their rounding") {
  if (!testing::has_gpu()) return;
  const std::pair<const char*, const char*> cases[] = {
      {"chainmm", "n=256,shards=2"},
      {"ffnn", "batch=128,inputs=64,hidden=512,outputs=32,shards=2"},
      {"llama-layer", "sequence=64,width=128,heads=8,hidden=256,vocabulary=200,shards=2"}};
  for (const auto& [precision, tolerance] :
       {std::pair(Precision::float32, 1e-5), std::pair(Precision::tf32, 5e-3),
        std::pair(Precision::bfloat16, 3e-2)}) {
    MachineRun machine = gpus(2, {.precision = precision});
    for (const auto& [name, arguments] : cases) {
      CAPTURE(to_string(precision), name);
      const Workload workload(name, arguments);
      Draws draws(3);
      const std::size_t n_nodes = workload.sharded.graph.n_nodes();
      CHECK(workload.error(machine, testing::random_assignment(draws, n_nodes, 2), {}) <=
            tolerance);
    }
  }
}

TEST_CASE("Half precision workloads come on a GPU as near as its rounding allows") {
  if (!testing::has_gpu()) return;
  MachineRun machine = gpus(2, {});
  const std::string sizes = "sequence=8,width=16,heads=4,hidden=12,shards=2,dtype=";
  for (const auto& [dtype, tolerance] : {std::pair("float16", 5e-3), std::pair("bfloat16", 3e-2)}) {
    CAPTURE(dtype);
    const Workload workload("llama-block", sizes + dtype);
    Draws draws(1);
    const std::size_t n_nodes = workload.sharded.graph.n_nodes();
    CHECK(workload.error(machine, testing::random_assignment(draws, n_nodes, 2), {}) <= tolerance);
  }
}

TEST_CASE("A run on GPUs keeps the order of its timeline, up to the error of their clocks") {
  if (!testing::has_gpu()) return;
  const Graph graph = make_workload("llama-block(sequence=64,width=64,heads=4,hidden=96)", 2);
  Draws draws(2);
  const auto engine = engine_of("cuda(warm_up=1,repeats=3)");
  const Execution run = engine->run(graph, Cluster::uniform(2), CostModel::analytical(),
                                    testing::random_assignment(draws, graph.n_nodes(), 2), {});
  CHECK(run.makespans.size() == 3);
  CHECK(std::isfinite(run.clock_error));
  CHECK(run.clock_error > 0);
  // Instants of one GPU are read to half a microsecond.
  const double error = 2 * run.clock_error + 1e-6;
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    const NodeRun& producer = run.nodes[edge.producer.index()];
    const NodeRun& reader = run.nodes[edge.reader.index()];
    CHECK(producer.end >= producer.start);
    CHECK(reader.start >= producer.end - error);
  }
  for (const TransferRun& transfer : run.transfers) {
    const NodeRun& producer = run.nodes[graph.tensor_producer(transfer.tensor).index()];
    CHECK(transfer.start >= producer.end - error);
    CHECK(transfer.end >= transfer.start - error);
  }
}

TEST_CASE("A GPU's memory is what the cluster says if it is enforced, and its end is no crash") {
  if (!testing::has_gpu()) return;
  const auto engine = engine_of("cuda(gpus=[0])");
  ClusterParts parts = Cluster::uniform(1).parts();
  parts.devices[0].memory = 1000;
  const Cluster cluster(parts);
  GraphBuilder builder("large");
  builder.add_node({.name = "huge", .outputs = {{.bytes = 1e15}}});
  const Graph huge = builder.build();
  GraphBuilder other("small");
  other.add_node({.name = "too large", .outputs = {{.bytes = 1001}}});
  const Graph small = other.build();
  const auto run = [&](const Graph& graph, bool enforce) {
    return engine->run(graph, cluster, CostModel::analytical(), Assignment(1, DeviceId(0)),
                       {.enforce_memory = enforce});
  };
  CHECK_THROWS_AS(run(huge, false), OutOfMemoryError);
  CHECK_NOTHROW(run(small, false));
  CHECK_THROWS_AS(run(small, true), OutOfMemoryError);
  CHECK_NOTHROW(run(small, false));
}

TEST_CASE("A GPU that is not there is named") {
  if (!testing::has_gpu()) return;
  try {
    cuda::open_cuda_devices(1, {.gpus = {1000}});
    FAIL("GPU 1000 was opened");
  } catch (const RunError& error) {
    CHECK_THAT(error.what(), Contains("no GPU 1000"));
  }
}

}  // namespace
}  // namespace doppler
