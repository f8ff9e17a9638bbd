#include "tests/support/kernel_cases.h"

#include <string>

#include "tests/support/one_node.h"

namespace doppler::testing {
namespace {

using Shape = std::vector<std::int64_t>;
using Source = OperandPiece::Source;

class Cases {
 public:
  void add(const std::string& kind, const NodeAttributes& attributes,
           const std::vector<Shape>& shapes, const Shape& output, DType dtype = DType::float32) {
    add(one_node(kind, attributes, shapes, output, dtype), dtype);
  }
  void add(const std::string& kind, const std::string& index, const std::vector<Shape>& shapes,
           const Shape& output, DType dtype = DType::float32) {
    NodeAttributes attributes;
    attributes.index = index;
    add(kind, attributes, shapes, output, dtype);
  }
  void add(const Graph& graph, DType dtype) {
    KernelCase one{graph, {}, 1e-6};
    if (dtype == DType::float16) one.tolerance = 0x1p-10;
    if (dtype == DType::bfloat16) one.tolerance = 0x1p-7;
    for (const GraphInput& input : graph.inputs()) {
      one.inputs.push_back(to_bytes(random_array(input.tensor.shape, ++seed_ * 977), dtype));
    }
    cases_.push_back(std::move(one));
  }
  std::vector<KernelCase> take() { return std::move(cases_); }

 private:
  std::vector<KernelCase> cases_;
  std::uint64_t seed_ = 0;
};

void add_functions(Cases& cases, DType dtype) {
  for (const char* kind : {"relu", "silu", "exp", "square", "positive", "cast"}) {
    cases.add(kind, "i j -> i j", {{37, 50}}, {37, 50}, dtype);
  }
  NodeAttributes affine;
  affine.index = "i -> i";
  affine.factor = -0.75;
  affine.offset = 3;
  cases.add("affine", affine, {{1000}}, {1000}, dtype);
  for (const char* kind : {"add", "subtract", "multiply"}) {
    cases.add(kind, "i j, i j -> i j", {{37, 50}, {37, 50}}, {37, 50}, dtype);
    cases.add(kind, "i j, i -> i j", {{37, 50}, {37}}, {37, 50}, dtype);
    cases.add(kind, "h q k, k q -> h q k", {{3, 9, 10}, {10, 9}}, {3, 9, 10}, dtype);
  }
  cases.add("rotate", "c q h p, c q p -> c q h p", {{2, 5, 3, 4}, {2, 5, 4}}, {2, 5, 3, 4}, dtype);
}

void add_copies(Cases& cases, DType dtype) {
  cases.add("transpose", "a b c d -> c a d b", {{2, 3, 4, 5}}, {4, 2, 5, 3}, dtype);
  cases.add("squeeze", "a b c -> a c", {{3, 1, 4}}, {3, 4}, dtype);
  NodeAttributes pieces;
  pieces.index = "i k, k j -> i j";
  pieces.operands = {
      {{2, 7},
       {{Source::input, 0, {1, 2}, {2, 4}, {0, 0}}, {Source::input, 1, {0, 1}, {2, 3}, {0, 4}}}},
      {{7, 3}, {{Source::input, 2, {1, 0}, {7, 3}, {0, 0}}}}};
  const std::vector<Shape> inputs{{4, 6}, {3, 4}, {9, 3}};
  cases.add(one_node_reading("einsum", pieces, inputs, {2, 3}, dtype), dtype);
  pieces.index = "i k -> i k";
  pieces.operands.pop_back();
  cases.add(one_node_reading("concat", pieces, inputs, {2, 7}, dtype), dtype);
}

void add_sums(Cases& cases, DType dtype) {
  for (const char* kind : {"sum", "max"}) {
    cases.add(kind, "a b -> a", {{50, 10}}, {50}, dtype);
    cases.add(kind, "a b -> a", {{50, 60}}, {50}, dtype);
    cases.add(kind, "a b -> a", {{50, 3000}}, {50}, dtype);
    cases.add(kind, "a b -> b", {{300, 50}}, {50}, dtype);
    cases.add(kind, "a b c -> c a", {{3, 40, 6}}, {6, 3}, dtype);
    cases.add(kind, "a b ->", {{17, 19}}, {}, dtype);
    NodeAttributes aggregate;
    aggregate.rule = kind;
    for (std::size_t n = 1; n <= 20; ++n) {
      aggregate.index += n > 1 ? ", i j" : "i j";
      if (n != 1 && n != 3 && n != 9 && n != 20) continue;
      NodeAttributes attributes = aggregate;
      attributes.index += " -> i j";
      cases.add("aggregate", attributes, std::vector<Shape>(n, {30, 11}), {30, 11}, dtype);
    }
  }
}

void add_contractions(Cases& cases, DType dtype) {
  cases.add("einsum", "q w, w h p c -> q h p c", {{9, 16}, {16, 4, 3, 2}}, {9, 4, 3, 2}, dtype);
  cases.add("einsum", "q h p c, k h p c -> h q k", {{9, 4, 3, 2}, {7, 4, 3, 2}}, {4, 9, 7}, dtype);
  cases.add("einsum", "h q k, k h p c -> q h p c", {{4, 9, 7}, {7, 4, 3, 2}}, {9, 4, 3, 2}, dtype);
  cases.add("einsum", "w, w v -> v", {{11}, {11, 13}}, {13}, dtype);
  cases.add("einsum", "g t e s, g t w -> e g s w", {{3, 5, 4, 2}, {3, 5, 6}}, {4, 3, 2, 6}, dtype);
  cases.add("einsum", "e g s w, e w h -> e g s h", {{4, 3, 2, 6}, {4, 6, 9}}, {4, 3, 2, 9}, dtype);
  cases.add("einsum", "g t e s, e g s w -> g t w", {{3, 5, 4, 2}, {4, 3, 2, 6}}, {3, 5, 6}, dtype);
  cases.add("einsum", "k i, j k -> j i", {{50, 20}, {30, 50}}, {30, 20}, dtype);
  cases.add("einsum", "k i, j k -> i j", {{50, 20}, {30, 50}}, {20, 30}, dtype);
  cases.add("einsum", "i k, k j -> i j", {{200, 300}, {300, 100}}, {200, 100}, dtype);
  cases.add("einsum", "i k l, k j -> i j", {{4, 3, 5}, {3, 6}}, {4, 6}, dtype);
  cases.add("einsum", "i, j -> i j", {{4}, {6}}, {4, 6}, dtype);
  cases.add("einsum", "b i, b i -> b", {{4, 500}, {4, 500}}, {4}, dtype);
  cases.add("einsum", "i j -> j", {{40, 6}}, {6}, dtype);
}

}  // namespace

std::vector<KernelCase> kernel_cases() {
  Cases cases;
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    add_functions(cases, dtype);
    add_copies(cases, dtype);
    add_sums(cases, dtype);
    add_contractions(cases, dtype);
    NodeAttributes mask;
    mask.index = "-> q k";
    mask.rule = "causal";
    mask.start = {2, 1};
    cases.add("fill", mask, {}, {20, 30}, dtype);
    for (std::int64_t slots : {1, 3}) {
      NodeAttributes route;
      route.index = "g t e -> g t e s";
      route.top_k = 2;
      cases.add("route", route, {{3, 7, 4}}, {3, 7, 4, slots}, dtype);
    }
  }
  cases.add("divide", "i j, j -> i j", {{9, 5}, {5}}, {9, 5});
  return cases.take();
}

}  // namespace doppler::testing
