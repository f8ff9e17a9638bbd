#include "executor/runtime/operation.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "executor/runtime/index_expression.h"
#include "executor/runtime/operation_planner.h"
#include "executor/runtime/step_functions.h"
#include "graphs/error.h"
#include "graphs/node_attributes.h"

namespace doppler {
namespace {

using Shape = std::vector<std::int64_t>;
using Labels = std::vector<std::int32_t>;
using steps::Function;

constexpr double kMaxElements = 0x1p50;

const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> all = {
      {"add", Function::add},           {"subtract", Function::subtract},
      {"multiply", Function::multiply}, {"divide", Function::divide},
      {"affine", Function::affine},     {"relu", Function::relu},
      {"silu", Function::silu},         {"exp", Function::exp},
      {"square", Function::square},     {"rsqrt", Function::rsqrt},
      {"positive", Function::positive}};
  return all;
}

bool is_copy(std::string_view kind) {
  static const std::set<std::string_view> kinds = {"cast",    "transpose", "select",
                                                   "squeeze", "slice",     "concat"};
  return kinds.contains(kind);
}

std::string known_kinds() {
  return "einsum, sum, max, aggregate, add, subtract, multiply, divide, affine, relu, silu, exp, "
         "square, rsqrt, positive, cast, rotate, route, transpose, select, squeeze, slice, concat, "
         "fill";
}

std::int64_t elements_of(std::span<const std::int64_t> shape, const std::string& what) {
  double product = 1;
  for (std::int64_t size : shape) product *= static_cast<double>(size);
  if (product > kMaxElements) throw UsageError(what + " has more than 2^50 elements");
  return static_cast<std::int64_t>(product);
}

class OperationParser {
 public:
  OperationParser(const Graph& graph, NodeId node, std::span<const InputId> graph_inputs)
      : graph_(graph),
        node_(node),
        kind_(graph.kind(node)),
        attributes_(parse_node_attributes(graph.attributes(node), "its")),
        expression_(attributes_.index, attributes_.operands.size()) {
    operation_.graph_inputs.assign(graph_inputs.begin(), graph_inputs.end());
  }

  NodeOperation parse() {
    operation_.name = graph_.name(node_);
    operation_.kind = kind_;
    if (graph_.n_outputs(node_) != 1) {
      throw UsageError("it has " + std::to_string(graph_.n_outputs(node_)) +
                       " outputs; a node that computes has one");
    }
    add_inputs();
    const TensorId output = graph_.first_tensor(node_);
    const auto shape = graph_.tensor_shape(output);
    operation_.buffers.push_back(
        buffer(shape, graph_.tensor_dtype(output), graph_.tensor_bytes(output), "its output"));
    expression_.bind(expression_.output(), shape, "the output");
    for (std::size_t k = 0; k < attributes_.operands.size(); ++k) {
      const std::string what = "operand " + std::to_string(k);
      elements_of(attributes_.operands[k].shape, what);
      expression_.bind(expression_.operands()[k], attributes_.operands[k].shape, what);
      check_pieces(attributes_.operands[k], what);
    }
    for (std::int64_t size : expression_.sizes()) {
      if (size < 0) throw UsageError("the index expression has a label without size");
    }
    OperationPlanner planner(operation_, expression_.sizes());
    plan(planner);
    return std::move(operation_);
  }

 private:
  // A tensor that the node reads or writes.
  struct Source {
    Shape shape;
    std::int32_t buffer = 0;
  };

  static OperationBuffer buffer(std::span<const std::int64_t> shape, DType dtype, double bytes,
                                const std::string& what) {
    if (dtype != DType::float32 && dtype != DType::float16 && dtype != DType::bfloat16) {
      throw UsageError(what + " is of dtype " + std::string(to_string(dtype)) +
                       "; engines compute with float32, float16 and bfloat16");
    }
    const OperationBuffer result{elements_of(shape, what), dtype};
    if (static_cast<double>(result.bytes()) != bytes) {
      throw UsageError(what + " of shape " + shape_text(shape) +
                       " has not the bytes of its shape, " + std::to_string(result.bytes()));
    }
    return result;
  }

