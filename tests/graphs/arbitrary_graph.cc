#include "tests/graphs/arbitrary_graph.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "graphs/graph_builder.h"

namespace doppler::testing {
namespace {

class Source {
 public:
  explicit Source(std::uint64_t seed) : bits_(seed) {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(n));
  }
  bool chance(double p) { return static_cast<double>(bits_() >> 11) * 0x1p-53 < p; }

  // Finite, >= 0, of every magnitude whose sums stay finite.
  double amount() {
    switch (below(5)) {
      case 0:
        return 0;
      case 1:
        return static_cast<double>(below(1000));
      case 2:
        return static_cast<double>(below(std::int64_t{1} << 62)) * 4;
      case 3:
        return static_cast<double>(bits_() >> 11) * 0x1p-53;
      default: {
        const double any = std::abs(std::bit_cast<double>(bits_()));
        return std::isfinite(any) && any < 1e300 ? any : 0.1;
      }
    }
  }

  std::string word() {
    static const std::vector<std::string> kParts = {
        "a",    "Z9",     " ",      "\"",         "\\", "/", "\n", "\t", "\x01",
        "\x7F", "\u00e9", "\u20ac", "\U0001F600", "{",  "]", ",",  "'"};
    std::string text;
    for (auto n = below(6); n >= 0; --n) {
      text += kParts[static_cast<std::size_t>(below(static_cast<std::int64_t>(kParts.size())))];
    }
    return text;
  }

  Tensor tensor() {
    Tensor tensor{amount(), {}, static_cast<DType>(below(8))};
    for (auto n = below(4); n > 0; --n) tensor.shape.push_back(below(1000));
    return tensor;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace

Graph arbitrary_graph(std::uint64_t seed) {
  Source source(seed);
  GraphBuilder builder(source.chance(0.8) ? source.word() : "");
  const std::int64_t n = source.below(31);
  std::vector<std::int64_t> n_outputs;
  for (std::int64_t v = 0; v < n; ++v) {
    Node node{.name = source.word()};
    if (source.chance(0.7)) node.kind = source.word();
    if (source.chance(0.5)) node.meta_op = static_cast<std::int32_t>(source.below(2147483647));
    node.flops = source.amount();
    node.bytes_read = source.amount();
    node.bytes_written = source.amount();
    for (auto k = source.below(4); k > 0; --k) node.outputs.push_back(source.tensor());
    if (source.chance(0.5)) node.attributes = "{\"x\": " + std::to_string(source.below(9)) + "}";
    n_outputs.push_back(static_cast<std::int64_t>(node.outputs.size()));
    builder.add_node(node);
  }
  // Edges go up or down in number, by a coin for the whole graph.
  const bool is_reversed = source.chance(0.5);
  for (std::int64_t v = 0; v < n; ++v) {
    for (std::int64_t w = v + 1; w < n; ++w) {
      const std::int64_t producer = is_reversed ? w : v;
      const std::int64_t reader = is_reversed ? v : w;
      for (std::int64_t k = 0; k < n_outputs[static_cast<std::size_t>(producer)]; ++k) {
        if (source.chance(0.1)) {
          builder.add_edge(NodeId{producer}, NodeId{reader}, static_cast<std::int32_t>(k));
        }
      }
    }
  }
  for (auto k = source.below(4); k > 0; --k) {
    GraphInput input{source.word(), source.tensor(), {}};
    for (std::int64_t v = 0; v < n; ++v) {
      if (source.chance(0.2)) input.readers.push_back(NodeId{v});
    }
    builder.add_input(input);
  }
  if (const auto n_devices = source.below(4); n_devices > 0) {
    std::vector<double> raw;
    for (std::int64_t i = 0; i < n * n_devices; ++i) raw.push_back(source.amount());
    builder.set_raw_compute(std::move(raw), static_cast<std::size_t>(n_devices));
  }
  return builder.build();
}

Graph arbitrary_text_graph(std::uint64_t seed) {
  Source source(seed);
  GraphBuilder builder;
  const std::int64_t n = source.below(31);
  std::vector<double> raw;
  for (std::int64_t v = 0; v < n; ++v) {
    raw.push_back(source.amount());
    builder.add_node({.name = std::to_string(v),
                      .kind = source.chance(0.3) ? "node" : "einsum\u00e9",
                      .flops = raw.back(),
                      .outputs = {Tensor{source.amount(), {}, DType::float32}}});
  }
  for (std::int64_t v = 0; v < n; ++v) {
    for (std::int64_t w = v + 1; w < n; ++w) {
      if (source.chance(0.1)) builder.add_edge(NodeId{v}, NodeId{w});
    }
  }
  builder.set_raw_compute(std::move(raw));
  const std::int64_t n_inputs = source.below(5);
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    builder.add_input({std::to_string(n + n_inputs - 1 - i), Tensor{}, {}});
  }
  return builder.build();
}

}  // namespace doppler::testing
