#include "graphs/graph.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <ostream>
#include <utility>

#include "graphs/error.h"
#include "graphs/graph_storage.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

struct DTypeFact {
  DType dtype;
  std::string_view name;
  int bytes;
};

constexpr std::array<DTypeFact, 8> kDTypes = {{{DType::float32, "float32", 4},
                                               {DType::float16, "float16", 2},
                                               {DType::bfloat16, "bfloat16", 2},
                                               {DType::float64, "float64", 8},
                                               {DType::int8, "int8", 1},
                                               {DType::int32, "int32", 4},
                                               {DType::int64, "int64", 8},
                                               {DType::boolean, "boolean", 1}}};

const DTypeFact& fact(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

int size_of(DType dtype) { return fact(dtype).bytes; }

std::string_view to_string(DType dtype) { return fact(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (const DTypeFact& known : kDTypes) {
    if (known.name == name) return known.dtype;
  }
  std::string names;
  for (const DTypeFact& known : kDTypes) names += " " + std::string(known.name);
  throw UsageError("unknown dtype '" + std::string(name.substr(0, 40)) + "'; known:" + names);
}

Graph::Graph() {
  static const auto empty = std::make_shared<const Storage>();
  storage_ = empty;
}

Graph::Graph(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}

const std::string& Graph::name() const { return storage_->name; }
std::size_t Graph::n_nodes() const { return storage_->order.size(); }
std::size_t Graph::n_edges() const { return storage_->edges.size(); }
std::size_t Graph::n_tensors() const { return storage_->tensor_bytes.size(); }
std::size_t Graph::n_inputs() const { return storage_->inputs.size(); }

std::string_view Graph::name(NodeId node) const {
  const Storage& s = *storage_;
  const std::uint64_t begin = node.value == 0 ? 0 : s.name_end[node.index() - 1];
  return std::string_view(s.name_text).substr(begin, s.name_end[node.index()] - begin);
}

std::string_view Graph::kind(NodeId node) const {
  return storage_->kinds[storage_->kind[storage_->at(node)]];
}
std::int32_t Graph::meta_op(NodeId node) const { return storage_->meta_op[storage_->at(node)]; }
double Graph::flops(NodeId node) const { return storage_->flops[storage_->at(node)]; }
double Graph::bytes_read(NodeId node) const { return storage_->bytes_read[storage_->at(node)]; }
double Graph::bytes_written(NodeId node) const {
  return storage_->bytes_written[storage_->at(node)];
}
std::string_view Graph::attributes(NodeId node) const {
  return storage_->attributes[storage_->attribute[storage_->at(node)]];
}

DType Graph::dtype(NodeId node) const {
  return n_outputs(node) == 0 ? DType::float32 : tensor_dtype(first_tensor(node));
}

Node Graph::node(NodeId node) const {
  Node result{.name = std::string(name(node)),
              .kind = std::string(kind(node)),
              .meta_op = meta_op(node),
              .flops = flops(node),
              .bytes_read = bytes_read(node),
              .bytes_written = bytes_written(node),
              .outputs = {},
              .attributes = std::string(attributes(node))};
  for (std::size_t i = 0; i < n_outputs(node); ++i) {
    const TensorId tensor(first_tensor(node).value + static_cast<std::int64_t>(i));
    const auto shape = tensor_shape(tensor);
    result.outputs.push_back(
        {tensor_bytes(tensor), {shape.begin(), shape.end()}, tensor_dtype(tensor)});
  }
  return result;
}

std::size_t Graph::n_outputs(NodeId node) const {
  return storage_->first_tensor[node.index() + 1] - storage_->first_tensor[node.index()];
}
TensorId Graph::first_tensor(NodeId node) const {
  return TensorId(storage_->first_tensor[node.index()]);
}
double Graph::tensor_bytes(TensorId tensor) const { return storage_->tensor_bytes[tensor.index()]; }
DType Graph::tensor_dtype(TensorId tensor) const { return storage_->tensor_dtype[tensor.index()]; }
std::span<const std::int64_t> Graph::tensor_shape(TensorId tensor) const {
  return storage_->tensor_shape.at(tensor.index());
}
NodeId Graph::tensor_producer(TensorId tensor) const {
  return storage_->tensor_producer[tensor.index()];
}

Edge Graph::edge(EdgeId edge) const { return storage_->edges[edge.index()]; }
TensorId Graph::edge_tensor(EdgeId edge) const {
  const Edge& e = storage_->edges[edge.index()];
  return TensorId(static_cast<std::int64_t>(storage_->first_tensor[e.producer.index()]) + e.output);
}
double Graph::edge_bytes(EdgeId edge) const { return tensor_bytes(edge_tensor(edge)); }

std::span<const EdgeId> Graph::in_edges(NodeId node) const {
  return storage_->in_edges.at(storage_->at(node));
}
std::span<const EdgeId> Graph::out_edges(NodeId node) const {
  return storage_->out_edges.at(storage_->at(node));
}
std::span<const NodeId> Graph::predecessors(NodeId node) const {
  return storage_->predecessors.at(storage_->at(node));
}
std::span<const NodeId> Graph::successors(NodeId node) const {
  return storage_->successors.at(storage_->at(node));
}

std::span<const GraphInput> Graph::inputs() const { return storage_->inputs; }
std::span<const NodeId> Graph::topological_order() const { return storage_->order; }
std::int32_t Graph::position(NodeId node) const { return storage_->position[node.index()]; }
std::int32_t Graph::level(NodeId node) const { return storage_->level[storage_->at(node)]; }
std::span<const double> Graph::raw_compute() const { return storage_->raw_compute; }
std::size_t Graph::raw_devices() const { return storage_->raw_devices; }

std::uint64_t Graph::hash() const {
  std::uint64_t known = storage_->hash.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const auto number = [](auto x) { return static_cast<std::uint64_t>(x); };
  Hasher hasher;
  hasher.add(std::string_view(name())).add(number(n_nodes()));
  const auto add_tensor = [&](double bytes, std::span<const std::int64_t> shape, DType dtype) {
    hasher.add(bytes).add(number(shape.size())).add(number(dtype));
    for (std::int64_t size : shape) hasher.add(number(size));
  };
  for (std::size_t v = 0; v < n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    hasher.add(name(node)).add(kind(node)).add(number(meta_op(node))).add(flops(node));
    hasher.add(bytes_read(node)).add(bytes_written(node)).add(attributes(node));
    hasher.add(number(n_outputs(node)));
    for (std::size_t i = 0; i < n_outputs(node); ++i) {
      const TensorId tensor(first_tensor(node).value + static_cast<std::int64_t>(i));
      add_tensor(tensor_bytes(tensor), tensor_shape(tensor), tensor_dtype(tensor));
    }
  }
  hasher.add(number(n_edges()));
  for (const Edge& edge : storage_->edges) {
    hasher.add(number(edge.producer.value)).add(number(edge.reader.value));
    hasher.add(number(edge.output));
  }
  hasher.add(number(n_inputs()));
  for (const GraphInput& input : inputs()) {
    hasher.add(std::string_view(input.name));
    add_tensor(input.tensor.bytes, input.tensor.shape, input.tensor.dtype);
    hasher.add(number(input.readers.size()));
    for (NodeId reader : input.readers) hasher.add(number(reader.value));
  }
  hasher.add(number(raw_devices()));
  for (double seconds : raw_compute()) hasher.add(seconds);
  known = std::max<std::uint64_t>(hasher.digest(), 1);
  storage_->hash.store(known, std::memory_order_relaxed);
  return known;
}

bool operator==(const Graph& a, const Graph& b) {
  if (a.storage_ == b.storage_) return true;
  const Graph::Storage& x = *a.storage_;
  const Graph::Storage& y = *b.storage_;
  return x.name == y.name && x.edges == y.edges && x.kind == y.kind && x.kinds == y.kinds &&
         x.attribute == y.attribute && x.attributes == y.attributes && x.meta_op == y.meta_op &&
         x.flops == y.flops && x.bytes_read == y.bytes_read && x.bytes_written == y.bytes_written &&
         x.name_end == y.name_end && x.name_text == y.name_text &&
         x.first_tensor == y.first_tensor && x.tensor_bytes == y.tensor_bytes &&
         x.tensor_dtype == y.tensor_dtype && x.tensor_shape == y.tensor_shape &&
         x.inputs == y.inputs && x.raw_devices == y.raw_devices && x.raw_compute == y.raw_compute;
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) {
  const auto& flops = graph.storage_->flops;
  const auto& level = graph.storage_->level;
  return out << "Graph '" << graph.name() << "': " << graph.n_nodes() << " nodes, "
             << graph.n_edges() << " edges, " << graph.n_inputs() << " inputs, "
             << (level.empty() ? 0 : level.back() + 1) << " levels, "
             << std::accumulate(flops.begin(), flops.end(), 0.0) << " FLOPs";
}

}  // namespace doppler
