#include "graphs/graph_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "graphs/error.h"
#include "graphs/graph_storage.h"

namespace doppler {
namespace {

constexpr std::size_t kMaxFaults = 10;
constexpr std::size_t kMaxShown = 8;  // nodes of a cycle
constexpr std::size_t kMaxCount = std::numeric_limits<std::int32_t>::max();

bool is_amount(double x) { return std::isfinite(x) && x >= 0; }

// Distinct strings, numbered in order of first use.
class Interner {
 public:
  std::uint32_t number(const std::string& text) {
    auto [found, added] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return found->second;
  }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
};

// Whether the product of the sizes is an element count that int64 holds.
bool is_shape(std::span<const std::int64_t> shape) {
  double elements = 1;
  for (std::int64_t size : shape) {
    if (size < 0) return false;
    elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
  }
  return elements < 0x1p62;
}

template <class T>
void permute(std::vector<T>& values, std::span<const NodeId> order) {
  std::vector<T> result(values.size());
  for (std::size_t p = 0; p < order.size(); ++p) result[p] = std::move(values[order[p].index()]);
  values = std::move(result);
}

// Lists by position of the edges at one end, in the order in which the edges were added.
template <class End>
Lists<EdgeId> edge_lists(const std::vector<Edge>& edges, std::span<const std::int32_t> position,
                         End end) {
  Lists<EdgeId> lists;
  lists.first.assign(position.size() + 1, 0);
  const auto place = [&](const Edge& edge) {
    return static_cast<std::size_t>(position[end(edge).index()]);
  };
  for (const Edge& edge : edges) ++lists.first[place(edge) + 1];
  for (std::size_t p = 0; p < position.size(); ++p) lists.first[p + 1] += lists.first[p];
  lists.values.resize(edges.size());
  std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end() - 1);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    lists.values[next[place(edges[e])]++] = EdgeId(static_cast<std::int64_t>(e));
  }
  return lists;
}

// The distinct nodes at the other end of each list of edges, ascending.
template <class End>
Lists<NodeId> neighbour_lists(const Lists<EdgeId>& edges_of, const std::vector<Edge>& edges,
                              End end) {
  Lists<NodeId> lists;
  const std::size_t n = edges_of.first.size() - 1;
  lists.first.reserve(n + 1);
  lists.values.reserve(edges.size());
  std::vector<NodeId> found;
  for (std::size_t p = 0; p < n; ++p) {
    found.clear();
    for (EdgeId e : edges_of.at(p)) found.push_back(end(edges[e.index()]));
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    lists.values.insert(lists.values.end(), found.begin(), found.end());
    lists.first.push_back(static_cast<std::uint32_t>(lists.values.size()));
  }
  return lists;
}

NodeId producer_of(const Edge& edge) { return edge.producer; }
NodeId reader_of(const Edge& edge) { return edge.reader; }

