// The host's kernels, each against a naive evaluation in double or a closed formula.
#include "executor/cpu/kernels.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "executor/runtime/operation.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/one_node.h"

namespace doppler {

using doppler::testing::Array;
using doppler::testing::one_node;
using doppler::testing::random_array;
using doppler::testing::relative_distance;

namespace {

using Shape = std::vector<std::int64_t>;

// What the kernel of the only node gives.
Array computed(const Graph& graph, const std::vector<Array>& inputs) {
  std::vector<doppler::testing::Bytes> bytes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bytes.push_back(doppler::testing::to_bytes(inputs[i], graph.inputs()[i].tensor.dtype));
  }
  return doppler::testing::output_arrays(graph, doppler::testing::run_on_host(graph, bytes)).at(0);
}

std::vector<Array> random_operands(const std::vector<Shape>& shapes, std::uint64_t seed) {
  std::vector<Array> operands;
  operands.reserve(shapes.size());
  for (const Shape& shape : shapes) operands.push_back(random_array(shape, ++seed * 1000));
  return operands;
}

// Distance of a kernel from the naive evaluation on random operands.
double error_of(const std::string& kind, const NodeAttributes& attributes,
                const std::vector<Shape>& shapes, const Shape& output, std::uint64_t seed = 1) {
  const Graph graph = one_node(kind, attributes, shapes, output);
  const std::vector<Array> operands = random_operands(shapes, seed);
  return relative_distance(computed(graph, operands),
                           doppler::testing::run_kernel(kind, attributes, operands, output));
}

NodeAttributes with_index(const std::string& index) {
  NodeAttributes attributes;
  attributes.index = index;
  return attributes;
}

Array numbers(const Shape& shape, const std::vector<double>& data) { return {shape, data}; }

}  // namespace

TEST_CASE("Functions of one operand give their closed formulas") {
  const Array x = numbers({6}, {-100, -1.5, 0, 0.25, 3, 80});
  const auto values = [&](const std::string& kind) {
    return computed(one_node(kind, with_index("i -> i"), {{6}}, {6}), {x}).data;
  };
  for (std::size_t i = 0; i < 6; ++i) {
    const double at = x.data[i];
    CAPTURE(at);
    CHECK(values("relu")[i] == std::max(at, 0.0));
    CHECK(values("positive")[i] == (at > 0 ? 1 : 0));
    CHECK(values("square")[i] == at * at);
    CHECK(values("exp")[i] == Approx(std::exp(at)).epsilon(3e-7).margin(1e-37));
    CHECK(values("silu")[i] == Approx(at / (1 + std::exp(-at))).epsilon(3e-7).margin(1e-30));
    CHECK(values("cast")[i] == at);
  }
  CHECK(values("rsqrt")[3] == 2);
  CHECK(values("rsqrt")[4] == Approx(1 / std::sqrt(3.0)).epsilon(2e-7));
  CHECK(std::isinf(values("rsqrt")[2]));
  NodeAttributes affine = with_index("i -> i");
  affine.factor = 0.5;
  affine.offset = -2;
  CHECK(computed(one_node("affine", affine, {{6}}, {6}), {x}).data ==
        std::vector<double>{-52, -2.75, -2, -1.875, -0.5, 38});
}

TEST_CASE("The exponential of minus infinity is zero") {
  const Array x = numbers({2}, {-std::numeric_limits<double>::infinity(), 0});
  CHECK(computed(one_node("exp", with_index("i -> i"), {{2}}, {2}), {x}).data ==
        std::vector<double>{0, 1});
}

