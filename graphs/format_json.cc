// Own JSON, schema in docs/graph-format.md.
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graphs/error.h"
#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "graphs/json_stream.h"
#include "graphs/number_text.h"
#include "graphs/parsed_graph.h"

namespace doppler {
namespace {

constexpr std::string_view kFormat = "doppler-graph";
constexpr std::int64_t kVersion = 1;

// The fields of each object; enumerators and tables have the same order.
enum DocumentField {
  kFormatName,
  kVersionNumber,
  kGraphName,
  kNodes,
  kEdges,
  kInputs,
  kRawCompute
};
constexpr std::array<JsonField, 7> kDocumentFields = {{{"format", true},
                                                       {"version", true},
                                                       {"name", false},
                                                       {"nodes", true},
                                                       {"edges", true},
                                                       {"inputs", false},
                                                       {"raw_compute", false}}};
enum NodeField { kName, kKind, kMetaOp, kFlops, kBytesRead, kBytesWritten, kOutputs, kAttributes };
constexpr std::array<JsonField, 8> kNodeFields = {{{"name", true},
                                                   {"kind", false},
                                                   {"meta_op", false},
                                                   {"flops", false},
                                                   {"bytes_read", false},
                                                   {"bytes_written", false},
                                                   {"outputs", false},
                                                   {"attributes", false}}};
enum TensorField { kBytes, kShape, kDType, kInputName, kReaders };
constexpr std::array<JsonField, 3> kOutputFields = {
    {{"bytes", true}, {"shape", false}, {"dtype", false}}};
constexpr std::array<JsonField, 5> kInputFields = {
    {{"bytes", true}, {"shape", false}, {"dtype", false}, {"name", true}, {"readers", false}}};

class GraphReader final : public JsonStreamReader {
 public:
  GraphReader(std::string_view content, const std::string& source)
      : JsonStreamReader(content, source), source_(source) {}

  Graph read() {
    parse();
    return build_parsed(builder_, source_);
  }

 private:
  enum Place {
    kDocument,
    kNodeList,
    kNode,
    kOutputList,
    kOutput,
    kOutputShape,
    kEdgeList,
    kEdge,
    kInputList,
    kInput,
    kInputShape,
    kReaderList,
    kRawList,
    kRawRow
  };

  Container enter(bool is_object) override {
    if (depth() == 0) {
      if (!is_object) fail("a graph file is an object {...}, found an array");
      return {kDocument, JsonObject{"a graph", kDocumentFields}};
    }
    switch (place()) {
      case kDocument:
        if (!is_object) return {list_of_document(), std::nullopt};
        break;
      case kNodeList:
        if (!is_object) break;
        node_ = Node{};
        return {kNode, JsonObject{"a node", kNodeFields}};
      case kNode:
        if (field() == kOutputs && !is_object) return {kOutputList, std::nullopt};
        break;
      case kOutputList:
        if (!is_object) break;
        tensor_ = Tensor{};
        return {kOutput, JsonObject{"an output", kOutputFields}};
      case kOutput:
        if (field() == kShape && !is_object) return {kOutputShape, std::nullopt};
        break;
      case kEdgeList:
        if (!is_object) return {kEdge, std::nullopt};
        break;
      case kInputList:
        if (!is_object) break;
        input_ = GraphInput{};
        tensor_ = Tensor{};
        return {kInput, JsonObject{"an input", kInputFields}};
      case kInput:
        if (field() == kShape && !is_object) return {kInputShape, std::nullopt};
        if (field() == kReaders && !is_object) return {kReaderList, std::nullopt};
        break;
      case kRawList:
        if (is_object) break;
        if (count() > 0 && raw_row_ == 0) fail("raw_compute holds numbers only, or rows only");
        return {kRawRow, std::nullopt};
      default:
        break;
    }
    fail(expected() + (is_object ? ", found an object" : ", found an array"));
  }

  int list_of_document() const {
    switch (field()) {
      case kNodes:
        return kNodeList;
      case kEdges:
        return kEdgeList;
      case kInputs:
        return kInputList;
      case kRawCompute:
        return kRawList;
      default:
        fail(expected() + ", found an array");
    }
  }

  void leave() override {
    switch (place()) {
      case kDocument:
        if (has_raw_) builder_.set_raw_compute(std::move(raw_), raw_row_ == 0 ? 1 : raw_row_);
        break;
      case kNodeList:
        has_all_nodes_ = true;
        break;
      case kNode:
        builder_.add_node(node_);
        break;
      case kOutput:
        node_.outputs.push_back(tensor_);
        break;
      case kEdge:
        if (count() < 2) fail(expected() + ", found " + std::to_string(count()) + " numbers");
        builder_.add_edge(NodeId{edge_[0]}, NodeId{edge_[1]},
                          count() == 3 ? static_cast<std::int32_t>(edge_[2]) : 0);
        break;
      case kInput:
        input_.tensor = tensor_;
        builder_.add_input(input_);
        break;
      case kRawList:
        has_raw_ = true;
        break;
      case kRawRow:
        if (raw_row_ == 0) raw_row_ = count();
        if (count() == 0 || count() != raw_row_) {
          fail("each row of raw_compute has one number for each device; this one has " +
               std::to_string(count()) + ", the first has " + std::to_string(raw_row_));
        }
        break;
      default:
        break;
    }
  }

