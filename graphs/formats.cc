#include "graphs/formats.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/parse_error.h"
#include "graphs/registry.h"

namespace doppler {
namespace {

constexpr std::array<std::pair<std::string_view, GraphFormat>, 4> kFormats = {
    {{"json", GraphFormat::json},
     {"text", GraphFormat::text},
     {"msr", GraphFormat::msr},
     {"dot", GraphFormat::dot}}};

// Stops at the first field of the outermost object that only one of the JSON formats has.
class JsonFormatFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  [[nodiscard]] GraphFormat found() const { return found_; }

  bool null() override { return depth_ > 0; }
  bool boolean(bool) override { return depth_ > 0; }
  bool number_integer(number_integer_t) override { return depth_ > 0; }
  bool number_unsigned(number_unsigned_t) override { return depth_ > 0; }
  bool number_float(number_float_t, const string_t&) override { return depth_ > 0; }
  bool string(string_t&) override { return depth_ > 0; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (depth_ > 1) return true;
    if (name == "maxSizePerFPGA" || name == "maxFPGAs" || name == "maxCPUs") {
      found_ = GraphFormat::msr;
      return false;
    }
    return name != "format" && name != "version";
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;  // the reader of the format reports it
  }

 private:
  // No format here nests deeper.
  bool enter() { return ++depth_ < 8; }
  bool leave() { return --depth_ > 0; }

  int depth_ = 0;
  GraphFormat found_ = GraphFormat::json;
};

GraphFormat find_format(std::string_view content, const std::string& source) {
  const std::size_t begin = content.find_first_not_of(" \t\r\n", byte_order_mark(content));
  if (begin == std::string_view::npos) {
    throw_parse_error(content, source, 0, "the file is empty; a graph was expected");
  }
  const char first = content[begin];
  if (first == '{' || first == '[') {
    JsonFormatFinder finder;
    nlohmann::json::sax_parse(content.begin(), content.end(), &finder);
    return finder.found();
  }
  if (first >= '0' && first <= '9') return GraphFormat::text;
  const std::string_view word =
      content.substr(begin, content.find_first_of(" \t\r\n{", begin) - begin);
  if (word == "digraph" || word == "strict" || word == "graph") {
    throw_parse_error(content, source, begin,
                      "DOT is written, not read; use the JSON or text format");
  }
  throw_parse_error(content, source, begin,
                    "not a graph file: it begins with " + quoted(word) +
                        "; JSON begins with '{', the text format with the number of nodes");
}

}  // namespace

GraphFormat parse_graph_format(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [text, format] : kFormats) {
    if (text == name) return format;
    known.emplace_back(text);
  }
  throw_unknown_name("graph format", name, known);
}

std::string_view to_string(GraphFormat format) {
  return kFormats[static_cast<std::size_t>(format)].first;
}

Graph read_graph(const std::string& path) { return parse_graph(read_file(path), path); }

Graph parse_graph(std::string_view content, const std::string& source) {
  switch (find_format(content, source)) {
    case GraphFormat::text:
      return parse_graph_text(content, source);
    case GraphFormat::msr:
      return parse_graph_msr(content, source);
    default:
      return parse_graph_json(content, source);
  }
}

}  // namespace doppler
