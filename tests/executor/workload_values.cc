// Whole workloads on the host's kernels, node by node, against the unsharded computation in double.
#include "datasets/workloads/builtin.h"
#include "executor/runtime/operation.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/small_workloads.h"

namespace doppler {

namespace {

double error_of(const std::string& workload, const std::string& arguments, std::uint64_t seed) {
  const Parameters parameters = doppler::testing::parameters_of(workload, arguments);
  const Program program = workloads().at(workload).program(parameters, 1);
  const ShardedProgram sharded = shard(program, sharding_options(parameters));
  const auto inputs = doppler::testing::filled_inputs(sharded.graph, seed);
  return doppler::testing::error_against_unsharded(
      program, sharded, inputs, doppler::testing::run_on_host(sharded.graph, inputs));
}

}  // namespace

TEST_CASE("Every sharded workload computes what the unsharded one computes, to 1e-5") {
  doppler::testing::for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    for (const char* options : {"", ",slices=true", ",aggregate_all=false"}) {
      CAPTURE(entry.name, arguments, options);
      CHECK(error_of(entry.name, arguments + options, 7) <= 1e-5);
    }
  });
}

TEST_CASE("Larger workloads in 2 to 12 shards compute what the unsharded ones compute, to 1e-5") {
  for (const char* shards : {"2", "5", "8", "12"}) {
    const std::string last = std::string(",shards=") + shards;
    CAPTURE(shards);
    CHECK(error_of("chainmm", "n=60" + last, 1) <= 1e-5);
    CHECK(error_of("ffnn", "batch=150,inputs=16,hidden=150,outputs=10" + last, 2) <= 1e-5);
    CHECK(error_of("ffnn-train", "batch=150,inputs=16,hidden=150,outputs=10" + last, 3) <= 1e-5);
    CHECK(error_of("moe",
                   "groups=12,tokens=9,width=20,hidden=24,experts=4,top_k=2,capacity=5" + last,
                   4) <= 1e-5);
    CHECK(error_of("llama-layer", "sequence=24,width=48,heads=12,hidden=40,vocabulary=50" + last,
                   5) <= 1e-5);
  }
}

TEST_CASE("Half precision workloads come as near as its rounding allows") {
  const std::string sizes = "sequence=8,width=16,heads=4,hidden=12,shards=2,dtype=";
  CHECK(error_of("llama-block", sizes + "float16", 1) <= 5e-3);
  CHECK(error_of("llama-block", sizes + "bfloat16", 1) <= 3e-2);
}

TEST_CASE("Graphs of costs alone are empty operations") {
  for (const NodeOperation& operation : parse_operations(make_workload("random-dag(n=50)", 2))) {
    CHECK(operation.is_empty());
  }
}

}  // namespace doppler
