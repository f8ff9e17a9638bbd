// Graphviz DOT (graphviz.org/doc/info/lang.html), written only.
#include <string>

#include "graphs/formats.h"
#include "graphs/number_text.h"

namespace doppler {
namespace {

// A quoted DOT string that shows the text as it is.
std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (c != '\0') {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string text = "digraph " + dot_string(graph.name()) + " {\n";
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    std::string label(graph.name(node));
    if (!graph.kind(node).empty()) label += "\n" + std::string(graph.kind(node));
    text += "  n" + std::to_string(v) + " [label=" + dot_string(label) + "];\n";
  }
  for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    const std::string id = "i" + std::to_string(i);
    text += "  " + id + " [shape=box, label=" + dot_string(input.name) + "];\n";
    for (NodeId reader : input.readers) {
      text += "  " + id + " -> n" + std::to_string(reader.value) + ";\n";
    }
  }
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const EdgeId id(static_cast<std::int64_t>(e));
    const Edge edge = graph.edge(id);
    text += "  n" + std::to_string(edge.producer.value) + " -> n" +
            std::to_string(edge.reader.value) + " [label=\"" + number_text(graph.edge_bytes(id)) +
            "\"];\n";
  }
  return text + "}\n";
}

}  // namespace doppler