// A list of faults that keeps the first ones and counts the rest.
class Faults {
 public:
  void add(const std::string& fault) {
    if (++count_ <= kMaxFaults) text_ += "\n  " + fault;
  }
  [[nodiscard]] bool any() const { return count_ > 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::string message(const std::string& graph_name) const {
    std::string result = graph_name.empty() ? "the graph" : "graph '" + graph_name + "'";
    result += " has " + std::to_string(count_) + (count_ == 1 ? " fault:" : " faults:") + text_;
    if (count_ > kMaxFaults) {
      result += "\n  and " + std::to_string(count_ - kMaxFaults) + " more";
    }
    return result;
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

}  // namespace

struct GraphBuilder::State {
  std::shared_ptr<Graph::Storage> storage = std::make_shared<Graph::Storage>();
  Interner kinds;
  Interner attributes;
  // Outputs in the order in which they were added; build() sorts them by node.
  std::vector<NodeId> output_node;
  std::vector<std::int32_t> n_outputs;  // by node

  void add_tensor(NodeId node, const Tensor& tensor) {
    storage->tensor_bytes.push_back(tensor.bytes);
    storage->tensor_dtype.push_back(tensor.dtype);
    auto& shapes = storage->tensor_shape;
    shapes.values.insert(shapes.values.end(), tensor.shape.begin(), tensor.shape.end());
    shapes.first.push_back(static_cast<std::uint32_t>(shapes.values.size()));
    output_node.push_back(node);
  }

  [[nodiscard]] std::size_t n_nodes() const { return storage->name_end.size(); }
  [[nodiscard]] bool is_node(NodeId node) const {
    return node.value >= 0 && node.index() < n_nodes();
  }
  [[nodiscard]] std::string node_text(NodeId node) const {
    const std::uint64_t begin = node.value == 0 ? 0 : storage->name_end[node.index() - 1];
    const std::uint64_t end = storage->name_end[node.index()];
    std::string name = storage->name_text.substr(begin, std::min<std::uint64_t>(end - begin, 40));
    if (end - begin > 40) name += "...";
    return "node " + std::to_string(node.value) + " '" + name + "'";
  }

  void check_nodes(Faults& faults) const;
  void check_tensors(Faults& faults) const;
  void check_edges(Faults& faults) const;
  void check_duplicates(Faults& faults) const;
  void check_inputs(Faults& faults) const;
  void check_raw_compute(Faults& faults) const;
  void check_totals(Faults& faults) const;
  void sort_tensors();
  // Levels and the topological order, or the fault that there is a cycle.
  void order_nodes(Faults& faults);
  [[nodiscard]] std::string describe_cycle(const std::vector<std::uint32_t>& missing) const;
  void arrange();
};

GraphBuilder::GraphBuilder(std::string graph_name) : state_(std::make_unique<State>()) {
  state_->storage->name = std::move(graph_name);
}
GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;
GraphBuilder& GraphBuilder::operator=(GraphBuilder&&) noexcept = default;

void GraphBuilder::set_name(std::string graph_name) {
  state_->storage->name = std::move(graph_name);
}

void GraphBuilder::reserve(std::size_t n_nodes, std::size_t n_edges) {
  Graph::Storage& s = *state_->storage;
  for (auto* values : {&s.flops, &s.bytes_read, &s.bytes_written, &s.tensor_bytes}) {
    values->reserve(n_nodes);
  }
  s.name_end.reserve(n_nodes);
  s.kind.reserve(n_nodes);
  s.attribute.reserve(n_nodes);
  s.meta_op.reserve(n_nodes);
  s.edges.reserve(n_edges);
}

NodeId GraphBuilder::add_node(const Node& node) {
  Graph::Storage& s = *state_->storage;
  const NodeId id(static_cast<std::int64_t>(state_->n_nodes()));
  s.name_text += node.name;
  s.name_end.push_back(s.name_text.size());
  s.kind.push_back(state_->kinds.number(node.kind));
  s.attribute.push_back(state_->attributes.number(node.attributes));
  s.meta_op.push_back(node.meta_op);
  s.flops.push_back(node.flops);
  s.bytes_read.push_back(node.bytes_read);
  s.bytes_written.push_back(node.bytes_written);
  state_->n_outputs.push_back(static_cast<std::int32_t>(node.outputs.size()));
  for (const Tensor& tensor : node.outputs) state_->add_tensor(id, tensor);
  return id;
}

EdgeId GraphBuilder::add_edge(NodeId producer, NodeId reader, std::int32_t output) {
  state_->storage->edges.push_back({producer, reader, output});
  return EdgeId(static_cast<std::int64_t>(state_->storage->edges.size()) - 1);
}

std::int32_t GraphBuilder::add_output(NodeId node, const Tensor& tensor) {
  if (!state_->is_node(node)) {
    throw UsageError("cannot add an output to node " + std::to_string(node.value) + ": there are " +
                     std::to_string(n_nodes()) + " nodes; add the node first");
  }
  state_->add_tensor(node, tensor);
  return state_->n_outputs[node.index()]++;
}

InputId GraphBuilder::add_input(GraphInput input) {
  state_->storage->inputs.push_back(std::move(input));
  return InputId(static_cast<std::int64_t>(state_->storage->inputs.size()) - 1);
}

void GraphBuilder::add_reader(InputId input, NodeId reader) {
  auto& inputs = state_->storage->inputs;
  if (input.value < 0 || input.index() >= inputs.size()) {
    throw UsageError("cannot add a reader to graph input " + std::to_string(input.value) +
                     ": there are " + std::to_string(inputs.size()) + "; add the input first");
  }
  inputs[input.index()].readers.push_back(reader);
}

void GraphBuilder::set_raw_compute(std::vector<double> seconds, std::size_t n_devices) {
  state_->storage->raw_compute = std::move(seconds);
  state_->storage->raw_devices = n_devices;
}

std::size_t GraphBuilder::n_nodes() const { return state_->n_nodes(); }

void GraphBuilder::State::check_nodes(Faults& faults) const {
  const Graph::Storage& s = *storage;
  if (n_nodes() > kMaxCount || s.edges.size() > kMaxCount || s.tensor_bytes.size() > kMaxCount) {
    faults.add("more than 2^31 - 1 nodes, edges or tensors; split the graph");
  }
  for (std::size_t v = 0; v < n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    if (s.name_end[v] == (v == 0 ? 0 : s.name_end[v - 1])) {
      faults.add("node " + std::to_string(v) + " has an empty name; name every node");
    }
    const auto check = [&](double amount, const char* what) {
      if (is_amount(amount)) return;
      std::ostringstream text;
      text << node_text(node) << " has " << what << " = " << amount
           << "; it must be finite and at least 0";
      faults.add(text.str());
    };
    check(s.flops[v], "flops");
    check(s.bytes_read[v], "bytes_read");
    check(s.bytes_written[v], "bytes_written");
    if (s.meta_op[v] < -1) {
      faults.add(node_text(node) + " has meta_op " + std::to_string(s.meta_op[v]) +
                 "; use -1 for none");
    }
  }
}

void GraphBuilder::State::check_tensors(Faults& faults) const {
  for (std::size_t t = 0; t < output_node.size(); ++t) {
    if (!is_amount(storage->tensor_bytes[t])) {
      std::ostringstream text;
      text << "an output of " << node_text(output_node[t]) << " has " << storage->tensor_bytes[t]
           << " bytes; they must be finite and at least 0";
      faults.add(text.str());
    }
    if (!is_shape(storage->tensor_shape.at(t))) {
      faults.add("an output of " + node_text(output_node[t]) +
                 " has a shape with a negative size, or with too many elements for 63 bits");
    }
  }
}

void GraphBuilder::State::check_edges(Faults& faults) const {
  for (std::size_t e = 0; e < storage->edges.size(); ++e) {
    const Edge& edge = storage->edges[e];
    const auto where = [&] {
      return "edge " + std::to_string(e) + " from node " + std::to_string(edge.producer.value) +
             " to node " + std::to_string(edge.reader.value);
    };
    if (!is_node(edge.producer) || !is_node(edge.reader)) {
      faults.add(where() + " dangles: there are " + std::to_string(n_nodes()) +
                 " nodes, numbered from 0; add the node or drop the edge");
    } else if (edge.producer == edge.reader) {
      faults.add(where() + " is a loop; a node cannot read its own output");
    } else if (edge.output < 0 || edge.output >= n_outputs[edge.producer.index()]) {
      faults.add(where() + " carries output " + std::to_string(edge.output) + ", but " +
                 node_text(edge.producer) + " has " +
                 std::to_string(n_outputs[edge.producer.index()]) + " outputs");
    }
  }
}

void GraphBuilder::State::check_duplicates(Faults& faults) const {
  const std::vector<Edge>& edges = storage->edges;
  std::vector<std::uint32_t> order(edges.size());
  for (std::size_t e = 0; e < edges.size(); ++e) order[e] = static_cast<std::uint32_t>(e);
  const auto key = [&](std::uint32_t e) {
    return std::tuple(edges[e].reader, edges[e].producer, edges[e].output, e);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (edges[order[i]] == edges[order[i - 1]]) {
      const Edge& edge = edges[order[i]];
      faults.add("edges " + std::to_string(order[i - 1]) + " and " + std::to_string(order[i]) +
                 " are the same: output " + std::to_string(edge.output) + " of " +
                 node_text(edge.producer) + " to " + node_text(edge.reader) + "; keep one");
    }
  }
}

void GraphBuilder::State::check_inputs(Faults& faults) const {
  for (std::size_t i = 0; i < storage->inputs.size(); ++i) {
    const GraphInput& input = storage->inputs[i];
    const std::string where =
        "graph input " + std::to_string(i) + " '" + input.name.substr(0, 40) + "'";
    if (input.name.empty()) {
      faults.add("graph input " + std::to_string(i) + " has an empty name; name every input");
    }
    if (!is_amount(input.tensor.bytes)) {
      faults.add(where + " has bytes that are negative or not finite");
    }
    if (!is_shape(input.tensor.shape)) {
      faults.add(where + " has a shape with a negative size, or too many elements for 63 bits");
    }
    std::vector<NodeId> readers = input.readers;
    std::sort(readers.begin(), readers.end());
    for (std::size_t r = 0; r < readers.size(); ++r) {
      if (!is_node(readers[r])) {
        faults.add(where + " is read by node " + std::to_string(readers[r].value) +
                   ", which does not exist; add the node or drop the reader");
      } else if (r > 0 && readers[r] == readers[r - 1]) {
        faults.add(where + " names " + node_text(readers[r]) + " twice as its reader; keep one");
      }
    }
  }
}

void GraphBuilder::State::check_raw_compute(Faults& faults) const {
  const std::vector<double>& raw = storage->raw_compute;
  if (raw.empty() && (storage->raw_devices == 0 || n_nodes() == 0)) return;
  // By division: the product of a wrong number of devices may overflow to a right one.
  const std::size_t n_devices = storage->raw_devices;
  if (n_devices == 0 || raw.size() / n_devices != n_nodes() || raw.size() % n_devices != 0) {
    faults.add("raw compute costs: " + std::to_string(raw.size()) + " numbers for " +
               std::to_string(n_nodes()) + " nodes and " + std::to_string(storage->raw_devices) +
               " devices; give one a node, or one a node and device");
    return;
  }
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (!is_amount(raw[i])) {
      std::ostringstream text;
      text << "raw compute cost of "
           << node_text(NodeId(static_cast<std::int64_t>(i / storage->raw_devices))) << " is "
           << raw[i] << "; it must be finite and at least 0";
      faults.add(text.str());
    }
  }
}

void GraphBuilder::State::check_totals(Faults& faults) const {
  const auto check = [&](const std::vector<double>& values, const char* what) {
    double sum = 0;
    for (double value : values) sum += value;
    if (!std::isfinite(sum)) {
      faults.add(std::string("the total of ") + what + " overflows; use a larger unit");
    }
  };
  check(storage->flops, "flops");
  check(storage->bytes_read, "bytes_read");
  check(storage->bytes_written, "bytes_written");
  check(storage->tensor_bytes, "output bytes");
  check(storage->raw_compute, "raw compute costs");
  double inputs = 0;
  for (const GraphInput& input : storage->inputs) inputs += input.tensor.bytes;
  if (!std::isfinite(inputs)) faults.add("the total of input bytes overflows; use a larger unit");
}

void GraphBuilder::State::sort_tensors() {
  Graph::Storage& s = *storage;
  s.first_tensor.assign(n_nodes() + 1, 0);
  for (NodeId node : output_node) ++s.first_tensor[node.index() + 1];
  for (std::size_t v = 0; v < n_nodes(); ++v) s.first_tensor[v + 1] += s.first_tensor[v];
  if (!std::is_sorted(output_node.begin(), output_node.end())) {
    std::vector<std::uint32_t> from(output_node.size());
    std::vector<std::uint32_t> next(s.first_tensor.begin(), s.first_tensor.end() - 1);
    for (std::size_t t = 0; t < output_node.size(); ++t) {
      from[next[output_node[t].index()]++] = static_cast<std::uint32_t>(t);
    }
    auto bytes = s.tensor_bytes;
    auto dtypes = s.tensor_dtype;
    Lists<std::int64_t> shapes;
    for (std::size_t t = 0; t < from.size(); ++t) {
      bytes[t] = s.tensor_bytes[from[t]];
      dtypes[t] = s.tensor_dtype[from[t]];
      const auto shape = s.tensor_shape.at(from[t]);
      shapes.values.insert(shapes.values.end(), shape.begin(), shape.end());
      shapes.first.push_back(static_cast<std::uint32_t>(shapes.values.size()));
    }
    s.tensor_bytes = std::move(bytes);
    s.tensor_dtype = std::move(dtypes);
    s.tensor_shape = std::move(shapes);
    std::sort(output_node.begin(), output_node.end());
  }
  s.tensor_producer = std::move(output_node);
}

void GraphBuilder::State::order_nodes(Faults& faults) {
  Graph::Storage& s = *storage;
  const std::size_t n = n_nodes();
  std::vector<std::int32_t> identity(n);
  for (std::size_t v = 0; v < n; ++v) identity[v] = static_cast<std::int32_t>(v);
  const Lists<EdgeId> out = edge_lists(s.edges, identity, producer_of);
  std::vector<std::uint32_t> missing(n, 0);
  for (const Edge& edge : s.edges) ++missing[edge.reader.index()];

  std::vector<std::int32_t> level(n, 0);
  std::vector<std::uint32_t> found;
  found.reserve(n);
  for (std::size_t v = 0; v < n; ++v) {
    if (missing[v] == 0) found.push_back(static_cast<std::uint32_t>(v));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (EdgeId e : out.at(found[i])) {
      const std::size_t reader = s.edges[e.index()].reader.index();
      level[reader] = std::max(level[reader], level[found[i]] + 1);
      if (--missing[reader] == 0) found.push_back(static_cast<std::uint32_t>(reader));
    }
  }
  if (found.size() < n) {
    faults.add(describe_cycle(missing));
    return;
  }
  // By level, then by id: counting sort over ascending ids.
  std::int32_t n_levels = 0;
  for (std::int32_t l : level) n_levels = std::max(n_levels, l + 1);
  std::vector<std::uint32_t> next(static_cast<std::size_t>(n_levels) + 1, 0);
  for (std::int32_t l : level) ++next[static_cast<std::size_t>(l) + 1];
  for (std::size_t l = 1; l < next.size(); ++l) next[l] += next[l - 1];
  s.order.resize(n);
  s.position.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const std::uint32_t p = next[static_cast<std::size_t>(level[v])]++;
    s.order[p] = NodeId(static_cast<std::int64_t>(v));
    s.position[v] = static_cast<std::int32_t>(p);
  }
  s.level = std::move(level);
}

