// MSR dnn-partitioning JSON (Tarnawski et al., Efficient Algorithms for Device Placement of DNN
// Graph Operators, NeurIPS 2020; github.com/msr-fiddle/dnn-partitioning, "Input format" of its
// README). What is taken and what is refused is in docs/graph-format.md.
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "graphs/json_stream.h"
#include "graphs/number_text.h"
#include "graphs/parsed_graph.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxDevices = 1024;
constexpr double kCostTolerance = 1e-6;  // that of the format's own programs

// The fields of each object; enumerators and tables have the same order.
enum DocumentField { kMaxSize, kMaxFpgas, kMaxCpus, kNodes, kEdges };
constexpr std::array<JsonField, 5> kDocumentFields = {{{"maxSizePerFPGA", true},
                                                       {"maxFPGAs", true},
                                                       {"maxCPUs", true},
                                                       {"nodes", true},
                                                       {"edges", true}}};
enum NodeField {
  kId,
  kSupported,
  kCpuLatency,
  kFpgaLatency,
  kBackward,
  kSize,
  kColor,
  kLayer,
  kName
};
constexpr std::array<JsonField, 9> kNodeFields = {{{"id", true},
                                                   {"supportedOnFpga", true},
                                                   {"cpuLatency", true},
                                                   {"fpgaLatency", true},
                                                   {"isBackwardNode", true},
                                                   {"size", true},
                                                   {"colorClass", false},
                                                   {"layerId", false},
                                                   {"name", false}}};
enum EdgeField { kSource, kDestination, kCost, kEdgeSize };
constexpr std::array<JsonField, 4> kEdgeFields = {
    {{"sourceId", true}, {"destId", true}, {"cost", true}, {"size", false}}};

class MsrReader final : public JsonStreamReader {
 public:
  MsrReader(std::string_view content, const std::string& source)
      : JsonStreamReader(content, source), source_(source) {}

  Graph read() {
    parse();
    return build_parsed(builder_, source_);
  }

 private:
  enum Place { kDocument, kNodeList, kNode, kEdgeList, kEdge };

  struct MsrNode {
    std::int64_t id = 0;
    double cpu_latency = 0;
    double fpga_latency = 0;
    bool is_backward = false;
    std::string size;
    std::string name;
    std::string groups;  // colour class and layer, as attributes
  };
  struct MsrEdge {
    std::int64_t source = 0;
    std::int64_t destination = 0;
    double cost = 0;
  };

  Container enter(bool is_object) override {
    if (depth() == 0) {
      if (!is_object) fail("a graph file is an object {...}, found an array");
      return {kDocument, JsonObject{"the input file", kDocumentFields}};
    }
    if (place() == kDocument && !is_object && field() == kNodes) return {kNodeList, std::nullopt};
    if (place() == kDocument && !is_object && field() == kEdges) return {kEdgeList, std::nullopt};
    if (place() == kNodeList && is_object) {
      node_ = MsrNode{};
      return {kNode, JsonObject{"a node", kNodeFields}};
    }
    if (place() == kEdgeList && is_object) {
      edge_ = MsrEdge{};
      return {kEdge, JsonObject{"an edge", kEdgeFields}};
    }
    fail(std::string(is_object ? "an object" : "an array") + " is not expected here");
  }

  void leave() override {
    switch (place()) {
      case kDocument:
        return finish();
      case kNode:
        return add_node();
      case kEdge:
        edges_.push_back(edge_);
        return;
      default:
        return;
    }
  }

  void scalar(const JsonScalar& value) override {
    if (depth() == 0) fail("a graph file is an object {...}");
    switch (place()) {
      case kDocument:
        return document_value(value);
      case kNode:
        return node_value(value);
      case kEdge:
        return edge_value(value);
      default:
        fail("'nodes' and 'edges' are lists of objects {...}");
    }
  }

  void document_value(const JsonScalar& value) {
    switch (field()) {
      case kMaxSize:
        as_amount(value, "'maxSizePerFPGA'");
        return;
      case kMaxFpgas:
        n_fpgas_ = as_integer(value, "'maxFPGAs'", 0, kMaxDevices);
        return;
      case kMaxCpus:
        n_cpus_ = as_integer(value, "'maxCPUs'", 0, kMaxDevices);
        return;
      default:
        fail("'nodes' and 'edges' are lists of objects {...}");
    }
  }

