// The paper's text format: its rules, round trips, refusals, and the published graphs.
#include <string>
#include <vector>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "tests/graphs/arbitrary_graph.h"
#include "tests/graphs/refusal.h"
#include "tests/support/catch.h"
#include "tests/support/reference.h"

namespace doppler {
namespace {

std::string refused(const std::string& text) {
  CAPTURE(text.substr(0, 200));
  return testing::refusal("g.txt", [&] { (void)parse_graph_text(text, "g.txt"); });
}

// Two inputs, three nodes.
const std::vector<std::string> kLines = {"5",           "0, 4,", "0, 0, 1,",       "1, 2, 2,",
                                         "8,32,einsum", "4,16",  "2.5e-1, 0, add,"};

std::string joined(const std::vector<std::string>& lines, const std::string& line_end = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + line_end;
  return text;
}

// The text with line `number`, from 1, replaced.
std::string with_line(std::size_t number, const std::string& line) {
  std::vector<std::string> lines = kLines;
  lines[number - 1] = line;
  return joined(lines);
}

TEST_CASE("The five parts of the text format become a graph") {
  const Graph graph = parse_graph_text(joined(kLines), "g");
  REQUIRE(graph.n_nodes() == 3);
  REQUIRE(graph.n_edges() == 3);
  CHECK(graph.edge(EdgeId{0}) == Edge{NodeId{0}, NodeId{1}, 0});
  CHECK(graph.edge(EdgeId{1}) == Edge{NodeId{0}, NodeId{2}, 0});
  CHECK(graph.edge(EdgeId{2}) == Edge{NodeId{1}, NodeId{2}, 0});
  CHECK(
      graph.node(NodeId{0}) ==
      Node{.name = "0", .kind = "einsum", .flops = 8, .outputs = {Tensor{32, {}, DType::float32}}});
  CHECK(graph.kind(NodeId{1}) == "node");
  CHECK(graph.kind(NodeId{2}) == "add");
  REQUIRE(graph.raw_devices() == 1);
  CHECK(graph.raw_compute()[1] == 4);
  CHECK(graph.raw_compute()[2] == 0.25);
  REQUIRE(graph.n_inputs() == 2);
  CHECK(graph.inputs()[0] == GraphInput{"0", Tensor{}, {}});
  CHECK(graph.inputs()[1] == GraphInput{"4", Tensor{}, {}});
}

TEST_CASE(
    "Commas, blanks, CRLF line ends, a byte order mark and blank lines at the end are accepted") {
  const Graph graph = parse_graph_text(joined(kLines), "g");
  CHECK(parse_graph_text(joined(kLines, "\r\n"), "g") == graph);
  CHECK(parse_graph_text("\xEF\xBB\xBF" + joined(kLines), "g") == graph);
  CHECK(parse_graph_text(joined(kLines) + "\n  \t\r\n\n", "g") == graph);
  CHECK(parse_graph_text("  5 ,\n0 4\n0\t0 , 1\n1,2,2 , \n8 32 einsum\n4 ,16,\n0.25,0 add", "g") ==
        graph);
  CHECK(parse_graph(joined(kLines), "g") == graph);
}

TEST_CASE("Graphs without inputs, edges or nodes have empty lines") {
  CHECK(parse_graph_text("1\n\n\n\n7,1\n", "g").n_nodes() == 1);
  CHECK(parse_graph_text("2\n0,1\n\n\n", "g").n_inputs() == 2);
  CHECK(parse_graph_text("0\n\n\n\n", "g") == Graph());
}

TEST_CASE("A graph that the text format holds reads back equal") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const Graph graph = testing::arbitrary_text_graph(seed);
    CHECK(parse_graph_text(to_text(graph), "g") == graph);
    CHECK(parse_graph_text(to_text(parse_graph_json(to_json(graph), "g")), "g") == graph);
  }
}

TEST_CASE("Writing the text format takes FLOPs where there are no raw costs") {
  GraphBuilder builder("named");
  builder.add_node({.name = "a", .kind = "mul", .flops = 12, .outputs = {Tensor{4, {1}, {}}}});
  builder.add_node({.name = "b", .flops = 3});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.add_input({"w", Tensor{100, {}, {}}, {NodeId{0}}});
  CHECK(to_text(builder.build()) == "3\n0\n0\n1\n12,4,mul\n3,0\n");
}

TEST_CASE("What the text format cannot hold is refused when writing") {
  const auto node = [](const std::string& kind, std::vector<double> bytes) {
    Node result{.name = "a", .kind = kind};
    for (double b : bytes) result.outputs.push_back(Tensor{b, {}, {}});
    return result;
  };
  for (const Node& bad : {node("", {1, 2}), node("two words", {1}), node("a,b", {1}),
                          node("a\n", {1}), node("\xFF", {1})}) {
    GraphBuilder builder;
    builder.add_node(bad);
    CHECK_THROWS_AS(to_text(builder.build()), InvalidError);
  }
  GraphBuilder several;
  several.add_node(node("", {1, 1}));
  several.add_node(node("", {}));
  several.add_edge(NodeId{0}, NodeId{1}, 0);
  several.add_edge(NodeId{0}, NodeId{1}, 1);
  CHECK_THROWS_AS(to_text(several.build()), InvalidError);
  GraphBuilder by_device;
  by_device.add_node(node("", {1}));
  by_device.set_raw_compute({1, 2}, 2);
  CHECK_THROWS_AS(to_text(by_device.build()), InvalidError);
}