  // The tensors of all in-edges, then the graph inputs.
  void add_inputs() {
    for (EdgeId edge : graph_.in_edges(node_)) {
      const TensorId tensor = graph_.edge_tensor(edge);
      const NodeId producer = graph_.tensor_producer(tensor);
      const std::string what = "the tensor of node '" + std::string(graph_.name(producer)) + "'";
      if (graph_.attributes(producer).empty()) {
        throw UsageError(what + ", which it reads, is never computed: that node has no attributes");
      }
      const auto shape = graph_.tensor_shape(tensor);
      edges_.push_back({Shape(shape.begin(), shape.end()),
                        static_cast<std::int32_t>(operation_.buffers.size())});
      operation_.buffers.push_back(
          buffer(shape, graph_.tensor_dtype(tensor), graph_.tensor_bytes(tensor), what));
    }
    operation_.n_edges = static_cast<std::int32_t>(edges_.size());
    for (InputId id : operation_.graph_inputs) {
      const GraphInput& input = graph_.inputs()[id.index()];
      inputs_[id.value] = {input.tensor.shape,
                           static_cast<std::int32_t>(operation_.buffers.size())};
      operation_.buffers.push_back(buffer(input.tensor.shape, input.tensor.dtype,
                                          input.tensor.bytes, "graph input '" + input.name + "'"));
    }
  }

  [[nodiscard]] const Source& source_of(const OperandPiece& piece) const {
    if (piece.source == OperandPiece::Source::input) {
      const auto found = inputs_.find(piece.index);
      if (found != inputs_.end()) return found->second;
      throw UsageError("it takes a piece of graph input " + std::to_string(piece.index) +
                       ", of which it is not a reader");
    }
    if (static_cast<std::size_t>(piece.index) >= edges_.size()) {
      throw UsageError("it reads in-edge " + std::to_string(piece.index) + " of " +
                       std::to_string(edges_.size()));
    }
    return edges_[static_cast<std::size_t>(piece.index)];
  }

  // Pieces lie in their sources and cover the operand without overlap.
  void check_pieces(const NodeOperand& operand, const std::string& what) const {
    std::int64_t n_covered = 0;
    for (std::size_t i = 0; i < operand.pieces.size(); ++i) {
      const OperandPiece& piece = operand.pieces[i];
      const Source& source = source_of(piece);
      bool fits = source.shape.size() == piece.shape.size();
      for (std::size_t axis = 0; fits && axis < piece.shape.size(); ++axis) {
        fits = piece.start[axis] + piece.shape[axis] <= source.shape[axis];
      }
      if (!fits) {
        throw UsageError("piece " + std::to_string(i) + " of " + what +
                         " reaches beyond its source of shape " + shape_text(source.shape));
      }
      n_covered += elements_of(piece.shape, "a piece of " + what);
      for (std::size_t j = 0; j < i; ++j) {
        if (overlap(piece, operand.pieces[j])) {
          throw UsageError("pieces " + std::to_string(j) + " and " + std::to_string(i) + " of " +
                           what + " overlap");
        }
      }
    }
    if (n_covered != elements_of(operand.shape, what)) {
      throw UsageError("the pieces of " + what + " do not cover it");
    }
  }

  static bool overlap(const OperandPiece& a, const OperandPiece& b) {
    for (std::size_t axis = 0; axis < a.shape.size(); ++axis) {
      if (a.to[axis] >= b.to[axis] + b.shape[axis] || b.to[axis] >= a.to[axis] + a.shape[axis]) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] LabelledView view_of_piece(const OperandPiece& piece, const Labels& labels) const {
    const Source& source = source_of(piece);
    LabelledView view;
    view.buffer = source.buffer;
    view.dtype = operation_.buffers[static_cast<std::size_t>(source.buffer)].dtype;
    view.labels = labels;
    view.strides = dense_strides(source.shape);
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      view.offset += piece.start[axis] * view.strides[axis];
    }
    return view;
  }

  // Operand k as one view: of its source where it is one piece, else of scratch that the pieces are
  // copied to.
  LabelledView view(OperationPlanner& planner, std::size_t k) {
    const NodeOperand& operand = attributes_.operands[k];
    const Labels& labels = expression_.operands()[k];
    if (operand.pieces.size() == 1) return view_of_piece(operand.pieces.front(), labels);
    const DType dtype = operand.pieces.empty()
                            ? DType::float32
                            : view_of_piece(operand.pieces.front(), labels).dtype;
    LabelledView whole = planner.scratch(labels, dtype);
    for (const OperandPiece& piece : operand.pieces) copy_piece(piece, labels, whole);
    return whole;
  }

