// The default decompositions against the graphs published with the DOPPLER paper.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "datasets/workloads.h"
#include "graphs/analysis.h"
#include "graphs/hash.h"
#include "tests/support/catch.h"
#include "tests/support/reference.h"

using namespace doppler;

namespace {

// A graph by its shape alone. Read here and not by the project's own reader, so that both can be
// wrong only independently.
struct Shape {
  std::vector<std::string> kinds;
  std::vector<std::pair<int, int>> edges;
};

std::vector<int> numbers(std::string line) {
  std::replace(line.begin(), line.end(), ',', ' ');
  std::istringstream stream(line);
  std::vector<int> result;
  for (int x = 0; stream >> x;) result.push_back(x);
  return result;
}

Shape read_published(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \r\t") != std::string::npos) lines.push_back(line);
  }
  Shape shape;
  const auto producers = numbers(lines.at(2));
  const auto readers = numbers(lines.at(3));
  for (std::size_t i = 0; i < producers.size(); ++i) {
    shape.edges.emplace_back(producers[i], readers.at(i));
  }
  for (std::size_t i = 4; i < lines.size(); ++i) {
    const auto comma = lines[i].find(',', lines[i].find(',') + 1);
    std::string kind = comma == std::string::npos ? "" : lines[i].substr(comma + 1);
    std::erase_if(kind, [](char c) { return c == ' ' || c == '\r' || c == ','; });
    shape.kinds.push_back(kind);
  }
  return shape;
}

// The published word for one of our kinds.
std::string published_kind(std::string_view kind) {
  if (kind == "aggregate") return "formation";
  if (kind == "fill" || kind == "select") return std::string(kind);
  if (kind == "squeeze") return "squeezer";
  if (kind == "transpose") return "complexer";
  return "einsummable";
}

Shape shape_of(const Graph& graph) {
  Shape shape;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    shape.kinds.push_back(published_kind(graph.kind(NodeId(static_cast<std::int64_t>(v)))));
  }
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    shape.edges.emplace_back(edge.producer.value, edge.reader.value);
  }
  return shape;
}

// A fingerprint of the graph that does not depend on the order of nodes: the multiset of (level,
// kind, in-degree, out-degree), refined by the fingerprints of predecessors and of successors.
std::map<std::string, int> fingerprint(const Shape& shape, bool with_kinds) {
  const std::size_t n = shape.kinds.size();
  std::vector<std::vector<std::size_t>> in(n), out(n);
  for (const auto& [producer, reader] : shape.edges) {
    in[static_cast<std::size_t>(reader)].push_back(static_cast<std::size_t>(producer));
    out[static_cast<std::size_t>(producer)].push_back(static_cast<std::size_t>(reader));
  }
  std::vector<int> level(n, 0);
  for (std::size_t round = 0; round < n; ++round) {
    bool changed = false;
    for (const auto& [producer, reader] : shape.edges) {
      int& of_reader = level[static_cast<std::size_t>(reader)];
      const int least = level[static_cast<std::size_t>(producer)] + 1;
      changed = changed || of_reader < least;
      of_reader = std::max(of_reader, least);
    }
    if (!changed) break;
  }
  std::vector<std::string> colour(n);
  for (std::size_t v = 0; v < n; ++v) {
    colour[v] = std::to_string(level[v]) + "/" + std::to_string(in[v].size()) + "/" +
                std::to_string(out[v].size()) + (with_kinds ? "/" + shape.kinds[v] : "");
  }
  // Colour refinement, with hashes in place of ever longer texts.
  for (int round = 0; round < 70; ++round) {
    std::vector<std::string> refined(n);
    for (std::size_t v = 0; v < n; ++v) {
      std::vector<std::string> before, after;
      for (std::size_t p : in[v]) before.push_back(colour[p]);
      for (std::size_t s : out[v]) after.push_back(colour[s]);
      std::sort(before.begin(), before.end());
      std::sort(after.begin(), after.end());
      refined[v] = colour[v] + "(";
      for (const auto& text : before) refined[v] += text + " ";
      refined[v] += "|";
      for (const auto& text : after) refined[v] += text + " ";
      refined[v] += ")";
    }
    for (std::size_t v = 0; v < n; ++v) {
      colour[v] = std::to_string(Hasher().add(std::string_view(refined[v])).digest());
    }
  }
  std::map<std::string, int> counts;
  for (const auto& text : colour) ++counts[text];
  return counts;
}

// Nodes of each level by in- and out-degree.
using Degrees = std::map<std::tuple<int, std::size_t, std::size_t>, int>;

Degrees degrees(const Graph& graph) {
  Degrees result;
  for (NodeId node : graph.topological_order()) {
    ++result[{graph.level(node), graph.in_edges(node).size(), graph.out_edges(node).size()}];
  }
  return result;
}

struct Published {
  std::string file;
  std::string workload;
  int n_devices;
  std::size_t n_nodes;
  std::size_t n_edges;
};

}  // namespace

TEST_CASE("Default chainmm, ffnn and llama-layer have the shape of their published graphs") {
  const Published published =
      GENERATE(Published{"gdp_chain_mm_112nodes", "chainmm", 4, 76, 80},
               Published{"gdp_ffnn_192nodes", "ffnn", 4, 180, 208},
               Published{"gdp_full_transformer_layer_261nodes", "llama-layer", 4, 229, 284},
               Published{"8gpu_full_transformer", "llama-layer", 8, 367, 470});
  CAPTURE(published.workload, published.n_devices);
  const Graph graph = make_workload(published.workload, published.n_devices);
  CHECK(graph.n_nodes() == published.n_nodes);
  CHECK(graph.n_edges() == published.n_edges);
  const auto path = doppler::testing::reference_file("graphs/" + published.file + ".txt");
  if (!path) return;
  const Shape expected = read_published(*path);
  const bool with_kinds = !expected.kinds.front().empty();
  CHECK(fingerprint(shape_of(graph), with_kinds) == fingerprint(expected, with_kinds));
}

TEST_CASE("chainmm and ffnn of four devices have the published level widths") {
  CHECK(level_widths(make_workload("chainmm", 4)) == std::vector<std::size_t>{32, 12, 16, 8, 8});
  CHECK(level_widths(make_workload("ffnn", 4)) ==
        std::vector<std::size_t>{16, 16, 16, 16, 4, 16, 16, 16, 16, 16, 16, 16});
  CHECK(degrees(make_workload("chainmm", 4)) == Degrees{{{0, 0, 1}, 32},
                                                        {{1, 2, 1}, 8},
                                                        {{1, 4, 4}, 4},
                                                        {{2, 1, 1}, 16},
                                                        {{3, 2, 1}, 8},
                                                        {{4, 2, 0}, 8}});
}

TEST_CASE("chainmm and ffnn of four devices have the published numbers of input blocks") {
  CHECK(make_workload("chainmm", 4).n_inputs() == 36);
  CHECK(make_workload("ffnn", 4).n_inputs() == 12);
}

TEST_CASE("llama-block is within a tenth of the published numbers of nodes and edges") {
  const Published published = GENERATE(Published{"", "llama-block", 4, 182, 234},
                                       Published{"", "llama-block", 8, 302, 398});
  const Graph graph = make_workload(published.workload, published.n_devices);
  const auto ratio = [](std::size_t a, std::size_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  CHECK(ratio(graph.n_nodes(), published.n_nodes) > 0.9);
  CHECK(ratio(graph.n_nodes(), published.n_nodes) < 1.1);
  CHECK(ratio(graph.n_edges(), published.n_edges) > 0.9);
  CHECK(ratio(graph.n_edges(), published.n_edges) < 1.1);
}
