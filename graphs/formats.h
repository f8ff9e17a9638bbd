// Graph files: own JSON, the paper's text format, MSR dnn-partitioning JSON; DOT out.
//
// Readers refuse rather than guess. An error is ParseError "file:line:column: what; how to mend
// it"; a graph that reads well but breaks a rule is ParseError with the builder's list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graphs/graph.h"

namespace doppler {

enum class GraphFormat { json, text, msr, dot };

// "json", "text", "msr", "dot"; throws UsageError for another name.
GraphFormat parse_graph_format(std::string_view name);
std::string_view to_string(GraphFormat format);

// Reads any readable format; which one is told from the content. Throws ParseError or RunError.
Graph read_graph(const std::string& path);
// The same from memory; `source` stands for the file in messages.
Graph parse_graph(std::string_view content, const std::string& source);

// Own JSON: versioned, schema in docs/graph-format.md; read(write(g)) == g.
Graph parse_graph_json(std::string_view content, const std::string& source);
std::string to_json(const Graph& graph);

// The DOPPLER paper's text format (five parts: total nodes; input ids; edge sources; edge readers;
// one `compute,communication[,kind]` line a node). Compute becomes raw seconds and FLOPs alike, a
// node has one output of `communication` bytes. Nodes are named by their number.
Graph parse_graph_text(std::string_view content, const std::string& source);
// Throws InvalidError for a graph that this format cannot hold (tensors of several sizes a node).
std::string to_text(const Graph& graph);

// MSR dnn-partitioning JSON (github.com/msr-fiddle/dnn-partitioning).
Graph parse_graph_msr(std::string_view content, const std::string& source);

// Graphviz DOT, nodes labelled by name and kind.
std::string to_dot(const Graph& graph);

}  // namespace doppler