  // Copies a piece of an operand with these labels into `out`, whose labels include them.
  void copy_piece(const OperandPiece& piece, const Labels& labels, LabelledView out) {
    // The axes of the piece get labels of their own, because their sizes are their own.
    Shape sizes = piece.shape;
    Labels own(labels.size());
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
      own[axis] = static_cast<std::int32_t>(axis);
    }
    LabelledView target = out;
    target.labels = own;
    target.strides.clear();
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
      target.strides.push_back(out.stride(labels[axis]));
      target.offset += piece.to[axis] * target.strides.back();
    }
    // Labels of the output that the operand lacks repeat it.
    for (std::size_t axis = 0; axis < out.labels.size(); ++axis) {
      if (std::find(labels.begin(), labels.end(), out.labels[axis]) != labels.end()) continue;
      target.labels.push_back(static_cast<std::int32_t>(sizes.size()));
      target.strides.push_back(out.strides[axis]);
      sizes.push_back(expression_.sizes()[static_cast<std::size_t>(out.labels[axis])]);
    }
    OperationPlanner(operation_, sizes).pointwise({}, view_of_piece(piece, own), nullptr, target);
  }

  [[nodiscard]] LabelledView output_view() const {
    LabelledView view;
    view.buffer = static_cast<std::int32_t>(operation_.output());
    view.dtype = operation_.buffers[operation_.output()].dtype;
    view.labels = expression_.output();
    const auto shape = graph_.tensor_shape(graph_.first_tensor(node_));
    view.strides = dense_strides(Shape(shape.begin(), shape.end()));
    return view;
  }

  void need_operands(std::size_t least, std::size_t most) const {
    const std::size_t n = attributes_.operands.size();
    if (n >= least && n <= most) return;
    throw UsageError("it has " + std::to_string(n) + " operands, the kind takes " +
                     std::to_string(least) +
                     (most == least      ? ""
                      : most == SIZE_MAX ? " or more"
                                         : " or " + std::to_string(most)));
  }

  // Every label of more than one element of the operands is in the output.
  void need_no_reduction() const {
    for (const Labels& labels : expression_.operands()) {
      for (std::int32_t label : labels) {
        if (expression_.sizes()[static_cast<std::size_t>(label)] != 1 &&
            std::find(expression_.output().begin(), expression_.output().end(), label) ==
                expression_.output().end()) {
          throw UsageError("the kind reduces nothing, but the output lacks a label of an operand");
        }
      }
    }
  }

  [[nodiscard]] bool maximum_of_rule() const {
    if (attributes_.rule == "sum" || attributes_.rule == "max") return attributes_.rule == "max";
    throw UsageError("rule '" + attributes_.rule + "' is not known; 'sum' or 'max'");
  }

  void plan(OperationPlanner& planner) {
    const LabelledView out = output_view();
    const auto function = functions().find(kind_);
    if (kind_ == "einsum") {
      need_operands(1, 2);
      const LabelledView x = view(planner, 0);
      if (attributes_.operands.size() == 1) {
        planner.reduce(false, x, nullptr, out);
      } else {
        planner.contract(x, view(planner, 1), out);
      }
    } else if (kind_ == "sum" || kind_ == "max") {
      need_operands(1, 1);
      planner.reduce(kind_ == "max", view(planner, 0), nullptr, out);
    } else if (kind_ == "aggregate") {
      plan_aggregate(planner, out);
    } else if (is_copy(kind_)) {
      need_operands(1, 1);
      need_no_reduction();
      for (const OperandPiece& piece : attributes_.operands[0].pieces) {
        copy_piece(piece, expression_.operands()[0], out);
      }
    } else if (function != functions().end()) {
      plan_function(planner, function->second, out);
    } else if (kind_ == "rotate") {
      plan_rotate(planner, out);
    } else if (kind_ == "route") {
      plan_route(planner, out);
    } else if (kind_ == "fill") {
      plan_fill(out);
    } else {
      throw UsageError("engines run the kinds " + known_kinds());
    }
  }

  void plan_aggregate(OperationPlanner& planner, const LabelledView& out) {
    need_operands(1, SIZE_MAX);
    need_no_reduction();
    const bool maximum = maximum_of_rule();
    std::vector<LabelledView> operands;
    for (std::size_t k = 0; k < attributes_.operands.size(); ++k) {
      operands.push_back(view(planner, k));
    }
    planner.join(maximum, operands, out);
  }

  void plan_function(OperationPlanner& planner, Function function, const LabelledView& out) {
    const std::size_t n_operands = steps::takes_two(function) ? 2 : 1;
    need_operands(n_operands, n_operands);
    need_no_reduction();
    steps::Pointwise step;
    step.function = function;
    step.factor = static_cast<float>(attributes_.factor);
    step.offset = static_cast<float>(attributes_.offset);
    const LabelledView x = view(planner, 0);
    if (n_operands == 1) {
      planner.pointwise(step, x, nullptr, out);
    } else {
      const LabelledView y = view(planner, 1);
      planner.pointwise(step, x, &y, out);
    }
  }

  void plan_rotate(OperationPlanner& planner, const LabelledView& out) {
    need_operands(2, 2);
    need_no_reduction();
    const auto& labels = expression_.operands();
    if (out.labels.empty() || labels[0].empty() || labels[1].empty() ||
        labels[0].front() != out.labels.front() || labels[1].front() != out.labels.front() ||
        expression_.sizes()[static_cast<std::size_t>(out.labels.front())] != 2) {
      throw UsageError("the first axis of both operands and of the output must be one of size 2");
    }
    const LabelledView x = view(planner, 0);
    planner.rotate(x, view(planner, 1), out);
  }

  void plan_route(OperationPlanner& planner, const LabelledView& out) {
    need_operands(1, 1);
    const Labels& labels = expression_.operands()[0];
    if (out.labels.size() != 4 ||
        !std::equal(labels.begin(), labels.end(), out.labels.begin(), out.labels.begin() + 3)) {
      throw UsageError(
          "the index expression must be 'group token expert -> group token expert slot'");
    }
    const auto size = [&](std::size_t axis) {
      return expression_.sizes()[static_cast<std::size_t>(out.labels[axis])];
    };
    if (attributes_.top_k > size(2)) {
      throw UsageError("top_k " + std::to_string(attributes_.top_k) + " is more than its " +
                       std::to_string(size(2)) + " experts");
    }
    const LabelledView x = view(planner, 0);
    steps::Route step;
    step.groups = size(0);
    step.tokens = size(1);
    step.experts = size(2);
    step.slots = size(3);
    step.top_k = attributes_.top_k;
    step.x = {x.buffer, x.dtype, x.offset, {}};
    step.out = {out.buffer, out.dtype, out.offset, {}};
    for (std::size_t axis = 0; axis < 4; ++axis) {
      step.x.strides[axis] = x.stride(out.labels[axis]);
      step.out.strides[axis] = out.stride(out.labels[axis]);
    }
    operation_.steps.emplace_back(step);
  }

  void plan_fill(const LabelledView& out) {
    need_operands(0, 0);
    if (attributes_.rule != "causal") {
      throw UsageError("rule '" + attributes_.rule + "' is not known; 'causal'");
    }
    if (out.labels.size() != 2 || attributes_.start.size() != 2) {
      throw UsageError("a causal fill has two axes and two numbers in 'start'");
    }
    steps::Causal step;
    step.points.axes = 2;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      step.points.sizes[axis] = expression_.sizes()[static_cast<std::size_t>(out.labels[axis])];
    }
    step.first_query = attributes_.start[0];
    step.first_key = attributes_.start[1];
    step.out = {out.buffer, out.dtype, out.offset, {out.strides[0], out.strides[1]}};
    operation_.steps.emplace_back(step);
  }

  const Graph& graph_;
  NodeId node_;
  std::string kind_;
  NodeAttributes attributes_;
  IndexExpression expression_;
  NodeOperation operation_;
  std::vector<Source> edges_;
  std::map<std::int32_t, Source> inputs_;
};

