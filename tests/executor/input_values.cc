// Data of graph inputs: the same however a workload is cut, and of order 1.
#include "executor/runtime/input_values.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "datasets/workloads/builtin.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/small_workloads.h"

namespace doppler {

using doppler::testing::Array;

namespace {

Graph graph_of_inputs(
    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& inputs) {
  GraphBuilder builder("inputs");
  Node node;
  node.name = "reader";
  const NodeId reader = builder.add_node(node);
  for (const auto& [name, shape] : inputs) {
    GraphInput input;
    input.name = name;
    double bytes = 4;
    for (std::int64_t size : shape) bytes *= static_cast<double>(size);
    input.tensor = {bytes, shape, DType::float32};
    builder.add_reader(builder.add_input(input), reader);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("Blocks of a graph input are the boxes that the program cut") {
  doppler::testing::for_each_small([](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    for (const char* options : {"", ",slices=true"}) {
      CAPTURE(entry.name, arguments, options);
      const Parameters parameters =
          doppler::testing::parameters_of(entry.name, arguments + options);
      const Program program = entry.program(parameters, 1);
      const ShardedProgram sharded = shard(program, sharding_options(parameters));
      const std::vector<InputValues> values = input_values(sharded.graph);
      REQUIRE(values.size() == sharded.inputs.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Block& block = sharded.inputs[i];
        CHECK(values[i].tensor == program.at(block.value).name);
        CHECK(values[i].whole == program.shape(block.value));
        for (std::size_t axis = 0; axis < block.box.size(); ++axis) {
          CHECK(values[i].start[axis] == block.box[axis].begin);
          CHECK(values[i].shape[axis] == block.box[axis].size());
        }
      }
    }
  });
}

TEST_CASE("A tensor's numbers do not depend on the number of shards, slices or aggregations") {
  // Whole tensors by workload, sizes and name, from every way to cut them.
  std::map<std::string, std::vector<double>> known;
  doppler::testing::for_each_small([&](const WorkloadEntry& entry, const std::string& arguments) {
    if (!entry.program) return;
    const std::string sizes = arguments.substr(0, arguments.rfind(','));
    for (const char* options : {"", ",slices=true", ",aggregate_all=false"}) {
      CAPTURE(entry.name, arguments, options);
      const Parameters parameters =
          doppler::testing::parameters_of(entry.name, arguments + options);
      const Program program = entry.program(parameters, 1);
      const ShardedProgram sharded = shard(program, sharding_options(parameters));
      const auto values = doppler::testing::unsharded_values(
          program, sharded, doppler::testing::filled_inputs(sharded.graph, 9));
      for (std::size_t v = 0; v < values.size(); ++v) {
        if (program.values()[v].producer >= 0) continue;
        const std::string key = entry.name + sizes + program.values()[v].name;
        const auto [at, is_new] = known.emplace(key, values[v].data);
        CHECK(at->second == values[v].data);
      }
    }
  });
  CHECK(known.size() > 20);
}

TEST_CASE("Numbers change with the seed and with the name, and not between runs") {
  const Graph graph = graph_of_inputs({{"A[0]", {4}}, {"B[0]", {4}}});
  const auto first = doppler::testing::filled_inputs(graph, 1);
  CHECK(first == doppler::testing::filled_inputs(graph, 1));
  CHECK(first[0] != first[1]);
  CHECK(first != doppler::testing::filled_inputs(graph, 2));
}

TEST_CASE("Numbers have mean 0 and variance 1 where nothing is contracted") {
  const Graph graph = graph_of_inputs({{"x", {300, 400}}});
  const Array x =
      doppler::testing::input_arrays(graph, doppler::testing::filled_inputs(graph, 3)).at(0);
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (double value : x.data) {
    sum += value;
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  CHECK(largest == Approx(std::sqrt(3.0)).epsilon(1e-3));
  // Standard errors are 0.003 and, as the variance of squares is 4 / 5, 0.0026.
  CHECK(sum / 120000 == Approx(0).margin(0.015));
  CHECK(squares / 120000 == Approx(1).margin(0.015));
}

TEST_CASE("Values of large workloads stay of order 1") {
  // ffnn: X and W1 share the factor for 64 elements, W2 has that for 1024.
  const Graph graph = make_workload("ffnn(batch=64,inputs=64,hidden=1024,outputs=16,shards=2)", 2);
  std::map<std::string, float> scales;
  for (const InputValues& values : input_values(graph)) scales[values.tensor] = values.scale;
  CHECK(scales["X"] == Approx(std::sqrt(3.0 / 8)));
  CHECK(scales["W1"] == Approx(std::sqrt(3.0 / 8)));
  CHECK(scales["W2"] == Approx(std::sqrt(3.0 / 1024)));
  const auto outputs = doppler::testing::output_arrays(
      graph, doppler::testing::run_on_host(graph, doppler::testing::filled_inputs(graph, 4)));
  for (std::size_t v = 0; v < outputs.size(); ++v) {
    double largest = 0;
    for (double value : outputs[v].data) largest = std::max(largest, std::abs(value));
    CAPTURE(graph.name(NodeId(static_cast<std::int64_t>(v))), largest);
    CHECK(largest > 0.01);
    CHECK(largest < 100);
  }
}

TEST_CASE("Names that make no grid are tensors of their own") {
  // The second block of the row is missing, the name has too few numbers, no number, or none.
  const Graph graph = graph_of_inputs({{"A[0,0]", {2, 3}},
                                       {"A[1,1]", {2, 3}},
                                       {"B[0]", {2, 3}},
                                       {"C[x]", {2}},
                                       {"D", {2}},
                                       {"E[0]", {2}},
                                       {"E[1]", {3}},
                                       {"F[]", {}}});
  const std::vector<InputValues> values = input_values(graph);
  for (std::size_t i : {0, 1, 2, 3, 4}) {
    CHECK(values[i].tensor == graph.inputs()[i].name);
    CHECK(values[i].whole == values[i].shape);
  }
  CHECK(values[6].tensor == "E");
  CHECK(values[6].whole == std::vector<std::int64_t>{5});
  CHECK(values[6].start == std::vector<std::int64_t>{2});
  CHECK(doppler::testing::filled_inputs(graph, 1)[7].size() == 4);
}

TEST_CASE("An input is filled only if the memory has its size") {
  const std::vector<InputValues> values = input_values(graph_of_inputs({{"A", {4}}}));
  doppler::testing::Bytes bytes(12);
  CHECK_THROWS_AS(fill_input(values[0], 1, bytes), std::invalid_argument);
}

}  // namespace doppler
