// The DOPPLER paper's text format; see docs/graph-format.md.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "graphs/number_text.h"
#include "graphs/parse_error.h"
#include "graphs/parsed_graph.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxCount = 2147483647;  // 2^31 - 1, the largest id
constexpr std::string_view kDefaultKind = "node";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Walks the content line by line and, in a line, token by token.
class TextReader {
 public:
  TextReader(std::string_view content, const std::string& source)
      : content_(content), source_(source), next_line_(byte_order_mark(content)) {}

  Graph read() {
    if (content_.empty()) fail_at(0, "an empty file");
    read_counts();
    read_inputs();
    read_edges();
    read_nodes();
    return build_parsed(builder_, source_);
  }

 private:
  [[noreturn]] void fail_at(std::size_t offset, const std::string& message) const {
    throw_parse_error(content_, source_, offset, message);
  }

  // Goes to the next line; false at the end of the file.
  bool next_line() {
    if (next_line_ >= content_.size()) return false;
    line_ = at_ = next_line_;
    const std::size_t newline = content_.find('\n', line_);
    line_end_ = newline == std::string_view::npos ? content_.size() : newline;
    next_line_ = newline == std::string_view::npos ? content_.size() : newline + 1;
    if (line_end_ > line_ && content_[line_end_ - 1] == '\r') --line_end_;
    is_first_ = true;
    return true;
  }
  void require_line(const std::string& part) {
    if (!next_line()) fail_at(content_.size(), "the file ends before " + part);
  }

  // The next token of the line; nothing at its end. Blanks, or one comma with blanks, separate
  // tokens; one comma may end the line.
  std::optional<std::string_view> token() {
    skip_blanks();
    if (at_ < line_end_ && content_[at_] == ',') {
      if (is_first_) fail_at(at_, "a comma without a value before it");
      ++at_;
      skip_blanks();
      if (at_ < line_end_ && content_[at_] == ',') fail_at(at_, "two commas in a row");
    }
    if (at_ == line_end_) return std::nullopt;
    is_first_ = false;
    token_ = at_;
    while (at_ < line_end_ && !is_blank(content_[at_]) && content_[at_] != ',') ++at_;
    return content_.substr(token_, at_ - token_);
  }
  void skip_blanks() {
    while (at_ < line_end_ && is_blank(content_[at_])) ++at_;
  }
  // Throws unless nothing is left on the line.
  void end_line(const std::string& part) {
    if (const auto extra = token()) {
      fail_at(token_, "found " + quoted(*extra) + " after the end of " + part);
    }
  }

  // The next token as a whole number below `limit`; nothing at the end of the line.
  std::optional<std::int64_t> whole_number(const std::string& what, std::int64_t limit) {
    const auto text = token();
    if (!text) return std::nullopt;
    const auto number = parse_int64(*text);
    const bool has_digits_only = text->find_first_not_of("0123456789") == std::string_view::npos;
    if (!has_digits_only) fail_at(token_, what + " is a whole number, found " + quoted(*text));
    if (!number || *number >= limit) {
      fail_at(token_, what + " is " + quoted(*text) + "; " +
                          (limit == 0 ? "there are none"
                                      : "the largest possible is " + std::to_string(limit - 1)));
    }
    return *number;
  }

  double amount(const std::string& what) {
    const auto text = token();
    if (!text)
      fail_at(at_, "a node's line is compute,communication[,kind]; " + what + " is missing");
    const auto number = parse_double(*text);
    if (!number || *number < 0) {
      fail_at(token_, what + " is a finite number of at least 0, found " + quoted(*text));
    }
    return *number;
  }

  void read_counts() {
    require_line("the number of nodes");
    const auto total = whole_number("the number of nodes", kMaxCount + 1);
    if (!total) fail_at(line_, "the first line is the number of nodes, found a blank line");
    end_line("the number of nodes");
    total_ = *total;
  }

