// Own JSON: exact round trips, and refusals with their places.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "graphs/error.h"
#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "graphs/number_text.h"
#include "tests/graphs/arbitrary_graph.h"
#include "tests/graphs/refusal.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

const std::string kHead = "{\"format\": \"doppler-graph\", \"version\": 1, ";

std::string refused(const std::string& text) {
  CAPTURE(text.substr(0, 200));
  return testing::refusal("g.json", [&] { (void)parse_graph_json(text, "g.json"); });
}

TEST_CASE("The example of the documentation reads as it says") {
  const Graph graph = parse_graph_json(R"({"format": "doppler-graph", "version": 1,
 "name": "example",
 "nodes": [
  {"name": "a", "kind": "einsum", "meta_op": 0, "flops": 2e6, "bytes_read": 8e4, "bytes_written": 4e4,
   "outputs": [{"bytes": 40000, "shape": [100, 100], "dtype": "float32"}],
   "attributes": "{\"index\": \"ij,jk->ik\"}"},
  {"name": "b", "kind": "relu", "outputs": [{"bytes": 40000}]}
 ],
 "edges": [[0, 1]],
 "inputs": [{"name": "w", "bytes": 40000, "shape": [100, 100], "readers": [0]}],
 "raw_compute": [0.5, 0.25]})",
                                       "example");
  CHECK(graph.name() == "example");
  REQUIRE(graph.n_nodes() == 2);
  CHECK(graph.node(NodeId{0}) == Node{.name = "a",
                                      .kind = "einsum",
                                      .meta_op = 0,
                                      .flops = 2e6,
                                      .bytes_read = 8e4,
                                      .bytes_written = 4e4,
                                      .outputs = {Tensor{40000, {100, 100}, DType::float32}},
                                      .attributes = "{\"index\": \"ij,jk->ik\"}"});
  CHECK(graph.node(NodeId{1}) ==
        Node{.name = "b", .kind = "relu", .outputs = {Tensor{40000, {}, DType::float32}}});
  REQUIRE(graph.n_edges() == 1);
  CHECK(graph.edge(EdgeId{0}) == Edge{NodeId{0}, NodeId{1}, 0});
  REQUIRE(graph.n_inputs() == 1);
  CHECK(graph.inputs()[0] ==
        GraphInput{"w", Tensor{40000, {100, 100}, DType::float32}, {NodeId{0}}});
  REQUIRE(graph.raw_devices() == 1);
  CHECK(graph.raw_compute()[0] == 0.5);
  CHECK(graph.raw_compute()[1] == 0.25);
}

TEST_CASE("A graph that was written as JSON reads back equal") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Graph graph = testing::arbitrary_graph(seed);
    const std::string text = to_json(graph);
    CHECK(parse_graph_json(text, "g") == graph);
    CHECK(parse_graph(text, "g") == graph);
    // A document reader of the library sees the same fields, and any order of fields is accepted.
    const nlohmann::json document = nlohmann::json::parse(text);
    CHECK(document.at("nodes").size() == graph.n_nodes());
    CHECK(document.at("edges").size() == graph.n_edges());
    CHECK(parse_graph_json(document.dump(), "g") == graph);
    CHECK(parse_graph(document.dump(1), "g") == graph);
  }
}

TEST_CASE("Numbers are written so that they read back bit for bit") {
  std::mt19937_64 bits(7);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0.1,
                                 1e22,
                                 1e23,
                                 4e12,
                                 9007199254740992.0,
                                 5e-324,
                                 1e308,
                                 1e-5,
                                 123.0,
                                 -7.0,
                                 18446744073709551616.0,
                                 2.0 / 3,
                                 1e15,
                                 1e16};
  while (numbers.size() < 20000) {
    const auto number = std::bit_cast<double>(bits());
    if (std::isfinite(number)) numbers.push_back(number);
  }
  for (double number : numbers) {
    const std::string text = number_text(number);
    CAPTURE(text);
    const auto read = parse_double(text);
    REQUIRE(read.has_value());
    CHECK(std::bit_cast<std::uint64_t>(*read) == std::bit_cast<std::uint64_t>(number));
    const double json = nlohmann::json::parse(text).get<double>();
    CHECK(std::bit_cast<std::uint64_t>(json) == std::bit_cast<std::uint64_t>(number));
  }
  CHECK(number_text(4e12) == "4000000000000");
  CHECK(number_text(0.1) == "0.1");
}

