// MSR dnn-partitioning JSON.
#include <string>
#include <vector>

#include "graphs/formats.h"
#include "tests/graphs/refusal.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::string node(const std::string& id, const std::string& more = "") {
  return "{\"id\": " + id +
         ", \"supportedOnFpga\": 1, \"cpuLatency\": 6.5, \"fpgaLatency\": 0.5, "
         "\"isBackwardNode\": false, \"size\": 16.0" +
         more + "}";
}

std::string edge(const std::string& source, const std::string& reader, const std::string& cost) {
  return "{\"sourceId\": " + source + ", \"destId\": " + reader + ", \"cost\": " + cost + "}";
}

struct Parts {
  std::string head = "\"maxSizePerFPGA\": 1e9, \"maxFPGAs\": 2, \"maxCPUs\": 1";
  std::string nodes = node("7", ", \"name\": \"MatMul1\", \"colorClass\": 3, \"layerId\": 2") +
                      ", " + node("-4") + ", " + node("0");
  std::string edges = edge("7", "0", "0.25") + ", " + edge("7", "-4", "0.25");
};

std::string document(const Parts& parts) {
  return "{" + parts.head + ", \"nodes\": [" + parts.nodes + "], \"edges\": [" + parts.edges + "]}";
}

std::string refused(const std::string& text) {
  CAPTURE(text);
  return testing::refusal("g.json", [&] { (void)parse_graph_msr(text, "g.json"); });
}

TEST_CASE("An MSR file becomes a graph with raw seconds for each device") {
  const Graph graph = parse_graph(document({}), "g");
  REQUIRE(graph.n_nodes() == 3);
  CHECK(graph.name(NodeId{0}) == "MatMul1");
  CHECK(graph.name(NodeId{1}) == "-4");
  CHECK(graph.kind(NodeId{0}) == "node");
  CHECK(graph.attributes(NodeId{0}) ==
        "{\"isBackwardNode\":false,\"size\":16,\"colorClass\":3,\"layerId\":2}");
  CHECK(graph.attributes(NodeId{1}) == "{\"isBackwardNode\":false,\"size\":16}");
  REQUIRE(graph.n_edges() == 2);
  CHECK(graph.edge(EdgeId{0}) == Edge{NodeId{0}, NodeId{2}, 0});
  CHECK(graph.edge(EdgeId{1}) == Edge{NodeId{0}, NodeId{1}, 0});
  CHECK(graph.edge_bytes(EdgeId{0}) == 0.25);
  CHECK(graph.n_tensors() == 3);
  REQUIRE(graph.raw_devices() == 3);
  for (std::size_t v = 0; v < 3; ++v) {
    CHECK(graph.raw_compute()[3 * v] == 0.5);
    CHECK(graph.raw_compute()[3 * v + 1] == 0.5);
    CHECK(graph.raw_compute()[3 * v + 2] == 6.5);
  }
  CHECK(parse_graph(to_json(graph), "g") == graph);
}

TEST_CASE("Edges may stand before nodes, fields in any order, flags as numbers") {
  Parts parts;
  const std::string text =
      "{\"edges\": [" + parts.edges + "], \"nodes\": [" + parts.nodes + "], " + parts.head + "}";
  CHECK(parse_graph(text, "g") == parse_graph(document(parts), "g"));
  parts.edges = "{\"size\": 4, \"cost\": 0.25, \"destId\": 0, \"sourceId\": 7}";
  CHECK(parse_graph_msr(document(parts), "g").n_edges() == 1);
}

TEST_CASE("Costs out of one node may differ by rounding only") {
  Parts parts;
  parts.edges = edge("7", "0", "0.25") + ", " + edge("7", "-4", "0.2500001");
  CHECK(parse_graph_msr(document(parts), "g").edge_bytes(EdgeId{1}) == 0.25);
  parts.edges = edge("7", "0", "0.25") + ", " + edge("7", "-4", "0.26");
  CHECK(refused(document(parts)).find("id 7") != std::string::npos);
}

TEST_CASE("MSR files that say something else are refused") {
  for (const char* head :
       {"\"maxFPGAs\": 2, \"maxCPUs\": 1", "\"maxSizePerFPGA\": 1, \"maxCPUs\": 1",
        "\"maxSizePerFPGA\": -1, \"maxFPGAs\": 2, \"maxCPUs\": 1",
        "\"maxSizePerFPGA\": 1, \"maxFPGAs\": 0, \"maxCPUs\": 0",
        "\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1000, \"maxCPUs\": 1000",
        "\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1000000000000000000, \"maxCPUs\": 1",
        "\"maxSizePerFPGA\": 1, \"maxFPGAs\": 2.5, \"maxCPUs\": 1",
        "\"maxSizePerFPGA\": 1, \"maxFPGAs\": 2, \"maxCPUs\": 1, \"x\": 1"}) {
    Parts parts;
    parts.head = head;
    refused(document(parts));
  }
  for (const std::string& bad :
       {node("7"), node("1.5"), node("\"a\""), node("1", ", \"name\": \"\""),
        node("1", ", \"containedSubnodes\": [1]"), node("1", ", \"id\": 2"), std::string("{}"),
        std::string("[]"), std::string("1"),
        std::string(
            "{\"id\": 1, \"supportedOnFpga\": false, \"cpuLatency\": 1, \"fpgaLatency\": 1, "
            "\"isBackwardNode\": 0, \"size\": 1}"),
        std::string("{\"id\": 1, \"supportedOnFpga\": 2, \"cpuLatency\": 1, \"fpgaLatency\": 1, "
                    "\"isBackwardNode\": 0, \"size\": 1}"),
        std::string("{\"id\": 1, \"supportedOnFpga\": 1, \"cpuLatency\": -1, \"fpgaLatency\": 1, "
                    "\"isBackwardNode\": 0, \"size\": 1}"),
        std::string("{\"id\": 1, \"supportedOnFpga\": 1, \"fpgaLatency\": 1, "
                    "\"isBackwardNode\": 0, \"size\": 1}")}) {
    Parts parts;
    parts.nodes += ", " + bad;
    refused(document(parts));
  }
  for (const std::string& bad :
       {edge("7", "1", "0.25"), edge("1", "7", "0.25"), edge("7", "7", "0.25"),
        edge("7", "0", "0.25"), edge("0", "7", "1"), edge("0", "-4", "-1"), edge("0", "-4", "null"),
        std::string("{\"sourceId\": 0, \"destId\": -4}"), std::string("[0, -4]")}) {
    Parts parts;
    parts.edges += ", " + bad;
    refused(document(parts));
  }
  const std::string whole = document({});
  for (std::size_t size = 0; size < whole.size(); size += 3) refused(whole.substr(0, size));
  refused(whole + whole);
}

}  // namespace
}  // namespace doppler
