// What all graph formats share: names, telling them apart, DOT, and growth with the size.
#include "graphs/formats.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/graphs/arbitrary_graph.h"
#include "tests/graphs/refusal.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::string refused(const std::string& text) {
  CAPTURE(text.substr(0, 200));
  return testing::refusal("g", [&] { (void)parse_graph(text, "g"); });
}

TEST_CASE("Format names read back and unknown ones list the nearest") {
  for (GraphFormat format :
       {GraphFormat::json, GraphFormat::text, GraphFormat::msr, GraphFormat::dot}) {
    CHECK(parse_graph_format(to_string(format)) == format);
  }
  CHECK_THROWS_WITH(parse_graph_format("jsn"),
                    "unknown graph format 'jsn'; did you mean json? known: json, text, msr, dot");
  CHECK_THROWS_AS(parse_graph_format(""), UsageError);
}

TEST_CASE("Content of no known format is refused with what was found") {
  CHECK(refused("").starts_with("1:1: "));
  CHECK(refused(" \n\t\n").starts_with("1:1: "));
  CHECK(refused("\xEF\xBB\xBF").starts_with("1:1: "));
  CHECK(refused("\n  hello world").starts_with("2:3: not a graph file: it begins with 'hello'"));
  CHECK(refused("digraph g { a -> b; }").find("DOT is written, not read") != std::string::npos);
  CHECK(refused("digraph{}").find("DOT is written, not read") != std::string::npos);
  CHECK(refused("[1, 2]").starts_with("1:1: a graph file is an object"));
  CHECK(refused(std::string("\0\0\0", 3)).starts_with("1:1: "));
  CHECK(refused("\x89PNG\r\n\x1A\n").starts_with("1:1: "));
  CHECK(refused(std::string(1000000, 'x')).starts_with("1:1: "));
  CHECK(refused("{\"assignment\": [0, 1]}").starts_with("1:2: unknown field"));
  CHECK(refused("{\"nodes\": [").starts_with("1:"));
  CHECK(refused("{\"a\": " + std::string(100000, '[')).starts_with("1:2: unknown field"));
}

TEST_CASE("A file that cannot be read names its path") {
  CHECK_THROWS_AS(read_graph("/nonexistent/graph.json"), RunError);
  CHECK_THROWS_AS(read_graph(std::filesystem::temp_directory_path().string()), RunError);
}

TEST_CASE("A graph of fifty thousand nodes with shuffled ids goes through every readable format") {
  constexpr std::int64_t kNodes = 50000;
  constexpr std::int64_t kStride = 20011;  // coprime to the number of nodes
  GraphBuilder builder;
  std::vector<double> raw;
  for (std::int64_t v = 0; v < kNodes; ++v) {
    raw.push_back(static_cast<double>(v % 97) * 0.1);
    builder.add_node({.name = std::to_string(v),
                      .kind = "einsum",
                      .flops = raw.back(),
                      .outputs = {Tensor{static_cast<double>(v % 13), {}, DType::float32}}});
  }
  for (std::int64_t i = 64; i < kNodes; ++i) {
    for (std::int64_t back : {63, 64}) {
      builder.add_edge(NodeId{(i - back) * kStride % kNodes}, NodeId{i * kStride % kNodes});
    }
  }
  builder.set_raw_compute(std::move(raw));
  const Graph graph = builder.build();
  CHECK(parse_graph(to_json(graph), "g") == graph);
  CHECK(parse_graph(to_text(graph), "g") == graph);
}

TEST_CASE("DOT has a line for each node, input, reader and edge") {
  GraphBuilder builder("a \"graph\"");
  builder.add_node({.name = "x\\y", .kind = "mul", .outputs = {Tensor{4, {}, {}}}});
  builder.add_node({.name = "z"});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.add_input({"w", Tensor{}, {NodeId{0}}});
  CHECK(to_dot(builder.build()) ==
        "digraph \"a \\\"graph\\\"\" {\n"
        "  n0 [label=\"x\\\\y\\nmul\"];\n"
        "  n1 [label=\"z\"];\n"
        "  i0 [shape=box, label=\"w\"];\n"
        "  i0 -> n0;\n"
        "  n0 -> n1 [label=\"4\"];\n"
        "}\n");
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Graph graph = testing::arbitrary_graph(seed);
    std::size_t n_lines = 2 + graph.n_nodes() + graph.n_edges() + graph.n_inputs();
    for (const GraphInput& input : graph.inputs()) n_lines += input.readers.size();
    const std::string dot = to_dot(graph);
    CHECK(static_cast<std::size_t>(std::count(dot.begin(), dot.end(), '\n')) == n_lines);
  }
}

}  // namespace
}  // namespace doppler
