// Attributes as operations: what is refused, and what is planned without a copy.
#include "executor/runtime/operation.h"

#include <Eigen/Core>
#include <cstring>
#include <functional>
#include <variant>

#include "executor/runtime/step_functions.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/graph_values.h"
#include "tests/support/one_node.h"

namespace doppler {

using Catch::Matchers::Contains;
using doppler::testing::one_node;
using doppler::testing::one_node_reading;

namespace {

using Shape = std::vector<std::int64_t>;
using Source = OperandPiece::Source;

NodeAttributes with_index(const std::string& index) {
  NodeAttributes attributes;
  attributes.index = index;
  return attributes;
}

std::string refusal(const Graph& graph) {
  try {
    parse_operations(graph);
  } catch (const InvalidError& error) {
    return error.what();
  }
  return "";
}

NodeOperation only_operation(const Graph& graph) { return parse_operations(graph).at(0); }

}  // namespace

TEST_CASE("An operation that no engine runs is refused with node, kind and how to mend it") {
  const std::string message = refusal(one_node("conv", with_index("i -> i"), {{4}}, {4}));
  CHECK_THAT(message, Contains("node 'it'") && Contains("kind 'conv'") &&
                          Contains("einsum, sum, max") && Contains("simulator") &&
                          Contains("docs/node-attributes.md"));
}

TEST_CASE("Attributes that do not fit are refused") {
  const auto refused = [](const std::string& kind, const std::string& index,
                          const std::vector<Shape>& shapes, const Shape& output) {
    return refusal(one_node(kind, with_index(index), shapes, output));
  };
  CHECK_THAT(refused("exp", "i", {{4}}, {4}), Contains("no '->'"));
  CHECK_THAT(refused("exp", "i -> i i", {{4}}, {4, 4}), Contains("twice"));
  CHECK_THAT(refused("exp", "i j -> i", {{4}}, {4}), Contains("2 labels"));
  CHECK_THAT(refused("exp", "i -> i", {{4}}, {5}), Contains("sizes 5 and 4"));
  CHECK_THAT(refused("exp", "i, i -> i", {{4}}, {4}), Contains("2 operands"));
  CHECK_THAT(refused("exp", "i, i -> i", {{4}, {4}}, {4}), Contains("takes 1"));
  CHECK_THAT(refused("add", "i -> i", {{4}}, {4}), Contains("takes 2"));
  CHECK_THAT(refused("exp", "i j -> i", {{4, 3}}, {4}), Contains("reduces nothing"));
  CHECK_THAT(refused("einsum", "i -> i j", {{4}}, {4, 3}), !Contains("cannot"));
  CHECK_THAT(refused("einsum", "i, i, i -> i", {{4}, {4}, {4}}, {4}), Contains("1 or 2"));
  CHECK_THAT(refused("rotate", "i, i -> i", {{4}, {4}}, {4}), Contains("size 2"));
  CHECK_THAT(refused("route", "g t -> g t", {{4, 3}}, {4, 3}), Contains("group token expert"));
  CHECK_THAT(refused("fill", "-> q k", {}, {4, 3}), Contains("rule ''"));
  CHECK_THAT(refused("fill", "i -> i", {{4}}, {4}), Contains("takes 0"));
  CHECK_THAT(refused("aggregate", "i -> i", {{4}}, {4}), Contains("'sum' or 'max'"));
  CHECK_THAT(refused("exp", "a b c d e f g h i -> i h g f e d c b a", {{2, 2, 2, 2, 2, 2, 2, 2, 2}},
                     {2, 2, 2, 2, 2, 2, 2, 2, 2}),
             Contains("more than 8 axes"));
  NodeAttributes route = with_index("g t e -> g t e s");
  route.top_k = 3;
  CHECK_THAT(refusal(one_node("route", route, {{1, 4, 2}}, {1, 4, 2, 4})), Contains("top_k 3"));
  CHECK_THAT(refusal(one_node("exp", with_index("i -> i"), {{4}}, {4}, DType::int32)),
             Contains("int32") && Contains("float32, float16 and bfloat16"));
}

TEST_CASE("Pieces that leave their source, overlap or leave holes are refused") {
  const auto refused = [](const std::vector<OperandPiece>& pieces) {
    NodeAttributes attributes = with_index("i -> i");
    attributes.operands = {{{4}, pieces}};
    return refusal(one_node_reading("exp", attributes, {{6}}, {4}));
  };
  CHECK(refused({{Source::input, 0, {2}, {4}, {0}}}).empty());
  CHECK_THAT(refused({{Source::input, 0, {3}, {4}, {0}}}), Contains("beyond its source"));
  CHECK_THAT(refused({{Source::input, 0, {0}, {3}, {0}}}), Contains("do not cover"));
  CHECK_THAT(refused({}), Contains("do not cover"));
  CHECK_THAT(refused({{Source::input, 0, {0}, {2}, {0}}, {Source::input, 0, {0}, {2}, {1}}}),
             Contains("overlap"));
  CHECK_THAT(refused({{Source::input, 1, {0}, {4}, {0}}}), Contains("not a reader"));
  CHECK_THAT(refused({{Source::edge, 0, {0}, {4}, {0}}}), Contains("in-edge 0 of 0"));
}

TEST_CASE("A tensor whose bytes are not those of its shape is refused") {
  GraphBuilder builder("g");
  NodeAttributes attributes = with_index("-> q k");
  attributes.rule = "causal";
  attributes.start = {0, 0};
  Node node;
  node.name = "mask";
  node.kind = "fill";
  node.outputs = {{100, {2, 2}, DType::float32}};
  node.attributes = to_json(attributes);
  builder.add_node(node);
  CHECK_THAT(refusal(builder.build()), Contains("mask") && Contains("16"));
}

TEST_CASE("A node without attributes is the empty operation, and nobody computes with its tensor") {
  GraphBuilder builder("g");
  Node first;
  first.name = "first";
  first.kind = "synthetic";
  first.outputs = {{16, {4}, DType::float32}, {1e12}};
  const NodeId producer = builder.add_node(first);
  Node second = first;
  second.name = "second";
  builder.add_edge(producer, builder.add_node(second));
  const std::vector<NodeOperation> operations = parse_operations(builder.build());
  REQUIRE(operations.size() == 2);
  CHECK(operations[0].is_empty());
  CHECK(operations[1].is_empty());
  CHECK(operations[1].scratch_bytes() == 0);

  const NodeId unknown = builder.add_node(first);
  Node third;
  third.name = "third";
  third.kind = "exp";
  third.outputs = {{16, {4}, DType::float32}};
  NodeAttributes attributes = with_index("i -> i");
  attributes.operands = {{{4}, {{Source::edge, 0, {0}, {4}, {0}}}}};
  third.attributes = to_json(attributes);
  builder.add_edge(unknown, builder.add_node(third));
  CHECK_THAT(refusal(builder.build()),
             Contains("'third'") && Contains("'first'") && Contains("never computed"));
}

TEST_CASE("A node with a cost and no attributes is refused, one without cost is empty") {
  const auto refused = [](const Node& node, std::vector<double> raw) {
    GraphBuilder builder("g");
    builder.add_node(node);
    if (!raw.empty()) builder.set_raw_compute(std::move(raw));
    return refusal(builder.build());
  };
  CHECK_THAT(refused({.name = "a", .flops = 1}, {}), Contains("'a'") && Contains("simulator"));
  CHECK_THAT(refused({.name = "a"}, {1}), Contains("'a'"));
  CHECK(refused({.name = "a"}, {0}).empty());
  CHECK(refused({.name = "a"}, {}).empty());
  CHECK(refused({.name = "a", .kind = "synthetic", .flops = 1}, {}).empty());
}

TEST_CASE("Attention's products need no copy, only what makes no matrix is packed") {
  const auto scratch = [](const std::string& index, const std::vector<Shape>& shapes,
                          const Shape& output) {
    return only_operation(one_node("einsum", with_index(index), shapes, output)).scratch_bytes();
  };
  CHECK(scratch("q h p c, k h p c -> h q k", {{9, 4, 3, 2}, {7, 4, 3, 2}}, {4, 9, 7}) == 0);
  CHECK(scratch("h q k, k h p c -> q h p c", {{4, 9, 7}, {7, 4, 3, 2}}, {9, 4, 3, 2}) == 0);
  CHECK(scratch("q w, w h p c -> q h p c", {{9, 16}, {16, 4, 3, 2}}, {9, 4, 3, 2}) == 0);
  // The inner labels lie apart in the second operand: 4 x 3 x 2 x 6 elements are packed.
  CHECK(scratch("g t e s, e g s w -> g t w", {{3, 5, 4, 2}, {4, 3, 2, 6}}, {3, 5, 6}) ==
        4 * 3 * 4 * 2 * 6 + 256);
  // A box of a tensor is read in place.
  NodeAttributes attributes = with_index("i k, k j -> i j");
  attributes.operands = {{{2, 3}, {{Source::input, 0, {1, 2}, {2, 3}, {0, 0}}}},
                         {{3, 4}, {{Source::input, 1, {0, 1}, {3, 4}, {0, 0}}}}};
  CHECK(only_operation(one_node_reading("einsum", attributes, {{5, 6}, {3, 7}}, {2, 4}))
            .scratch_bytes() == 0);
}

TEST_CASE("Axes that lie one after another are walked as one") {
  const NodeOperation operation =
      only_operation(one_node("exp", with_index("a b c -> a b c"), {{2, 3, 4}}, {2, 3, 4}));
  REQUIRE(operation.steps.size() == 1);
  const auto& step = std::get<steps::Pointwise>(operation.steps[0]);
  CHECK(step.points.axes == 1);
  CHECK(step.points.sizes[0] == 24);
}

TEST_CASE("Every number of half precision survives, and numbers are rounded as Eigen rounds them") {
  const auto bits_of_half = [](Eigen::half x) { return Eigen::numext::bit_cast<std::uint16_t>(x); };
  const auto bits_of_bfloat = [](Eigen::bfloat16 x) {
    return Eigen::numext::bit_cast<std::uint16_t>(x);
  };
  bool survives = true;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float half = steps::from_float16(bits);
    const float expected = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
    survives = survives && (std::isnan(expected) ? std::isnan(half) : half == expected);
    if (!std::isnan(half)) survives = survives && steps::to_float16(half) == bits;
    const float brain = steps::from_bfloat16(bits);
    if (!std::isnan(brain)) survives = survives && steps::to_bfloat16(brain) == bits;
    survives = survives &&
               std::isnan(brain) ==
                   std::isnan(static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(bits)));
  }
  CHECK(survives);
  bool agrees = true;
  for (std::uint64_t i = 0; i < 2'000'000; ++i) {
    // Bit patterns of all magnitudes, ties among them.
    auto bits = static_cast<std::uint32_t>(mix64(i));
    if (i % 4 == 0) bits = (bits & 0xffffe000U) | 0x1000U;
    if (i % 4 == 1) bits = (bits & 0xffff0000U) | 0x8000U;
    const float value = steps::float_of(bits);
    if (std::isnan(value)) continue;
    agrees = agrees && steps::to_float16(value) == bits_of_half(Eigen::half(value)) &&
             steps::to_bfloat16(value) == bits_of_bfloat(Eigen::bfloat16(value));
  }
  CHECK(agrees);
  CHECK(std::isnan(steps::from_float16(steps::to_float16(std::nanf("")))));
  CHECK(std::isnan(steps::from_bfloat16(steps::to_bfloat16(steps::float_of(0x7f800001U)))));
}

}  // namespace doppler