TEST_CASE("Functions of two operands repeat the one that lacks a label") {
  for (const char* kind : {"add", "subtract", "multiply", "divide"}) {
    CAPTURE(kind);
    CHECK(error_of(kind, with_index("i j, i j -> i j"), {{5, 7}, {5, 7}}, {5, 7}) < 1e-6);
    CHECK(error_of(kind, with_index("i j, i -> i j"), {{5, 7}, {5}}, {5, 7}) < 1e-6);
    CHECK(error_of(kind, with_index("i j, j -> i j"), {{5, 7}, {7}}, {5, 7}) < 1e-6);
    CHECK(error_of(kind, with_index("h q k, q k -> h q k"), {{3, 4, 5}, {4, 5}}, {3, 4, 5}) < 1e-6);
    CHECK(error_of(kind, with_index("i j, j i -> i j"), {{5, 7}, {7, 5}}, {5, 7}) < 1e-6);
    CHECK(error_of(kind, with_index("i, i -> i"), {{5000}, {5000}}, {5000}) < 1e-6);
  }
}

TEST_CASE("Copies put every element in its place") {
  CHECK(error_of("transpose", with_index("i j -> j i"), {{4, 6}}, {6, 4}) == 0);
  CHECK(error_of("transpose", with_index("a b c d -> c a d b"), {{2, 3, 4, 5}}, {4, 2, 5, 3}) == 0);
  CHECK(error_of("squeeze", with_index("a b c -> a c"), {{3, 1, 4}}, {3, 4}) == 0);
  CHECK(error_of("cast", with_index("a b -> a b"), {{3, 4}}, {3, 4}) == 0);
  const Array x = numbers({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(computed(one_node("transpose", with_index("i j -> j i"), {{2, 3}}, {3, 2}), {x}).data ==
        std::vector<double>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("A matrix product of small whole numbers is exact in every layout") {
  const Array a = numbers({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array b = numbers({3, 2}, {7, 8, 9, 10, 11, 12});
  const auto product = [&](const std::string& index, const std::vector<Shape>& shapes,
                           const std::vector<Array>& operands) {
    return computed(one_node("einsum", with_index(index), shapes, {2, 2}), operands).data;
  };
  const std::vector<double> expected{58, 64, 139, 154};
  CHECK(product("i k, k j -> i j", {{2, 3}, {3, 2}}, {a, b}) == expected);
  const Array a_turned = numbers({3, 2}, {1, 4, 2, 5, 3, 6});
  const Array b_turned = numbers({2, 3}, {7, 9, 11, 8, 10, 12});
  CHECK(product("k i, k j -> i j", {{3, 2}, {3, 2}}, {a_turned, b}) == expected);
  CHECK(product("i k, j k -> i j", {{2, 3}, {2, 3}}, {a, b_turned}) == expected);
  CHECK(product("k i, j k -> i j", {{3, 2}, {2, 3}}, {a_turned, b_turned}) == expected);
  CHECK(product("i k, k j -> j i", {{2, 3}, {3, 2}}, {a, b}) ==
        std::vector<double>{58, 139, 64, 154});
}

TEST_CASE("Contractions of the workloads are exact to float32") {
  const auto error = [](const std::string& index, const std::vector<Shape>& shapes,
                        const Shape& output) {
    return error_of("einsum", with_index(index), shapes, output);
  };
  CHECK(error("q w, w h p c -> q h p c", {{9, 16}, {16, 4, 3, 2}}, {9, 4, 3, 2}) < 1e-6);
  CHECK(error("q h p c, k h p c -> h q k", {{9, 4, 3, 2}, {7, 4, 3, 2}}, {4, 9, 7}) < 1e-6);
  CHECK(error("h q k, k h p c -> q h p c", {{4, 9, 7}, {7, 4, 3, 2}}, {9, 4, 3, 2}) < 1e-6);
  CHECK(error("q h p c, h p c w -> q w", {{9, 4, 3, 2}, {4, 3, 2, 8}}, {9, 8}) < 1e-6);
  CHECK(error("w, w v -> v", {{11}, {11, 13}}, {13}) < 1e-6);
  CHECK(error("g t w, w e -> g t e", {{3, 5, 6}, {6, 4}}, {3, 5, 4}) < 1e-6);
  CHECK(error("g t e s, g t w -> e g s w", {{3, 5, 4, 2}, {3, 5, 6}}, {4, 3, 2, 6}) < 1e-6);
  CHECK(error("e g s w, e w h -> e g s h", {{4, 3, 2, 6}, {4, 6, 9}}, {4, 3, 2, 9}) < 1e-6);
  CHECK(error("g t e s, e g s w -> g t w", {{3, 5, 4, 2}, {4, 3, 2, 6}}, {3, 5, 6}) < 1e-6);
}

TEST_CASE("Contractions with a label in one tensor alone, outer and inner products are exact") {
  const auto error = [](const std::string& index, const std::vector<Shape>& shapes,
                        const Shape& output) {
    return error_of("einsum", with_index(index), shapes, output);
  };
  CHECK(error("i k l, k j -> i j", {{4, 3, 5}, {3, 6}}, {4, 6}) < 1e-6);
  CHECK(error("i, j -> i j", {{4}, {6}}, {4, 6}) < 1e-6);
  CHECK(error("b i, b i -> b", {{4, 50}, {4, 50}}, {4}) < 1e-6);
  CHECK(error("b i, b i -> b i", {{4, 5}, {4, 5}}, {4, 5}) < 1e-6);
  CHECK(error("i j -> j", {{40, 6}}, {6}) < 1e-6);
  CHECK(error("i j -> i", {{40, 6}}, {40}) < 1e-6);
  CHECK(error("i i, i j -> j", {{4, 4}, {4, 6}}, {6}) < 1e-6);
  CHECK(error("i k, k j -> i j", {{300, 200}, {200, 100}}, {300, 100}) < 1e-6);
}

TEST_CASE("Random contractions agree with the naive evaluation") {
  std::mt19937_64 generator(20240);
  const auto below = [&](std::size_t n) { return generator() % n; };
  // Where a label may be: in x, in y, in the output.
  const std::vector<std::array<bool, 3>> places = {
      {true, false, true}, {false, true, true},  {true, true, true},  {true, true, false},
      {true, true, false}, {true, false, false}, {false, true, false}};
  for (std::uint64_t repeat = 0; repeat < 400; ++repeat) {
    std::array<std::vector<std::string>, 3> lists;
    std::array<Shape, 3> shapes;
    // Every second case has labels of one operand alone too.
    const std::size_t n_places = repeat % 2 == 0 ? 5 : places.size();
    const std::size_t n_labels = below(5) + 1;
    for (std::size_t label = 0; label < n_labels; ++label) {
      const auto size = static_cast<std::int64_t>(below(5) + 1);
      const std::array<bool, 3>& place = places[below(n_places)];
      for (std::size_t k = 0; k < 3; ++k) {
        if (!place[k]) continue;
        const auto at = static_cast<std::ptrdiff_t>(below(lists[k].size() + 1));
        lists[k].insert(lists[k].begin() + at, std::string(1, static_cast<char>('a' + label)));
        shapes[k].insert(shapes[k].begin() + at, size);
      }
    }
    const auto text = [](const std::vector<std::string>& labels) {
      std::string joined;
      for (const std::string& label : labels) joined += " " + label;
      return joined;
    };
    const std::string index = text(lists[0]) + "," + text(lists[1]) + " ->" + text(lists[2]);
    CAPTURE(index, repeat);
    CHECK(error_of("einsum", with_index(index), {shapes[0], shapes[1]}, shapes[2], repeat) < 3e-6);
  }
}

TEST_CASE("Sums and maxima over any axes agree with the naive evaluation") {
  for (const char* kind : {"sum", "max"}) {
    CAPTURE(kind);
    const auto error = [&](const std::string& index, const Shape& shape, const Shape& output) {
      return error_of(kind, with_index(index), {shape}, output);
    };
    CHECK(error("a b -> a", {5, 1000}, {5}) < 1e-6);
    CHECK(error("a b -> b", {1000, 5}, {5}) < 1e-6);
    CHECK(error("a b -> b", {9, 5000}, {5000}) < 1e-6);
    CHECK(error("a b c -> a c", {3, 40, 6}, {3, 6}) < 1e-6);
    CHECK(error("a b c -> c a", {3, 40, 6}, {6, 3}) < 1e-6);
    CHECK(error("a b c -> b", {3, 40, 6}, {40}) < 1e-6);
    CHECK(error("a b ->", {17, 19}, {}) < 1e-6);
    CHECK(error("a b -> a", {5, 1}, {5}) == 0);
  }
}

TEST_CASE("The maximum of negative numbers is negative, and that over no elements minus infinity") {
  const Array x = numbers({2, 2}, {-3, -2, -7, -5});
  CHECK(computed(one_node("max", with_index("i j -> i"), {{2, 2}}, {2}), {x}).data ==
        std::vector<double>{-2, -5});
  CHECK(computed(one_node("max", with_index("i j -> i"), {{1, 0}}, {1}), {Array::zeros({1, 0})})
            .data == std::vector<double>{-std::numeric_limits<double>::infinity()});
  CHECK(computed(one_node("sum", with_index("i j -> i"), {{1, 0}}, {1}), {Array::zeros({1, 0})})
            .data == std::vector<double>{0});
}

TEST_CASE("Aggregations join any number of partial results") {
  for (const char* rule : {"sum", "max"}) {
    for (const std::size_t n : {1, 2, 8, 9, 15, 16, 40}) {
      CAPTURE(rule, n);
      std::string index;
      for (std::size_t k = 0; k < n; ++k) index += k > 0 ? ", i j" : "i j";
      NodeAttributes attributes = with_index(index + " -> i j");
      attributes.rule = rule;
      CHECK(error_of("aggregate", attributes, std::vector<Shape>(n, {30, 100}), {30, 100}) < 1e-6);
    }
  }
}

TEST_CASE("Rotation multiplies complex numbers") {
  // (1 + 2i) (3 + 4i) = -5 + 10i, (0 + 1i) (0 + 1i) = -1.
  const Array x = numbers({2, 2}, {1, 0, 2, 1});
  const Array y = numbers({2, 2}, {3, 0, 4, 1});
  CHECK(
      computed(one_node("rotate", with_index("c i, c i -> c i"), {{2, 2}, {2, 2}}, {2, 2}), {x, y})
          .data == std::vector<double>{-5, -1, 10, 0});
  CHECK(error_of("rotate", with_index("c q h p, c q p -> c q h p"), {{2, 5, 3, 4}, {2, 5, 4}},
                 {2, 5, 3, 4}) < 1e-6);
}

TEST_CASE("A causal fill masks what comes after the query") {
  NodeAttributes attributes = with_index("-> q k");
  attributes.rule = "causal";
  attributes.start = {2, 1};
  const double minus = -std::numeric_limits<double>::infinity();
  CHECK(computed(one_node("fill", attributes, {}, {2, 4}), {}).data ==
        std::vector<double>{0, 0, minus, minus, 0, 0, 0, minus});
}

TEST_CASE("Routing gives each token to its best experts while they have room") {
  NodeAttributes attributes = with_index("g t e -> g t e s");
  attributes.top_k = 1;
  // Both first tokens want expert 1, which has one slot; the third ties, and takes the smaller.
  const Array shares = numbers({1, 3, 2}, {0.25, 0.75, 0.375, 0.625, 0.5, 0.5});
  CHECK(computed(one_node("route", attributes, {{1, 3, 2}}, {1, 3, 2, 1}), {shares}).data ==
        std::vector<double>{0, 0.75, 0, 0, 0.5, 0});
  for (std::int64_t top_k : {1, 2, 4}) {
    for (std::int64_t slots : {1, 3, 8}) {
      attributes.top_k = top_k;
      CHECK(error_of("route", attributes, {{3, 7, 4}}, {3, 7, 4, slots}) == 0);
    }
  }
}

TEST_CASE("An operand may be a box of a tensor, or boxes of several") {
  // Rows 1-2 and columns 2-5 of x0; x1 beside them.
  NodeAttributes attributes = with_index("i k, k j -> i j");
  using Source = OperandPiece::Source;
  attributes.operands = {
      {{2, 7},
       {{Source::input, 0, {1, 2}, {2, 4}, {0, 0}}, {Source::input, 1, {0, 1}, {2, 3}, {0, 4}}}},
      {{7, 3}, {{Source::input, 2, {1, 0}, {7, 3}, {0, 0}}}}};
  const std::vector<Shape> inputs{{4, 6}, {3, 4}, {9, 3}};
  const std::vector<Array> data = random_operands(inputs, 5);
  const Graph graph = doppler::testing::one_node_reading("einsum", attributes, inputs, {2, 3});
  CHECK(relative_distance(computed(graph, data), doppler::testing::evaluate(graph, data).at(0)) <
        1e-6);

  NodeAttributes copy = with_index("i k -> i k");
  copy.operands = {attributes.operands[0]};
  for (const char* kind : {"concat", "cast", "select"}) {
    const Graph copies = doppler::testing::one_node_reading(kind, copy, inputs, {2, 7});
    CHECK(relative_distance(computed(copies, data),
                            doppler::testing::evaluate(copies, data).at(0)) == 0);
  }
  copy.index = "i k -> k i";
  const Graph turned = doppler::testing::one_node_reading("transpose", copy, inputs, {7, 2});
  CHECK(relative_distance(computed(turned, data), doppler::testing::evaluate(turned, data).at(0)) ==
        0);
}

TEST_CASE("Half precision is read and written as stored, and computed in float32") {
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    const double epsilon = dtype == DType::float16 ? 0x1p-11 : 0x1p-8;
    const auto error = [&](const std::string& kind, const NodeAttributes& attributes,
                           const std::vector<Shape>& shapes, const Shape& output) {
      const Graph graph = one_node(kind, attributes, shapes, output, dtype);
      std::vector<Array> operands;
      for (const Array& operand : random_operands(shapes, 3)) {
        operands.push_back(doppler::testing::to_array(doppler::testing::to_bytes(operand, dtype),
                                                      operand.shape, dtype));
      }
      return relative_distance(computed(graph, operands),
                               doppler::testing::run_kernel(kind, attributes, operands, output));
    };
    CAPTURE(to_string(dtype));
    CHECK(error("einsum", with_index("i k, k j -> i j"), {{9, 50}, {50, 7}}, {9, 7}) <= epsilon);
    CHECK(error("einsum", with_index("b i k, j k b -> j b i"), {{3, 9, 5}, {7, 5, 3}}, {7, 3, 9}) <=
          epsilon);
    CHECK(error("sum", with_index("i j -> i"), {{9, 500}}, {9}) <= epsilon);
    CHECK(error("exp", with_index("i -> i"), {{99}}, {99}) <= epsilon);
    CHECK(error("add", with_index("i j, j -> i j"), {{9, 5}, {5}}, {9, 5}) <= epsilon);
    CHECK(error("rotate", with_index("c i, c i -> c i"), {{2, 9}, {2, 9}}, {2, 9}) <= epsilon);
    CHECK(error("transpose", with_index("i j -> j i"), {{4, 6}}, {6, 4}) == 0);
    NodeAttributes aggregate = with_index("i, i, i -> i");
    aggregate.rule = "sum";
    CHECK(error("aggregate", aggregate, {{99}, {99}, {99}}, {99}) <= epsilon);
  }
}

TEST_CASE("Spans that do not fit an operation are refused") {
  const Graph graph = one_node("exp", with_index("i -> i"), {{4}}, {4});
  const NodeOperation operation = parse_operations(graph).at(0);
  doppler::testing::Bytes input(16);
  doppler::testing::Bytes output(16);
  const std::vector<std::span<const std::byte>> inputs{input};
  CHECK_NOTHROW(cpu::run_operation(operation, inputs, output));
  CHECK_THROWS_AS(cpu::run_operation(operation, {}, output), std::invalid_argument);
  CHECK_THROWS_AS(cpu::run_operation(operation, inputs, std::span(output).first(8)),
                  std::invalid_argument);
}

}  // namespace doppler