TEST_CASE("Text that is not UTF-8 cannot be written as JSON") {
  GraphBuilder builder;
  builder.add_node({.name = "a\xFF"});
  CHECK_THROWS_AS(to_json(builder.build()), InvalidError);
}

TEST_CASE("JSON that is damaged is refused with line and column") {
  CHECK(refused("{\"nodes\": [").starts_with("1:"));
  CHECK(refused("").starts_with("1:1: "));
  CHECK(refused("{\n\"format\": \"doppler-graph\",\n\"version\": 1,,").starts_with("3:14: "));
  CHECK(refused("{\"format\": nan}").starts_with("1:"));
  const std::string whole = to_json(testing::arbitrary_graph(3));
  CHECK(refused(whole + "x").find("not JSON") != std::string::npos);
  CHECK(refused(whole + "{}").find("not JSON") != std::string::npos);
  CHECK(refused(whole + std::string("\0", 1)).find("zero byte") != std::string::npos);
  const std::size_t end = whole.find_last_of('}');
  for (std::size_t size = 0; size < end; size += 7) refused(whole.substr(0, size));
  CHECK(refused(std::string(1000000, '[')).starts_with("1:1: "));
  std::string deep = "{\"nodes\": ";
  for (int i = 0; i < 100000; ++i) deep += "[";
  CHECK(refused(deep).starts_with("1:12: "));
  CHECK(refused(kHead + "\"name\": \"\xFF\"}").starts_with("1:"));
  CHECK(refused(kHead + "\"name\": \"\\ud800\"}").starts_with("1:"));
}