  void scalar(const JsonScalar& value) override {
    if (depth() == 0) fail("a graph file is an object {...}");
    switch (place()) {
      case kDocument:
        return document_value(value);
      case kNode:
        return node_value(value);
      case kOutput:
      case kInput:
        return tensor_value(value);
      case kOutputShape:
      case kInputShape:
        tensor_.shape.push_back(as_integer(value, "a size of a shape", 0, kLargestSize));
        return;
      case kEdge:
        if (count() == 3) fail(expected() + ", found more");
        edge_[count()] =
            count() == 2 ? as_integer(value, "the output", 0, kLargestId) : as_node(value);
        return;
      case kReaderList:
        input_.readers.push_back(NodeId{as_node(value)});
        return;
      case kRawList:
        if (raw_row_ != 0) fail("raw_compute holds numbers only, or rows only");
        raw_.push_back(as_amount(value, "a raw compute time"));
        return;
      case kRawRow:
        raw_.push_back(as_amount(value, "a raw compute time"));
        return;
      default:
        fail(expected());
    }
  }

  void document_value(const JsonScalar& value) {
    switch (field()) {
      case kFormatName:
        if (as_string(value, "'format'") != kFormat) {
          fail("'format' is \"" + std::string(kFormat) + "\" in a graph file");
        }
        return;
      case kVersionNumber:
        if (as_integer(value, "'version'", 1, kLargestId) != kVersion) {
          fail("this program reads version " + std::to_string(kVersion) + " of the format");
        }
        return;
      case kGraphName:
        builder_.set_name(as_string(value, "'name'"));
        return;
      default:
        fail(expected());
    }
  }

  void node_value(const JsonScalar& value) {
    switch (field()) {
      case kName:
        node_.name = as_string(value, "'name'");
        if (node_.name.empty()) fail("a node needs a name that is not empty");
        return;
      case kKind:
        node_.kind = as_string(value, "'kind'");
        return;
      case kMetaOp:
        node_.meta_op = static_cast<std::int32_t>(as_integer(value, "'meta_op'", -1, kLargestId));
        return;
      case kFlops:
        node_.flops = as_amount(value, "'flops'");
        return;
      case kBytesRead:
        node_.bytes_read = as_amount(value, "'bytes_read'");
        return;
      case kBytesWritten:
        node_.bytes_written = as_amount(value, "'bytes_written'");
        return;
      case kAttributes:
        node_.attributes = as_string(value, "'attributes'");
        return;
      default:
        fail(expected());
    }
  }

  void tensor_value(const JsonScalar& value) {
    switch (field()) {
      case kBytes:
        tensor_.bytes = as_amount(value, "'bytes'");
        return;
      case kDType:
        tensor_.dtype = as_dtype(as_string(value, "'dtype'"));
        return;
      case kInputName:
        input_.name = as_string(value, "'name'");
        if (input_.name.empty()) fail("an input needs a name that is not empty");
        return;
      default:
        fail(expected());
    }
  }

  DType as_dtype(const std::string& name) const {
    try {
      return parse_dtype(name);
    } catch (const UsageError& error) {
      fail(error.what());
    }
  }

  std::int64_t as_node(const JsonScalar& value) const {
    if (!has_all_nodes_) return as_integer(value, "a node", 0, kLargestId);
    if (builder_.n_nodes() == 0) fail("there are no nodes");
    return as_integer(value, "a node", 0, static_cast<std::int64_t>(builder_.n_nodes()) - 1);
  }

  // What the format has at the current place.
  [[nodiscard]] std::string expected() const {
    switch (place()) {
      case kNodeList:
        return "a node is an object {\"name\": ...}";
      case kOutputList:
        return "an output is an object {\"bytes\": ...}";
      case kEdgeList:
      case kEdge:
        return "an edge is [producer, reader] or [producer, reader, output]";
      case kInputList:
        return "an input is an object {\"name\": ..., \"bytes\": ...}";
      case kRawList:
      case kRawRow:
        return "raw_compute is a list of numbers, one a node, or of rows of numbers, one a device";
      case kOutputShape:
      case kInputShape:
        return "a shape is a list of whole numbers";
      case kReaderList:
        return "readers is a list of node numbers";
      case kDocument:
        return expected_field(kDocumentFields, field() >= kNodes ? "a list" : "a text or number");
      case kNode:
        return expected_field(kNodeFields, field() == kOutputs ? "a list" : "a text or number");
      default:
        return expected_field(
            kInputFields, field() == kShape || field() == kReaders ? "a list" : "a text or number");
    }
  }
  [[nodiscard]] std::string expected_field(std::span<const JsonField> fields,
                                           const char* what) const {
    return "'" + std::string(fields[static_cast<std::size_t>(field())].name) + "' is " + what;
  }

  static constexpr std::int64_t kLargestSize = std::numeric_limits<std::int64_t>::max();