TEST_CASE("Damaged text files are refused with line and column") {
  CHECK(refused("").starts_with("1:1: "));
  CHECK(refused("\n").starts_with("1:1: "));
  CHECK(refused(with_line(1, "1000000000000000000")).starts_with("1:1: "));
  CHECK(refused(with_line(1, "99999999999999999999999")).starts_with("1:1: "));
  CHECK(refused(with_line(1, "2147483647")).starts_with("8:1: the file ends after 3 of"));
  CHECK(refused(with_line(1, "4")).starts_with("2:4: "));
  CHECK(refused(with_line(1, "6")).starts_with("8:1: the file ends after 3 of 4 node lines"));
  CHECK(refused(with_line(1, "5 6")).starts_with("1:3: "));
  CHECK(refused(with_line(1, "-5")).starts_with("1:1: "));
  CHECK(refused(with_line(1, "5.0")).starts_with("1:1: "));
  CHECK(refused(with_line(1, "0x5")).starts_with("1:1: "));
  CHECK(refused(with_line(2, "0, 0")).starts_with("2:4: input 0 stands twice"));
  CHECK(refused(with_line(2, "0, 5")).starts_with("2:4: "));
  CHECK(refused(with_line(2, "0, 1, 2, 3, 4")).starts_with("3:1: "));
  CHECK(refused(with_line(3, "0, 0")).starts_with("4:1: the list of edge destinations has 3"));
  CHECK(refused(with_line(3, "0, 0, 1, 1")).starts_with("4:1: "));
  CHECK(refused(with_line(3, "0, x, 1")).starts_with("3:4: an edge source is a whole number"));
  CHECK(refused(with_line(3, "0, 3, 1")).starts_with("3:4: "));
  CHECK(refused(with_line(3, "0,, 1")).starts_with("3:3: two commas"));
  CHECK(refused(with_line(3, ", 0, 1")).starts_with("3:1: "));
  CHECK(refused(with_line(4, "1, 2, 2.0")).starts_with("4:7: "));
  CHECK(refused(with_line(4, "1, 2, 1")).find("loop") != std::string::npos);
  CHECK(refused(with_line(4, "1, 1, 2")).find("same") != std::string::npos);
  CHECK(refused(with_line(3, "0, 2, 1")).find("loop") != std::string::npos);
  CHECK(refused("2\n\n0,1\n1,0\n1,1\n1,1\n").find("cycle") != std::string::npos);
  for (const char* line :
       {"",         " ",    "8",       "8,",       "nan,nan", "inf,1",   "1,-inf",
        "-1,2",     "1,-2", "1,2,a,b", "1,2,a b",  "a,1",     "1,1e999", "0x1,1",
        "1,2,\xFF", "1;2",  "+1,2",    "1,2,\x01", "1e,2",    "--1,2",   "1..2,3"}) {
    CHECK(refused(with_line(6, line)).starts_with("6:"));
  }
  CHECK(
      refused(joined(kLines) + "rubbish").starts_with("8:1: text after the last of 3 node lines"));
  CHECK(refused(joined(kLines) + "\n1,2\n").starts_with("9:1: "));
  CHECK(refused(with_line(6, std::string("4,1\0", 4))).starts_with("6:3: "));
  CHECK(refused(joined(kLines, "\r")).starts_with("1:1: "));
  CHECK(refused(with_line(3, std::string(100000, 'x'))).starts_with("3:1: "));
}

TEST_CASE("Totals that overflow are refused") {
  CHECK(refused("2\n\n\n\n1e308,1\n1e308,1\n").find("overflows") != std::string::npos);
}

TEST_CASE("Every beginning of a text file that is not whole is refused") {
  const std::string text = joined(kLines);
  const Graph graph = parse_graph_text(text, "g");
  // Up to the last line: of that, "2.5e-1, 0" is whole but has another kind.
  for (std::size_t size = 0; size < text.find("2.5e-1, 0"); ++size) refused(text.substr(0, size));
}

TEST_CASE("The published graphs have the sizes that their description gives") {
  struct Published {
    std::string file;
    std::size_t n_nodes;
    std::size_t n_edges;
    std::size_t n_inputs;
  };
  for (const Published& published :
       {Published{"gdp_chain_mm_112nodes", 76, 80, 112 - 76},
        Published{"gdp_ffnn_192nodes", 180, 208, 192 - 180},
        Published{"gdp_transformer_block_215nodes", 182, 234, 215 - 182},
        Published{"gdp_full_transformer_layer_261nodes", 229, 284, 261 - 229},
        Published{"8gpu_transformer_block", 302, 398, 356 - 302},
        Published{"8gpu_full_transformer", 367, 470, 417 - 367}}) {
    const auto path = testing::reference_file("graphs/" + published.file + ".txt");
    if (!path) return;
    CAPTURE(published.file);
    const Graph graph = read_graph(*path);
    CHECK(graph.n_nodes() == published.n_nodes);
    CHECK(graph.n_edges() == published.n_edges);
    CHECK(graph.n_inputs() == published.n_inputs);
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      const NodeId node(static_cast<std::int64_t>(v));
      CHECK(graph.tensor_bytes(graph.first_tensor(node)) == 4 * graph.raw_compute()[v]);
      CHECK((graph.kind(node) == "node") == published.file.starts_with("8gpu"));
    }
    CHECK(parse_graph(to_text(graph), "g") == graph);
    CHECK(parse_graph(to_json(graph), "g") == graph);
  }
}

}  // namespace
}  // namespace doppler
