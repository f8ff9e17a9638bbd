#include "tests/fuzz/readers.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "graphs/assignment.h"
#include "graphs/cluster_format.h"
#include "graphs/error.h"
#include "graphs/formats.h"
#include "graphs/registry.h"

namespace doppler::testing {
namespace {

constexpr std::size_t kMaxMessage = 4000;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

// Runs `action`, which may refuse with a message that is not empty and not long; whether it did
// not.
template <class Action>
bool may_refuse(Action action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < kMaxMessage, "a message of no use");
    return false;
  }
}

bool read_graph(std::string_view text) {
  return may_refuse([&] {
    const Graph graph = parse_graph(text, "file");
    require(parse_graph(to_json(graph), "file") == graph, "JSON does not read back equal");
    require(!to_dot(graph).empty(), "no DOT");
  });
}

bool read_graph_json(std::string_view text) {
  return may_refuse([&] {
    const Graph graph = parse_graph_json(text, "file");
    require(parse_graph_json(to_json(graph), "file") == graph, "JSON does not read back equal");
    may_refuse([&] {
      const Graph plain = parse_graph_text(to_text(graph), "file");
      require(plain.n_nodes() == graph.n_nodes() && plain.n_edges() == graph.n_edges(),
              "text lost a node or an edge");
    });
  });
}

bool read_graph_text(std::string_view text) {
  return may_refuse([&] {
    const Graph graph = parse_graph_text(text, "file");
    require(parse_graph_text(to_text(graph), "file") == graph, "text does not read back equal");
  });
}

bool read_graph_msr(std::string_view text) {
  return may_refuse([&] {
    const Graph graph = parse_graph_msr(text, "file");
    require(parse_graph_json(to_json(graph), "file") == graph, "JSON does not read back equal");
  });
}

bool read_cluster(std::string_view text) {
  return may_refuse([&] {
    const Cluster cluster = parse_cluster(text, "file");
    require(parse_cluster(to_json(cluster), "file") == cluster, "it does not read back equal");
  });
}

bool read_profile(std::string_view text) {
  return may_refuse([&] {
    const Profile profile = parse_profile(text, "file");
    require(parse_profile(to_json(profile), "file") == profile, "it does not read back equal");
  });
}

bool read_assignment(std::string_view text) {
  return may_refuse([&] {
    const Assignment assignment = parse_assignment(text, "file");
    require(parse_assignment(to_json(assignment), "file") == assignment,
            "it does not read back equal");
  });
}

bool read_named_call(std::string_view text) {
  static const std::vector<ParameterSpec> schema = {
      {.name = "n", .summary = "", .default_value = std::int64_t{1}, .minimum = 0},
      {.name = "rate", .summary = "", .default_value = 0.5, .maximum = 1e6},
      {.name = "fast", .summary = "", .default_value = true},
      {.name = "order",
       .summary = "",
       .default_value = std::string("fifo"),
       .choices = {"fifo", "random"}},
      {.name = "label", .summary = "", .default_value = std::string()}};
  return may_refuse([&] {
    const Parameters parameters(schema, NamedCall::parse(text));
    require(Parameters(schema, NamedCall::parse(parameters.canonical())) == parameters,
            "the canonical spelling does not read back equal");
  });
}

constexpr Reader kReaders[] = {{"assignment", read_assignment}, {"cluster", read_cluster},
                               {"graph", read_graph},           {"graph-json", read_graph_json},
                               {"graph-msr", read_graph_msr},   {"graph-text", read_graph_text},
                               {"named-call", read_named_call}, {"profile", read_profile}};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

const Reader& reader(std::string_view name) {
  for (const Reader& candidate : kReaders) {
    if (candidate.name == name) return candidate;
  }
  throw std::logic_error("no reader named " + std::string(name));
}

}  // namespace doppler::testing
