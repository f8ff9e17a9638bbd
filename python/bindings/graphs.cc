// Graph.
#include "graphs/graph.h"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/formats.h"
#include "graphs/graph_builder.h"
#include "python/bindings/convert.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

using Numbers = py::array_t<double, py::array::c_style>;

NodeId node_at(std::size_t index) { return NodeId(static_cast<std::int64_t>(index)); }
EdgeId edge_at(std::size_t index) { return EdgeId(static_cast<std::int64_t>(index)); }

template <class T, class Value>
py::array_t<T> by_node(const Graph& graph, const Value& value) {
  return array_of<T>(graph.n_nodes(), [&](std::size_t v) { return value(node_at(v)); });
}

template <class Value>
py::list texts_by_node(const Graph& graph, const Value& value) {
  py::list result(graph.n_nodes());
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) result[v] = to_python(value(node_at(v)));
  return result;
}

// A node number of a cost table; those beyond every graph are told here, others by the builder.
NodeId node_of(double number, std::size_t row, int column) {
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  if (!(number >= 0 && number <= kLargest && std::floor(number) == number)) {
    throw InvalidError("edges[" + std::to_string(row) + ", " + std::to_string(column) + "] is " +
                       py::str(py::float_(number)).cast<std::string>() +
                       "; expected the number of a node, counted from 0");
  }
  return NodeId(static_cast<std::int64_t>(number));
}

// The rows of a table of edges, [n, n_columns]; an empty array of any shape has none.
std::size_t n_rows(const py::array& edges, py::ssize_t n_columns, const std::string& advice) {
  if (edges.size() == 0) return 0;
  if (edges.ndim() != 2 || edges.shape(1) != n_columns) {
    throw UsageError("edges: expected shape (n_edges, " + std::to_string(n_columns) + "), got " +
                     description_of(edges) + "; " + advice);
  }
  return static_cast<std::size_t>(edges.shape(0));
}

void add_edges(GraphBuilder& builder, py::handle edges) {
  const auto table = integers_of(edges, "edges");
  const std::size_t n =
      n_rows(table, 2, "one row (producer, reader) an edge; with output=None a third column");
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t* row = table.data() + 2 * i;
    builder.add_edge(node_of(static_cast<double>(row[0]), i, 0),
                     node_of(static_cast<double>(row[1]), i, 1));
  }
}

void add_edges_with_values(GraphBuilder& builder, py::handle edges, std::size_t n_nodes) {
  const Numbers table = numbers_of(edges, "edges");
  const std::size_t n =
      n_rows(table, 3, "without `output` one row (producer, reader, bytes) an edge");
  for (std::size_t i = 0; i < n; ++i) {
    const double* row = table.data() + 3 * i;
    const NodeId producer = node_of(row[0], i, 0);
    const NodeId reader = node_of(row[1], i, 1);
    if (producer.index() >= n_nodes) {
      throw InvalidError("edges[" + std::to_string(i) + ", 0] is " +
                         std::to_string(producer.value) + "; the graph has " +
                         std::to_string(n_nodes) + " nodes, counted from 0");
    }
    builder.add_edge(producer, reader, builder.add_output(producer, Tensor{.bytes = row[2]}));
  }
}

std::vector<std::string> texts_of(py::handle value, std::size_t n_nodes, const std::string& what) {
  if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value)) {
    throw UsageError(what + ": expected one str a node, got " + description_of(value));
  }
  const auto sequence = py::reinterpret_borrow<py::sequence>(value);
  if (sequence.size() != n_nodes) {
    throw UsageError(what + ": expected " + std::to_string(n_nodes) + ", one a node, got " +
                     std::to_string(sequence.size()));
  }
  std::vector<std::string> result;
  for (const auto& text : sequence) {
    result.push_back(text_of(text, what + "[" + std::to_string(result.size()) + "]"));
  }
  return result;
}