std::string GraphBuilder::State::describe_cycle(const std::vector<std::uint32_t>& missing) const {
  // Every node that still misses an input has a predecessor that does: walking back must repeat.
  std::vector<std::int32_t> back(n_nodes(), -1);
  for (const Edge& edge : storage->edges) {
    std::int32_t& p = back[edge.reader.index()];
    if (missing[edge.producer.index()] > 0 && (p < 0 || edge.producer.value < p)) {
      p = edge.producer.value;
    }
  }
  std::vector<bool> seen(n_nodes(), false);
  std::size_t v = 0;
  while (missing[v] == 0) ++v;
  for (; !seen[v]; v = static_cast<std::size_t>(back[v])) seen[v] = true;
  std::vector<std::int32_t> cycle;
  std::size_t w = v;
  do {
    cycle.push_back(static_cast<std::int32_t>(w));
    w = static_cast<std::size_t>(back[w]);
  } while (w != v);
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  std::reverse(cycle.begin() + 1, cycle.end());
  std::string text = "a cycle of " + std::to_string(cycle.size()) + " nodes: ";
  for (std::size_t i = 0; i < cycle.size() && i < kMaxShown; ++i) {
    text += node_text(NodeId(cycle[i])) + " -> ";
  }
  if (cycle.size() > kMaxShown) text += "... -> ";
  return text + "node " + std::to_string(cycle[0]) + "; drop one of its edges";
}