  const std::string& source_;
  GraphBuilder builder_;
  bool has_all_nodes_ = false;
  Node node_;
  Tensor tensor_;
  GraphInput input_;
  std::array<std::int64_t, 3> edge_ = {};
  bool has_raw_ = false;
  std::vector<double> raw_;
  std::size_t raw_row_ = 0;  // numbers in a row; 0: no rows
};

// Appends the JSON of a graph, a node and an edge a line.
class GraphWriter {
 public:
  explicit GraphWriter(const Graph& graph) : graph_(graph) {}

  std::string write() {
    text_ += "{\"format\": \"" + std::string(kFormat) +
             "\", \"version\": " + std::to_string(kVersion) + ",\n\"name\": ";
    text_ += json_string(graph_.name(), "graph name");
    list("nodes", graph_.n_nodes(), [&](std::size_t v) { node(NodeId(to_id(v))); });
    list("edges", graph_.n_edges(), [&](std::size_t e) { edge(graph_.edge(EdgeId(to_id(e)))); });
    if (graph_.n_inputs() > 0) {
      list("inputs", graph_.n_inputs(), [&](std::size_t i) { input(graph_.inputs()[i]); });
    }
    if (graph_.raw_devices() > 0) {
      list("raw_compute", graph_.n_nodes(), [&](std::size_t v) { raw_compute(v); });
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  static std::int64_t to_id(std::size_t index) { return static_cast<std::int64_t>(index); }

  template <class Item>
  void list(std::string_view name, std::size_t n_items, Item item) {
    text_ += ",\n\"" + std::string(name) + "\": [";
    for (std::size_t i = 0; i < n_items; ++i) {
      text_ += i > 0 ? ",\n" : "\n";
      item(i);
    }
    text_ += n_items > 0 ? "\n]" : "]";
  }

  // What stands for the default is left out.
  void amount(std::string_view name, double value) {
    if (value != 0) text_ += ", \"" + std::string(name) + "\": " + number_text(value);
  }

  void node(NodeId node) {
    text_ += "{\"name\": " + json_string(graph_.name(node), "node name");
    if (!graph_.kind(node).empty()) {
      text_ += ", \"kind\": " + json_string(graph_.kind(node), "node kind");
    }
    if (graph_.meta_op(node) != -1) {
      text_ += ", \"meta_op\": " + std::to_string(graph_.meta_op(node));
    }
    amount("flops", graph_.flops(node));
    amount("bytes_read", graph_.bytes_read(node));
    amount("bytes_written", graph_.bytes_written(node));
    if (graph_.n_outputs(node) > 0) {
      text_ += ", \"outputs\": [";
      for (std::size_t i = 0; i < graph_.n_outputs(node); ++i) {
        const TensorId t(graph_.first_tensor(node).value + to_id(i));
        text_ += i > 0 ? ", {" : "{";
        tensor(graph_.tensor_bytes(t), graph_.tensor_shape(t), graph_.tensor_dtype(t));
        text_ += "}";
      }
      text_ += "]";
    }
    if (!graph_.attributes(node).empty()) {
      text_ += ", \"attributes\": " + json_string(graph_.attributes(node), "node attributes");
    }
    text_ += "}";
  }

  void tensor(double bytes, std::span<const std::int64_t> shape, DType dtype) {
    text_ += "\"bytes\": " + number_text(bytes);
    if (!shape.empty()) {
      text_ += ", \"shape\": [";
      for (std::size_t i = 0; i < shape.size(); ++i) {
        text_ += (i > 0 ? ", " : "") + std::to_string(shape[i]);
      }
      text_ += "]";
    }
    if (dtype != DType::float32) text_ += ", \"dtype\": \"" + std::string(to_string(dtype)) + "\"";
  }

  void edge(const Edge& edge) {
    text_ += "[" + std::to_string(edge.producer.value) + ", " + std::to_string(edge.reader.value);
    if (edge.output != 0) text_ += ", " + std::to_string(edge.output);
    text_ += "]";
  }

  void input(const GraphInput& input) {
    text_ += "{\"name\": " + json_string(input.name, "input name") + ", ";
    tensor(input.tensor.bytes, input.tensor.shape, input.tensor.dtype);
    if (!input.readers.empty()) {
      text_ += ", \"readers\": [";
      for (std::size_t i = 0; i < input.readers.size(); ++i) {
        text_ += (i > 0 ? ", " : "") + std::to_string(input.readers[i].value);
      }
      text_ += "]";
    }
    text_ += "}";
  }

  void raw_compute(std::size_t node) {
    const std::size_t n_devices = graph_.raw_devices();
    const auto row = graph_.raw_compute().subspan(node * n_devices, n_devices);
    if (n_devices > 1) text_ += "[";
    for (std::size_t d = 0; d < n_devices; ++d) text_ += (d > 0 ? ", " : "") + number_text(row[d]);
    if (n_devices > 1) text_ += "]";
  }

  const Graph& graph_;
  std::string text_;
};

}  // namespace

Graph parse_graph_json(std::string_view content, const std::string& source) {
  return GraphReader(content, source).read();
}

std::string to_json(const Graph& graph) { return GraphWriter(graph).write(); }

}  // namespace doppler