Graph from_costs(const py::object& compute, const py::object& output, const py::object& edges,
                 const py::object& names, const py::object& kinds, const py::object& name) {
  const Numbers seconds = numbers_of(compute, "compute");
  if (seconds.ndim() != 1 && seconds.ndim() != 2) {
    throw UsageError("compute: expected shape (n_nodes,) or (n_nodes, n_devices), got " +
                     description_of(seconds));
  }
  const auto n_nodes = static_cast<std::size_t>(seconds.shape(0));
  std::optional<Numbers> bytes;
  if (!output.is_none()) {
    bytes = numbers_of(output, "output");
    if (bytes->ndim() != 1 || static_cast<std::size_t>(bytes->size()) != n_nodes) {
      throw UsageError("output: expected shape (" + std::to_string(n_nodes) +
                       ",), one value a node as in compute, got " + description_of(*bytes));
    }
  }
  std::vector<std::string> node_names;
  std::vector<std::string> node_kinds;
  if (!names.is_none()) node_names = texts_of(names, n_nodes, "names");
  if (!kinds.is_none()) node_kinds = texts_of(kinds, n_nodes, "kinds");

  GraphBuilder builder(text_of(name, "name"));
  for (std::size_t v = 0; v < n_nodes; ++v) {
    Node node{.name = node_names.empty() ? std::to_string(v) : node_names[v]};
    if (!node_kinds.empty()) node.kind = node_kinds[v];
    // What is wrong with a cost is told once, as a cost.
    const double cost = seconds.ndim() == 1 ? seconds.data()[v] : 0;
    if (std::isfinite(cost) && cost >= 0) node.flops = cost;
    if (bytes) node.outputs = {Tensor{.bytes = bytes->data()[v]}};
    builder.add_node(node);
  }
  if (bytes) {
    add_edges(builder, edges);
  } else {
    add_edges_with_values(builder, edges, n_nodes);
  }
  builder.set_raw_compute(std::vector<double>(seconds.data(), seconds.data() + seconds.size()),
                          seconds.ndim() == 1 ? 1 : static_cast<std::size_t>(seconds.shape(1)));
  const py::gil_scoped_release unlocked;
  return builder.build();
}

Graph graph_from_json(const py::object& text) {
  const std::string content = text_of(text, "text");
  const py::gil_scoped_release unlocked;
  return parse_graph_json(content, "text");
}

py::str graph_to_json(const Graph& graph) {
  std::string text;
  {
    const py::gil_scoped_release unlocked;
    text = to_json(graph);
  }
  return to_python(text);
}

void write_graph(const Graph& graph, const py::object& path, const py::object& format) {
  const std::string file = path_of(path);
  const GraphFormat chosen = parse_graph_format(text_of(format, "format"));
  const py::gil_scoped_release unlocked;
  switch (chosen) {
    case GraphFormat::json:
      return write_file(file, to_json(graph));
    case GraphFormat::text:
      return write_file(file, to_text(graph));
    case GraphFormat::dot:
      return write_file(file, to_dot(graph));
    case GraphFormat::msr:
      throw UsageError("format: 'msr' is read, not written; use json, text or dot");
  }
}

py::object raw_compute_of(const py::object& self) {
  const auto& graph = self.cast<const Graph&>();
  if (graph.raw_devices() == 0) return py::none();
  const auto n = static_cast<py::ssize_t>(graph.n_nodes());
  const auto d = static_cast<py::ssize_t>(graph.raw_devices());
  constexpr py::ssize_t kSize = sizeof(double);
  const double* first = graph.raw_compute().data();
  if (d == 1) return view(first, {n}, {kSize}, self);
  return view(first, {n, d}, {d * kSize, kSize}, self);
}

py::array_t<std::int32_t> edges_of(const Graph& graph) {
  py::array_t<std::int32_t> result({static_cast<py::ssize_t>(graph.n_edges()), py::ssize_t{2}});
  std::int32_t* out = result.mutable_data();
  for (std::size_t i = 0; i < graph.n_edges(); ++i) {
    const Edge edge = graph.edge(edge_at(i));
    out[2 * i] = edge.producer.value;
    out[2 * i + 1] = edge.reader.value;
  }
  return result;
}

double output_bytes(const Graph& graph, NodeId node) {
  double sum = 0;
  const std::int64_t first = graph.first_tensor(node).value;
  for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
    sum += graph.tensor_bytes(TensorId(first + static_cast<std::int64_t>(i)));
  }
  return sum;
}