TEST_CASE("Fields that are unknown, repeated, missing or of the wrong type are refused") {
  CHECK(refused("[]").starts_with("1:1: "));
  CHECK(refused("3").starts_with("1:1: "));
  CHECK(refused("{}").find("'format'") != std::string::npos);
  CHECK(refused("{\"format\": \"doppler-cluster\"}").starts_with("1:12: "));
  CHECK(refused("{\"format\": \"doppler-graph\", \"version\": 2}").find("version 1") !=
        std::string::npos);
  CHECK(refused("{\"format\": \"doppler-graph\", \"version\": 1.0}").starts_with("1:40: "));
  CHECK(refused(kHead + "\"nodes\": []}").find("'edges'") != std::string::npos);
  CHECK(refused(kHead + "\"edges\": []}").find("'nodes'") != std::string::npos);
  CHECK(refused(kHead + "\"edges\": [], \"edges\": []}").find("twice") != std::string::npos);
  CHECK(refused(kHead + "\"edge\": []}").find("did you mean edges?") != std::string::npos);

  const std::string sentence = std::string(5000, 'k');
  for (const std::string& node :
       {std::string("{}"),
        std::string("3"),
        std::string("[]"),
        std::string("null"),
        std::string("{\"name\": 3}"),
        std::string("{\"name\": \"\"}"),
        std::string("{\"name\": \"a\", \"flop\": 1}"),
        std::string("{\"name\": \"a\", \"name\": \"b\"}"),
        std::string("{\"name\": \"a\", \"flops\": -1}"),
        std::string("{\"name\": \"a\", \"flops\": \"1\"}"),
        std::string("{\"name\": \"a\", \"flops\": 1e999}"),
        std::string("{\"name\": \"a\", \"flops\": NaN}"),
        std::string("{\"name\": \"a\", \"flops\": []}"),
        std::string("{\"name\": \"a\", \"meta_op\": -2}"),
        std::string("{\"name\": \"a\", \"meta_op\": 2147483648}"),
        std::string("{\"name\": \"a\", \"meta_op\": 1.5}"),
        std::string("{\"name\": \"a\", \"outputs\": {}}"),
        std::string("{\"name\": \"a\", \"outputs\": [3]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": -0.5}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": 1, \"dtype\": \"float31\"}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": 1, \"shape\": 3}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": 1, \"shape\": [-1]}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": 1, \"shape\": [1.5]}]}"),
        std::string("{\"name\": \"a\", \"outputs\": [{\"bytes\": 1, \"name\": \"x\"}]}"),
        std::string("{\"name\": \"a\", \"attributes\": {}}"),
        "{\"" + sentence + "\": 1}",
        "{\"name\": \"a\", \"flops\": \"" + sentence + "\"}"}) {
    refused(kHead + "\"nodes\": [" + node + "], \"edges\": []}");
  }
  const std::string two = kHead +
                          "\"nodes\": [{\"name\": \"a\", \"outputs\": [{\"bytes\": 1}]}, "
                          "{\"name\": \"b\"}], ";
  CHECK(parse_graph_json(two + "\"edges\": [[0, 1]]}", "g").n_edges() == 1);
  for (const char* edges :
       {"[3]", "[[]]", "[[0]]", "[[0, 1, 0, 0]]", "[[0, 2]]", "[[2, 0]]", "[[-1, 0]]", "[[0, 1.0]]",
        "[[0, \"1\"]]", "[[0, 1, 1]]", "[[0, 1, -1]]", "[[0, 1], [0, 1]]", "[[0, 0]]", "[[1, 0]]",
        "[[0, 1], [1, 0]]", "{}", "3", "[[0, 1000000000000000000]]", "[{\"producer\": 0}]"}) {
    CAPTURE(edges);
    refused(two + "\"edges\": " + edges + "}");
  }
  for (const char* raw : {"[1]", "[1, 2, 3]", "[1, -1]", "[[1, 2], [3]]", "[[1], 2]", "[1, [2]]",
                          "[[], []]", "[[1, 2]]", "{}", "1", "[null, 1]", "[[[1]], [1]]"}) {
    CAPTURE(raw);
    refused(two + "\"edges\": [], \"raw_compute\": " + raw + "}");
  }
  for (const char* input : {"{}", "{\"name\": \"w\"}", "{\"name\": \"\", \"bytes\": 1}",
                            "{\"name\": \"w\", \"bytes\": 1, \"readers\": [2]}",
                            "{\"name\": \"w\", \"bytes\": 1, \"readers\": [0, 0]}",
                            "{\"name\": \"w\", \"bytes\": 1, \"readers\": 0}", "[]", "1"}) {
    CAPTURE(input);
    refused(two + "\"edges\": [], \"inputs\": [" + std::string(input) + "]}");
  }
}

TEST_CASE("A refusal of a value names the place of the value") {
  CHECK(refused(kHead + "\n\"nodes\": [{\"name\": \"a\",\n  \"flops\": -25}], \"edges\": []}")
            .starts_with("3:12: 'flops' is a number of at least 0, found -25"));
  CHECK(refused(kHead + "\n\"nodes\": [{\"name\": \"a\"}],\n\"edges\": [[0,\n 17]]}")
            .starts_with("4:2: a node is a whole number from 0 to 0, found 17"));
  CHECK(refused(kHead + "\n \"nodez\": []}").starts_with("2:2: unknown field"));
}

TEST_CASE("JSON with a byte order mark and CRLF line ends reads") {
  const std::string text = "\xEF\xBB\xBF" + kHead + "\r\n\"nodes\": [],\r\n\"edges\": []}\r\n";
  CHECK(parse_graph(text, "g") == Graph());
  CHECK(refused("\xEF\xBB\xBF{\"formt\": 1}").starts_with("1:5: unknown field"));
}

}  // namespace
}  // namespace doppler
