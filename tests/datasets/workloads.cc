// Conformance of every registered workload, at small sizes.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "datasets/workloads.h"
#include "datasets/workloads/builtin.h"
#include "graphs/analysis.h"
#include "tests/support/catch.h"
#include "tests/support/small_workloads.h"
#include "tests/support/tensor_evaluator.h"

using namespace doppler;
using doppler::testing::for_each_small;
using doppler::testing::parameters_of;

namespace {

double sum_of_flops(const Graph& graph) {
  double sum = 0;
  for (NodeId node : graph.topological_order()) sum += graph.flops(node);
  return sum;
}

double total_flops(const std::string& name, const std::string& arguments) {
  return workloads().at(name).total_flops(parameters_of(name, arguments), 1);
}

}  // namespace

TEST_CASE("Every workload describes itself and has the parameter shards") {
  CHECK(workloads().names() == std::vector<std::string>{"chainmm", "ffnn", "ffnn-train",
                                                        "llama-block", "llama-layer", "llama-stack",
                                                        "moe", "random-dag"});
  for (const auto& [name, entry] : workloads()) {
    CAPTURE(name);
    CHECK_FALSE(entry.summary.empty());
    CHECK_FALSE(entry.source.empty());
    CHECK(std::any_of(entry.parameters.begin(), entry.parameters.end(), [](const auto& parameter) {
      return parameter.name == "shards" && parameter.default_value == ParameterValue(int64_t{0});
    }));
  }
}

TEST_CASE("Every small workload is deterministic and its tensors have bytes") {
  for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    CAPTURE(entry.name, arguments);
    const Parameters parameters = parameters_of(entry.name, arguments);
    const Graph graph = entry.make(parameters, 1);
    REQUIRE(graph.n_nodes() > 0);
    CHECK(graph == entry.make(parameters, 1));
    CHECK(graph.name() == entry.name);
    bool bytes_are_positive = true;
    for (std::size_t e = 0; e < graph.n_edges(); ++e) {
      const EdgeId edge(static_cast<std::int64_t>(e));
      bytes_are_positive = bytes_are_positive && graph.edge_bytes(edge) > 0;
    }
    CHECK(bytes_are_positive);
    std::map<std::int32_t, std::set<std::string_view>> kinds;
    for (NodeId node : graph.topological_order()) {
      CHECK(graph.meta_op(node) >= 0);
      kinds[graph.meta_op(node)].insert(graph.kind(node));
    }
    for (const auto& [meta_op, names] : kinds) CHECK(names.size() == 1);
  });
}

TEST_CASE("The FLOPs of every small workload's nodes sum to its formula") {
  for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    CAPTURE(entry.name, arguments);
    const Parameters parameters = parameters_of(entry.name, arguments);
    CHECK(sum_of_flops(entry.make(parameters, 1)) ==
          Approx(entry.total_flops(parameters, 1)).epsilon(1e-12));
  });
}

TEST_CASE("The FLOPs of default workloads sum to their formulas on several numbers of devices") {
  const int n_devices = GENERATE(1, 2, 3, 4, 6, 8);
  for (const auto& [name, entry] : workloads()) {
    CAPTURE(name, n_devices);
    const Parameters parameters = parameters_of(name, "");
    CHECK(sum_of_flops(entry.make(parameters, n_devices)) ==
          Approx(entry.total_flops(parameters, n_devices)).epsilon(1e-12));
  }
}

TEST_CASE("Every sharded program computes what the unsharded one computes") {
  for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    for (const char* options : {"", ",slices=true", ",aggregate_all=false"}) {
      const Parameters parameters = parameters_of(entry.name, arguments + options);
      CAPTURE(parameters.canonical());
      const Program program = entry.program(parameters, 1);
      const ShardedProgram sharded = shard(program, sharding_options(parameters));
      CHECK(sharded.graph == entry.make(parameters, 1));
      const auto values =
          doppler::testing::evaluate(program, doppler::testing::random_inputs(program, 7));
      const auto outputs = doppler::testing::evaluate(
          sharded.graph, doppler::testing::input_blocks(sharded, values));
      CHECK(doppler::testing::relative_error(sharded, outputs, values) < 1e-12);
    }
  });
}

TEST_CASE("Sharded programs compute the same with eight and with twelve shards") {
  for (const char* arguments : {"sequence=12,width=48,heads=6,hidden=25,vocabulary=31,shards=8",
                                "sequence=12,width=48,heads=6,hidden=25,vocabulary=31,shards=12"}) {
    const Program program =
        workloads().at("llama-layer").program(parameters_of("llama-layer", arguments), 1);
    const ShardedProgram sharded = shard(program);
    const auto values =
        doppler::testing::evaluate(program, doppler::testing::random_inputs(program, 3));
    const auto outputs =
        doppler::testing::evaluate(sharded.graph, doppler::testing::input_blocks(sharded, values));
    CHECK(doppler::testing::relative_error(sharded, outputs, values) < 1e-12);
  }
}