  void node_value(const JsonScalar& value) {
    switch (field()) {
      case kId:
        node_.id = as_integer(value, "'id'", kLeastId, kMostId);
        return;
      case kSupported:
        if (!as_flag(value, "'supportedOnFpga'")) {
          fail("a node that only a CPU can run is not supported: every device must run every node");
        }
        return;
      case kCpuLatency:
        node_.cpu_latency = as_amount(value, "'cpuLatency'");
        return;
      case kFpgaLatency:
        node_.fpga_latency = as_amount(value, "'fpgaLatency'");
        return;
      case kBackward:
        node_.is_backward = as_flag(value, "'isBackwardNode'");
        return;
      case kSize:
        node_.size = number_text(as_amount(value, "'size'"));
        return;
      case kColor:
        node_.groups += ",\"colorClass\":" +
                        std::to_string(as_integer(value, "'colorClass'", kLeastId, kMostId));
        return;
      case kLayer:
        node_.groups +=
            ",\"layerId\":" + std::to_string(as_integer(value, "'layerId'", kLeastId, kMostId));
        return;
      default:
        node_.name = as_string(value, "'name'");
        if (node_.name.empty()) fail("a node's name is not empty; leave the field out");
        return;
    }
  }

  void edge_value(const JsonScalar& value) {
    switch (field()) {
      case kSource:
        edge_.source = as_integer(value, "'sourceId'", kLeastId, kMostId);
        return;
      case kDestination:
        edge_.destination = as_integer(value, "'destId'", kLeastId, kMostId);
        return;
      case kCost:
        edge_.cost = as_amount(value, "'cost'");
        return;
      default:
        as_amount(value, "'size'");
        return;
    }
  }

  // true, false, 1 or 0.
  bool as_flag(const JsonScalar& value, std::string_view what) const {
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
    return as_integer(value, what, 0, 1) == 1;
  }

  void add_node() {
    Node node;
    node.name = node_.name.empty() ? std::to_string(node_.id) : node_.name;
    node.kind = "node";
    node.attributes = std::string("{\"isBackwardNode\":") + (node_.is_backward ? "true" : "false") +
                      ",\"size\":" + node_.size + node_.groups + "}";
    builder_.add_node(node);
    if (!index_.emplace(node_.id, index_.size()).second) {
      fail("the id " + std::to_string(node_.id) + " is that of an earlier node");
    }
    latencies_.push_back({node_.fpga_latency, node_.cpu_latency});
  }

  std::size_t node_of(std::int64_t id) const {
    const auto found = index_.find(id);
    if (found == index_.end())
      fail("an edge names the id " + std::to_string(id) + ", which no node has");
    return found->second;
  }

  // Edges may stand before nodes: their ends and costs are known here.
  void finish() {
    const std::int64_t n_devices = n_fpgas_ + n_cpus_;
    if (n_devices < 1 || n_devices > kMaxDevices) {
      fail("maxFPGAs + maxCPUs is " + std::to_string(n_devices) + "; it must be from 1 to " +
           std::to_string(kMaxDevices));
    }
    std::vector<std::optional<double>> cost(index_.size());  // of a node's output
    for (const MsrEdge& edge : edges_) {
      const std::size_t source = node_of(edge.source);
      if (!cost[source]) cost[source] = edge.cost;
      if (std::abs(*cost[source] - edge.cost) > kCostTolerance) {
        fail("the edges out of the node with id " + std::to_string(edge.source) +
             " have different costs; a node has one output here");
      }
      builder_.add_edge(to_node(source), to_node(node_of(edge.destination)));
    }
    for (std::size_t v = 0; v < cost.size(); ++v) {
      builder_.add_output(to_node(v), Tensor{cost[v].value_or(0), {}, DType::float32});
    }
    std::vector<double> raw;
    raw.reserve(latencies_.size() * static_cast<std::size_t>(n_devices));
    for (const auto& [fpga, cpu] : latencies_) {
      raw.insert(raw.end(), static_cast<std::size_t>(n_fpgas_), fpga);
      raw.insert(raw.end(), static_cast<std::size_t>(n_cpus_), cpu);
    }
    builder_.set_raw_compute(std::move(raw), static_cast<std::size_t>(n_devices));
  }

  static NodeId to_node(std::size_t index) { return NodeId(static_cast<std::int64_t>(index)); }

  static constexpr std::int64_t kLeastId = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMostId = std::numeric_limits<std::int64_t>::max();

  const std::string& source_;
  GraphBuilder builder_;
  std::int64_t n_fpgas_ = 0;
  std::int64_t n_cpus_ = 0;
  MsrNode node_;
  MsrEdge edge_;
  std::vector<std::pair<double, double>> latencies_;  // on an accelerator, on a CPU
  std::vector<MsrEdge> edges_;
  std::unordered_map<std::int64_t, std::size_t> index_;  // by id
};

}  // namespace

Graph parse_graph_msr(std::string_view content, const std::string& source) {
  return MsrReader(content, source).read();
}

}  // namespace doppler