  void read_inputs() {
    require_line("the list of inputs");
    std::vector<std::pair<std::int64_t, std::size_t>> seen;  // id, place
    while (const auto id = whole_number("an input", total_)) {
      seen.emplace_back(*id, token_);
      builder_.add_input({std::to_string(*id), Tensor{}, {}});
    }
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 1; i < seen.size(); ++i) {
      if (seen[i].first == seen[i - 1].first) {
        fail_at(seen[i].second, "input " + std::to_string(seen[i].first) + " stands twice");
      }
    }
    n_nodes_ = total_ - static_cast<std::int64_t>(seen.size());
  }

  void read_edges() {
    require_line("the list of edge sources");
    std::vector<NodeId> producers;
    while (const auto id = whole_number("an edge source", n_nodes_)) producers.emplace_back(*id);
    require_line("the list of edge destinations");
    std::size_t n_readers = 0;
    while (const auto id = whole_number("an edge destination", n_nodes_)) {
      if (n_readers < producers.size()) builder_.add_edge(producers[n_readers], NodeId{*id});
      ++n_readers;
    }
    if (n_readers != producers.size()) {
      fail_at(line_, "the list of edge destinations has " + std::to_string(n_readers) +
                         " numbers, the list of sources " + std::to_string(producers.size()));
    }
  }

  void read_nodes() {
    std::vector<double> compute;
    Node node;
    node.outputs.resize(1);
    for (std::int64_t v = 0; v < n_nodes_; ++v) {
      if (!next_line()) {
        fail_at(content_.size(), "the file ends after " + std::to_string(v) + " of " +
                                     std::to_string(n_nodes_) + " node lines");
      }
      node.name = std::to_string(v);
      node.flops = amount("compute");
      node.outputs[0].bytes = amount("communication");
      node.kind = kind();
      end_line("a node's line");
      compute.push_back(node.flops);
      builder_.add_node(node);
    }
    while (next_line()) {
      if (token()) {
        fail_at(token_, "text after the last of " + std::to_string(n_nodes_) +
                            " node lines; the first line counts nodes and inputs together");
      }
    }
    builder_.set_raw_compute(std::move(compute));
  }

  std::string kind() {
    const auto text = token();
    if (!text) return std::string(kDefaultKind);
    const bool has_control = std::any_of(text->begin(), text->end(),
                                         [](char c) { return (c >= 0 && c < 32) || c == 127; });
    if (has_control || find_bad_utf8(*text) != std::string_view::npos) {
      fail_at(token_, "a kind is UTF-8 text without control characters, found " + quoted(*text));
    }
    return std::string(*text);
  }

  std::string_view content_;
  const std::string& source_;
  std::size_t next_line_;
  std::size_t line_ = 0;      // where the line begins
  std::size_t line_end_ = 0;  // without its line end
  std::size_t at_ = 0;
  std::size_t token_ = 0;  // where the last token began
  bool is_first_ = true;   // no token of the line was read
  std::int64_t total_ = 0;
  std::int64_t n_nodes_ = 0;
  GraphBuilder builder_;
};

[[noreturn]] void refuse(const std::string& what) {
  throw InvalidError("the text format cannot hold this graph: " + what + "; write JSON instead");
}

std::string node_text(const Graph& graph, NodeId node) {
  return "node " + std::to_string(node.value) + " " + quoted(graph.name(node));
}

// The bytes of a node's outputs, which are all the same.
double communication(const Graph& graph, NodeId node) {
  double bytes = 0;
  for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
    const TensorId tensor(graph.first_tensor(node).value + static_cast<std::int64_t>(i));
    if (i > 0 && graph.tensor_bytes(tensor) != bytes) {
      refuse(node_text(graph, node) + " has outputs of several sizes");
    }
    bytes = graph.tensor_bytes(tensor);
  }
  return bytes;
}

std::string kind_suffix(const Graph& graph, NodeId node) {
  const std::string_view kind = graph.kind(node);
  if (kind.empty() || kind == kDefaultKind) return "";
  const bool is_token = std::all_of(kind.begin(), kind.end(), [](char c) {
    return c != ',' && c != 127 && !(c >= 0 && c <= 32);
  });
  if (!is_token || find_bad_utf8(kind) != std::string_view::npos) {
    refuse("the kind " + quoted(kind) + " is not one word");
  }
  return "," + std::string(kind);
}

// The numbers of the inputs: their names if these are different numbers below the total, else 0, 1,
// ...
std::vector<std::int64_t> input_ids(const Graph& graph) {
  const auto total = static_cast<std::int64_t>(graph.n_nodes() + graph.n_inputs());
  std::vector<std::int64_t> ids;
  std::set<std::int64_t> distinct;
  for (const GraphInput& input : graph.inputs()) {
    const auto id = parse_int64(input.name);
    if (id && *id >= 0 && *id < total && std::to_string(*id) == input.name) {
      ids.push_back(*id);
      distinct.insert(*id);
    }
  }
  if (distinct.size() == graph.n_inputs()) return ids;
  ids.resize(graph.n_inputs());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  return ids;
}

template <class Number>
void append_line(std::string& text, std::size_t n, Number number) {
  for (std::size_t i = 0; i < n; ++i) text += (i > 0 ? ", " : "") + std::to_string(number(i));
  text += '\n';
}

}  // namespace

Graph parse_graph_text(std::string_view content, const std::string& source) {
  return TextReader(content, source).read();
}

std::string to_text(const Graph& graph) {
  if (graph.raw_devices() > 1) refuse("its raw costs differ by device");
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const Edge edge = graph.edge(EdgeId(static_cast<std::int64_t>(e)));
    pairs.emplace_back(edge.producer, edge.reader);
  }
  std::vector<std::pair<NodeId, NodeId>> sorted = pairs;
  std::sort(sorted.begin(), sorted.end());
  if (const auto repeat = std::adjacent_find(sorted.begin(), sorted.end());
      repeat != sorted.end()) {
    refuse(node_text(graph, repeat->first) + " sends several outputs to " +
           node_text(graph, repeat->second));
  }
  const std::vector<std::int64_t> inputs = input_ids(graph);
  std::string text = std::to_string(graph.n_nodes() + inputs.size()) + "\n";
  append_line(text, inputs.size(), [&](std::size_t i) { return inputs[i]; });
  append_line(text, pairs.size(), [&](std::size_t e) { return pairs[e].first.value; });
  append_line(text, pairs.size(), [&](std::size_t e) { return pairs[e].second.value; });
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    const double compute = graph.raw_devices() == 1 ? graph.raw_compute()[v] : graph.flops(node);
    text += number_text(compute) + "," + number_text(communication(graph, node)) +
            kind_suffix(graph, node) + "\n";
  }
  return text;
}

}  // namespace doppler