void def_making(py::class_<Graph>& bound) {
  bound.def(py::init<>(), "The empty graph.");
  bound.def_static("from_costs", &from_costs, py::arg("compute"), py::arg("output"),
                   py::arg("edges"), py::kw_only(), py::arg("names") = py::none(),
                   py::arg("kinds") = py::none(), py::arg("name") = "",
                   R"(A graph of raw costs: plain numbers, used as seconds and bytes.

Args:
    compute: seconds of each node, float [n_nodes]; or on each device, [n_nodes, n_devices].
    output: bytes of each node's one output tensor, float [n_nodes]; with edges [n_edges, 2].
        None: each edge carries a tensor of its own; with edges [n_edges, 3].
    edges: whole numbers (producer, reader), nodes counted from 0; without output
        (producer, reader, bytes).
    names: one str a node; "0", "1", ... without.
    kinds: one str a node; empty without.
    name: of the graph.

With compute [n_nodes] the FLOPs of a node are the same number, as in the paper's text format.

Raises:
    UsageError: an array of the wrong dtype or shape.
    InvalidError: cycles, edges that dangle or repeat, costs that are negative or not finite; lists
        up to ten faults.)");
  bound.def_static("from_json", &graph_from_json, py::arg("text"),
                   "The graph of a text in the package's own JSON (docs/graph-format.md).\n\n"
                   "Raises ParseError, with line and column.");
  bound.def_static(
      "read",
      [](const py::object& path) {
        const std::string file = path_of(path);
        const py::gil_scoped_release unlocked;
        return read_graph(file);
      },
      py::arg("path"),
      R"(Reads a file: own JSON, the DOPPLER paper's text format or MSR dnn-partitioning JSON.

The format is told from the content. Raises ParseError with line and column, and RunError (an
OSError) for a file that cannot be read.)");
  bound.def_static(
      "from_networkx",
      [](const py::args& args, const py::kwargs& kwargs) {
        return py::module_::import("doppler_gym._networkx").attr("from_networkx")(*args, **kwargs);
      },
      R"(from_networkx(graph, *, name=None) -> Graph

The graph of a networkx.DiGraph or MultiDiGraph; nodes are numbered in its order.

Attributes of a node, all optional: name (str; else the key), kind, meta_op, flops, bytes_read,
bytes_written, attributes; `outputs` (a list of dicts with bytes, shape, dtype) or `output` (bytes
of the one output); `compute` (raw seconds, or a list, one a device), on all nodes or none.
Attributes of an edge: `output` (which of the producer's, default 0); or `bytes` where the producer
has neither `outputs` nor `output`: a tensor of the edge's own.

Raises UsageError for attributes that do not fit, and what from_json raises.)");
}

void def_reading(py::class_<Graph>& bound) {
  bound.def("to_json", &graph_to_json,
            "The graph in the package's own JSON; from_json() of it is equal, bit for bit.");
  bound.def("write", &write_graph, py::arg("path"), py::kw_only(), py::arg("format") = "json",
            R"(Writes a file, whole or not at all. format: "json", "text" (the paper's) or "dot".

Raises UsageError for another format, InvalidError for a graph that the text format cannot hold, and
RunError (an OSError) for a file that cannot be written.)");
  bound.def(
      "to_networkx",
      [](const py::object& self) {
        return py::module_::import("doppler_gym._networkx").attr("to_networkx")(self);
      },
      R"(A networkx.MultiDiGraph with the attributes that from_networkx() reads.

Keys of nodes are their numbers. from_networkx() of it is equal to this graph. Needs networkx.)");
  bound.def_property_readonly(
      "name", [](const Graph& graph) { return to_python(graph.name()); }, "Name of the graph.");
  bound.def_property_readonly("n_nodes", [](const Graph& graph) { return graph.n_nodes(); });
  bound.def_property_readonly("n_edges", [](const Graph& graph) { return graph.n_edges(); });
  bound.def_property_readonly("n_tensors", &Graph::n_tensors, "Outputs of all nodes together.");
  bound.def_property_readonly("n_inputs", &Graph::n_inputs,
                              "Graph inputs (weights, activations): what exists before the run.");
  bound.def_property_readonly(
      "names",
      [](const Graph& graph) {
        return texts_by_node(graph, [&](NodeId v) { return graph.name(v); });
      },
      "Names of the nodes, a new list.");
  bound.def_property_readonly(
      "kinds",
      [](const Graph& graph) {
        return texts_by_node(graph, [&](NodeId v) { return graph.kind(v); });
      },
      "Kinds of the nodes (\"einsum\", \"add\"), a new list.");
  bound.def_property_readonly(
      "meta_ops",
      [](const Graph& graph) {
        return by_node<std::int32_t>(graph, [&](NodeId v) { return graph.meta_op(v); });
      },
      "The tensor operation whose shard a node is, -1 for none; int32 [n_nodes].");
  bound.def_property_readonly(
      "flops",
      [](const Graph& graph) {
        return by_node<double>(graph, [&](NodeId v) { return graph.flops(v); });
      },
      "Floating-point operations, float64 [n_nodes].");
  bound.def_property_readonly(
      "bytes_read",
      [](const Graph& graph) {
        return by_node<double>(graph, [&](NodeId v) { return graph.bytes_read(v); });
      },
      "Bytes that a node reads from memory, float64 [n_nodes].");
  bound.def_property_readonly(
      "bytes_written",
      [](const Graph& graph) {
        return by_node<double>(graph, [&](NodeId v) { return graph.bytes_written(v); });
      },
      "Bytes that a node writes to memory, float64 [n_nodes].");
  bound.def_property_readonly(
      "output_bytes",
      [](const Graph& graph) {
        return by_node<double>(graph, [&](NodeId v) { return output_bytes(graph, v); });
      },
      "Bytes of all outputs of a node together, float64 [n_nodes].");
  bound.def_property_readonly(
      "levels",
      [](const Graph& graph) {
        return by_node<std::int32_t>(graph, [&](NodeId v) { return graph.level(v); });
      },
      "Edges on the longest path that ends at a node, int32 [n_nodes].");
  bound.def_property_readonly("edges", &edges_of,
                              "(producer, reader) of each edge, int32 [n_edges, 2].");
  bound.def_property_readonly(
      "edge_outputs",
      [](const Graph& graph) {
        return array_of<std::int32_t>(graph.n_edges(),
                                      [&](std::size_t i) { return graph.edge(edge_at(i)).output; });
      },
      "Which output of its producer an edge carries, int32 [n_edges].");
  bound.def_property_readonly(
      "edge_bytes",
      [](const Graph& graph) {
        return array_of<double>(graph.n_edges(),
                                [&](std::size_t i) { return graph.edge_bytes(edge_at(i)); });
      },
      "Bytes of the tensor that an edge carries, float64 [n_edges].");
  bound.def_property_readonly(
      "topological_order",
      [](const py::object& self) {
        return view(self.cast<const Graph&>().topological_order(), self);
      },
      "Nodes so that producers stand before readers: by level, then number; int32 [n_nodes], a "
      "read-only view.");
  bound.def_property_readonly(
      "raw_compute", &raw_compute_of,
      "Raw seconds that came with the graph, float64 [n_nodes] or [n_nodes, n_devices], a "
      "read-only view; None without.");
}

}  // namespace

void bind_graphs(py::module_& module) {
  py::class_<Graph> bound(module, "Graph", R"(A dataflow graph; an immutable value.

Nodes are operations, edges carry tensors from a producer to a reader. Arrays are in the order in
which nodes and edges were added.)");
  def_making(bound);
  def_reading(bound);
  def_copy(bound);
  bound.def(py::self == py::self);
  bound.def("__hash__", [](const Graph& graph) {
    const py::gil_scoped_release unlocked;
    return graph.hash();
  });
  bound.def("__repr__", [](const Graph& graph) { return py::str("<{}>").format(printed(graph)); });
  bound.def(py::pickle([](const Graph& graph) { return py::make_tuple(graph_to_json(graph)); },
                       [](const py::tuple& state) {
                         if (state.size() != 1) {
                           throw UsageError("the state of a Graph is one JSON text");
                         }
                         return graph_from_json(state[0]);
                       }));
}

}  // namespace doppler::python