TEST_CASE("With slices every node reads whole tensors, except slices and concatenations") {
  for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    const Graph graph = entry.make(parameters_of(entry.name, arguments + ",slices=true"), 1);
    CAPTURE(entry.name, arguments);
    for (NodeId node : graph.topological_order()) {
      const NodeAttributes attributes = parse_node_attributes(graph.attributes(node), "node");
      if (graph.kind(node) == "slice") {
        CHECK(attributes.operands.at(0).pieces.size() == 1);
        continue;
      }
      if (graph.kind(node) == "concat") {
        CHECK(attributes.operands.at(0).pieces.size() > 1);
        continue;
      }
      for (const NodeOperand& operand : attributes.operands) {
        REQUIRE(operand.pieces.size() == 1);
        const OperandPiece& piece = operand.pieces.front();
        CHECK(piece.shape == operand.shape);
        if (piece.source == OperandPiece::Source::input) {
          CHECK(graph.inputs()[static_cast<std::size_t>(piece.index)].tensor.shape == piece.shape);
        } else {
          const EdgeId edge = graph.in_edges(node)[static_cast<std::size_t>(piece.index)];
          const auto shape = graph.tensor_shape(graph.edge_tensor(edge));
          CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) == piece.shape);
        }
      }
    }
  });
}

TEST_CASE("A node reads the boxes that it needs and writes its block") {
  // B of A B has blocks of 3 x 6; the product is cut 2 x 2 with 4 parts of its contraction.
  const Graph graph = make_workload("chainmm(n=12)", 4);
  for (NodeId node : graph.topological_order()) {
    if (graph.name(node) == "AB.einsum[1,0,2]") {
      CHECK(graph.flops(node) == 2 * 6 * 6 * 3);
      CHECK(graph.bytes_read(node) == 4 * (6 * 3 + 3 * 6));
      CHECK(graph.bytes_written(node) == 4 * 6 * 6);
      CHECK(graph.tensor_bytes(graph.first_tensor(node)) == 4 * 6 * 6);
    }
    if (graph.name(node) == "AB[1,0]") {
      CHECK(graph.kind(node) == "aggregate");
      CHECK(graph.flops(node) == 3 * 6 * 6);
      CHECK(graph.bytes_read(node) == 4 * 4 * 6 * 6);
    }
  }
}

TEST_CASE("Half precision halves the bytes of llama's products and not its FLOPs") {
  const std::string sizes = "sequence=8,width=16,heads=4,hidden=12,shards=2";
  const auto graph = [&](const std::string& dtype) {
    return make_workload("llama-block(" + sizes + ",dtype=" + dtype + ")", 1);
  };
  const Graph single = graph("float32");
  const Graph half = graph("float16");
  REQUIRE(single.n_nodes() == half.n_nodes());
  CHECK(sum_of_flops(single) == sum_of_flops(half));
  for (NodeId node : single.topological_order()) {
    if (single.kind(node) != "einsum") continue;
    CHECK(half.bytes_written(node) == single.bytes_written(node) / 2);
    CHECK(half.dtype(node) == DType::float16);
  }
}

TEST_CASE("The formulas give the FLOPs that are known of well-known sizes") {
  // Three products of 2 n^3 outweigh all else by far.
  CHECK(total_flops("chainmm", "shards=1") == Approx(6e12).epsilon(1e-3));
  CHECK(total_flops("ffnn", "shards=1") == Approx(2. * 2 * 32768 * 32 * 65536).epsilon(0.02));
  // 2 FLOPs a weight and token: 12 x 4096^2-like weights (Q, K, V, projection; gate, up, down) and
  // attention 4 n^2 width.
  const double weights = 4. * 4096 * 4096 + 3. * 4096 * 11008;
  CHECK(total_flops("llama-block", "shards=1") ==
        Approx(2 * weights * 4096 + 4. * 4096 * 4096 * 4096).epsilon(0.01));
}

TEST_CASE("Sizes and shards that cannot be are told by one clear error") {
  const auto message = [](const std::string& spelling) -> std::string {
    try {
      make_workload(spelling, 4);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(message("chainmm(n=3)"), Contains("dimension") && Contains("size 3") &&
                                          Contains("4 parts") && Contains("fewer shards"));
  CHECK_THAT(message("ffnn(batch=15)"),
             Contains("dimension batch of size 15") && Contains("16 parts"));
  CHECK_THAT(message("llama-layer(heads=1,width=64)"), Contains("dimension head of size 1"));
  CHECK_THAT(message("llama-block(width=100,heads=7)"), Contains("multiple of 2 heads"));
  CHECK_THAT(message("moe(top_k=9)"), Contains("top_k 9") && Contains("8 experts"));
  CHECK_THAT(message("chainmm(shards=10000)"), Contains("more than 2000000 nodes"));
  CHECK_THAT(message("llama-stack(layers=1000,shards=512)"), Contains("more than 2000000 nodes"));
  CHECK_THAT(message("llama-layer(sequence=16777216,width=16777216)"),
             Contains("more than 2^50 elements") || Contains("more than"));
  CHECK_THAT(message("random-dag(n=4000000,degree=64)"), Contains("more than 32000000 edges"));
  for (const char* spelling :
       {"chainmm(n=0)", "chainmm(n=-5)", "chainmm(shards=-1)", "ffnn(hidden=0)",
        "llama-layer(vocabulary=0)", "llama-stack(layers=0)", "moe(experts=0)", "random-dag(n=0)",
        "random-dag(n=100000000)", "random-dag(shape=round)", "random-dag(spread=2)",
        "chainmm(n=1e30)", "chainmm(n=99999999999999999999)", "chainm"}) {
    CAPTURE(spelling);
    CHECK_FALSE(message(spelling).empty());
  }
  CHECK_THROWS_AS(make_workload("chainmm", 0), UsageError);
}

TEST_CASE("Shards default to the number of devices") {
  CHECK(make_workload("chainmm(n=64)", 4) == make_workload("chainmm(n=64,shards=4)", 1));
  CHECK(make_workload("chainmm(n=64)", 4).n_nodes() != make_workload("chainmm(n=64)", 2).n_nodes());
}