// A node without attributes has nothing to do; one with a cost would have.
void check_empty(const Graph& graph, NodeId node) {
  if (graph.kind(node) == "synthetic") return;
  bool has_work = graph.flops(node) > 0;
  const std::size_t columns = graph.raw_devices();
  for (const double seconds : graph.raw_compute().subspan(node.index() * columns, columns)) {
    has_work = has_work || seconds > 0;
  }
  if (!has_work) return;
  throw InvalidError("node '" + std::string(graph.name(node)) + "' of graph '" + graph.name() +
                     "' cannot be executed: it has a cost, but no attributes that say what it "
                     "computes; use the simulator, or a workload of doppler-gym");
}

NodeOperation parse(const Graph& graph, NodeId node, std::span<const InputId> graph_inputs) {
  if (graph.attributes(node).empty()) {
    check_empty(graph, node);
    NodeOperation empty;
    empty.name = graph.name(node);
    empty.kind = graph.kind(node);
    return empty;
  }
  try {
    return OperationParser(graph, node, graph_inputs).parse();
  } catch (const Error& error) {
    throw InvalidError("node '" + std::string(graph.name(node)) + "' of kind '" +
                       std::string(graph.kind(node)) + "' cannot be executed: " + error.what() +
                       "; give it attributes as in docs/node-attributes.md, or none, or use the "
                       "engine 'simulator'");
  }
}

}  // namespace

std::int64_t NodeOperation::scratch_bytes() const {
  constexpr std::int64_t kAlignment = 256;
  std::int64_t sum = 0;
  for (std::size_t b = output() + 1; b < buffers.size(); ++b)
    sum += buffers[b].bytes() + kAlignment;
  return sum;
}

std::vector<NodeOperation> parse_operations(const Graph& graph) {
  std::vector<std::vector<InputId>> graph_inputs(graph.n_nodes());
  for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
    for (NodeId reader : graph.inputs()[i].readers) {
      graph_inputs[reader.index()].emplace_back(static_cast<std::int64_t>(i));
    }
  }
  std::vector<NodeOperation> operations;
  operations.reserve(graph.n_nodes());
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    operations.push_back(parse(graph, NodeId(static_cast<std::int64_t>(v)), graph_inputs[v]));
  }
  return operations;
}

}  // namespace doppler