void GraphBuilder::State::arrange() {
  Graph::Storage& s = *storage;
  s.kinds = kinds.take();
  s.attributes = attributes.take();
  permute(s.level, s.order);
  permute(s.kind, s.order);
  permute(s.attribute, s.order);
  permute(s.meta_op, s.order);
  permute(s.flops, s.order);
  permute(s.bytes_read, s.order);
  permute(s.bytes_written, s.order);
  s.in_edges = edge_lists(s.edges, s.position, reader_of);
  s.out_edges = edge_lists(s.edges, s.position, producer_of);
  s.predecessors = neighbour_lists(s.in_edges, s.edges, producer_of);
  s.successors = neighbour_lists(s.out_edges, s.edges, reader_of);
  for (GraphInput& input : s.inputs) std::sort(input.readers.begin(), input.readers.end());
  if (n_nodes() == 0) s.raw_devices = 0;
  for (double& x : s.raw_compute) x += 0.0;  // -0.0 becomes 0.0, as in the hash
}

Graph GraphBuilder::build() {
  State& state = *state_;
  Faults faults;
  state.check_nodes(faults);
  state.check_tensors(faults);
  const std::size_t n_before = faults.count();
  state.check_edges(faults);
  if (faults.count() == n_before) {  // cycles and repeats need edges whose ends exist
    state.check_duplicates(faults);
    state.order_nodes(faults);
  }
  state.check_inputs(faults);
  state.check_raw_compute(faults);
  if (!faults.any()) state.check_totals(faults);
  if (faults.any()) {
    const std::string message = faults.message(state.storage->name);
    state_ = std::make_unique<State>();
    throw InvalidError(message);
  }
  state.sort_tensors();
  state.arrange();
  Graph graph(std::move(state.storage));
  state_ = std::make_unique<State>();
  return graph;
}

}  // namespace doppler
