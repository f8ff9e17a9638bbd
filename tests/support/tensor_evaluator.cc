#include "tests/support/tensor_evaluator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>

#include "graphs/hash.h"

namespace doppler::testing {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t volume(const Index& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Calls visit(index) for every index below `shape`, last axis fastest.
template <class Visit>
void for_each(const Index& shape, Visit visit) {
  Index index(shape.size(), 0);
  for (std::int64_t k = volume(shape); k > 0; --k) {
    visit(index);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

std::size_t flat(const Index& shape, const Index& index) {
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= shape[axis]) throw std::logic_error("outside a tensor");
    place = place * shape[axis] + index[axis];
  }
  return static_cast<std::size_t>(place);
}

Index plus(const Index& a, const Index& b) {
  Index sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b.at(i));
  return sum;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

// "a b, b c -> a c" as lists of labels, the result's last.
std::vector<std::vector<std::string>> parse_index(const std::string& text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string::npos) throw std::logic_error("no arrow in '" + text + "'");
  std::vector<std::vector<std::string>> lists;
  std::istringstream operands(text.substr(0, arrow));
  for (std::string list; std::getline(operands, list, ',');) {
    if (!words(list).empty() || arrow > 1) lists.push_back(words(list));
  }
  lists.push_back(words(text.substr(arrow + 2)));
  return lists;
}

double pointwise(const std::string& kind, const NodeAttributes& attributes, double a, double b) {
  if (kind == "relu") return std::max(a, 0.0);
  if (kind == "silu") return a / (1 + std::exp(-a));
  if (kind == "exp") return std::exp(a);
  if (kind == "square") return a * a;
  if (kind == "rsqrt") return 1 / std::sqrt(a);
  if (kind == "positive") return a > 0 ? 1 : 0;
  if (kind == "affine") return attributes.factor * a + attributes.offset;
  if (kind == "add") return a + b;
  if (kind == "subtract") return a - b;
  if (kind == "multiply") return a * b;
  if (kind == "divide") return a / b;
  static const std::set<std::string> kCopies = {"cast",    "transpose", "select",
                                                "squeeze", "slice",     "concat"};
  if (kCopies.contains(kind)) return a;
  throw std::logic_error("no kernel for kind '" + kind + "'");
}

Array fill(const NodeAttributes& attributes, const Index& shape) {
  if (attributes.rule != "causal") throw std::logic_error("no fill '" + attributes.rule + "'");
  Array result = Array::zeros(shape);
  for_each(shape, [&](const Index& index) {
    const Index at = plus(index, attributes.start);
    result.data[flat(shape, index)] = at[1] <= at[0] ? 0 : -std::numeric_limits<double>::infinity();
  });
  return result;
}

Array aggregate(const NodeAttributes& attributes, const std::vector<Array>& operands,
                const Index& shape) {
  Array result = operands.at(0);
  if (result.shape != shape) throw std::logic_error("an aggregation of another shape");
  for (std::size_t k = 1; k < operands.size(); ++k) {
    if (operands[k].shape != shape) throw std::logic_error("an aggregation of unequal shapes");
    for (std::size_t i = 0; i < result.data.size(); ++i) {
      if (attributes.rule == "max") {
        result.data[i] = std::max(result.data[i], operands[k].data[i]);
      } else if (attributes.rule == "sum") {
        result.data[i] += operands[k].data[i];
      } else {
        throw std::logic_error("no aggregation by '" + attributes.rule + "'");
      }
    }
  }
  return result;
}

// shares[group, token, expert] -> result[group, token, expert, slot]
Array route(const NodeAttributes& attributes, const Array& shares, const Index& shape) {
  Array result = Array::zeros(shape);
  const auto [n_tokens, n_experts, n_slots] = std::tuple(shape.at(1), shape.at(2), shape.at(3));
  for (std::int64_t group = 0; group < shape[0]; ++group) {
    const auto share = [&](std::int64_t token, std::int64_t expert) {
      return shares.data[flat(shares.shape, {group, token, expert})];
    };
    Index n_given(static_cast<std::size_t>(n_experts), 0);
    for (std::int64_t rank = 0; rank < attributes.top_k; ++rank) {
      for (std::int64_t token = 0; token < n_tokens; ++token) {
        Index experts(static_cast<std::size_t>(n_experts));
        std::iota(experts.begin(), experts.end(), 0);
        std::stable_sort(experts.begin(), experts.end(), [&](std::int64_t a, std::int64_t b) {
          return share(token, a) > share(token, b);
        });
        const std::int64_t expert = experts.at(static_cast<std::size_t>(rank));
        const std::int64_t slot = n_given[static_cast<std::size_t>(expert)]++;
        if (slot >= n_slots) continue;
        result.data[flat(shape, {group, token, expert, slot})] = share(token, expert);
      }
    }
  }
  return result;
}

}  // namespace

Array Array::zeros(std::vector<std::int64_t> shape) {
  Array array;
  array.data.assign(static_cast<std::size_t>(volume(shape)), 0.0);
  array.shape = std::move(shape);
  return array;
}

Array box_of(const Array& array, const std::vector<std::int64_t>& start,
             const std::vector<std::int64_t>& shape) {
  Array box = Array::zeros(shape);
  for_each(shape, [&](const Index& index) {
    box.data[flat(shape, index)] = array.data[flat(array.shape, plus(index, start))];
  });
  return box;
}

Array run_kernel(const std::string& kind, const NodeAttributes& attributes,
                 const std::vector<Array>& operands, const std::vector<std::int64_t>& shape) {
  if (kind == "fill") return fill(attributes, shape);
  if (kind == "aggregate") return aggregate(attributes, operands, shape);
  if (kind == "route") return route(attributes, operands.at(0), shape);

  const auto lists = parse_index(attributes.index);
  if (lists.size() != operands.size() + 1) throw std::logic_error("operands and index differ");
  // All labels, the result's first, and their sizes.
  std::vector<std::string> labels = lists.back();
  Index sizes = shape;
  if (labels.size() != sizes.size()) throw std::logic_error("result and index differ");
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (lists[k].size() != operands[k].shape.size()) throw std::logic_error("axes differ");
    for (std::size_t axis = 0; axis < lists[k].size(); ++axis) {
      const auto found = std::find(labels.begin(), labels.end(), lists[k][axis]);
      if (found == labels.end()) {
        labels.push_back(lists[k][axis]);
        sizes.push_back(operands[k].shape[axis]);
      } else if (sizes[static_cast<std::size_t>(found - labels.begin())] !=
                 operands[k].shape[axis]) {
        throw std::logic_error("sizes of " + lists[k][axis] + " differ");
      }
    }
  }
  // The element of operand k at a point of all labels; `flip` reads the other plane.
  const auto element = [&](std::size_t k, const Index& point, bool flip = false) {
    Index at;
    for (const std::string& label : lists[k]) {
      const auto place =
          static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
      at.push_back(flip && place == 0 ? 1 - point[place] : point[place]);
    }
    return operands[k].data[flat(operands[k].shape, at)];
  };

  Array result = Array::zeros(shape);
  if (kind == "max") {
    std::fill(result.data.begin(), result.data.end(), -std::numeric_limits<double>::infinity());
  }
  const bool reduces = kind == "einsum" || kind == "sum" || kind == "max";
  if (!reduces && volume(sizes) != volume(shape)) throw std::logic_error(kind + " reduces");
  for_each(sizes, [&](const Index& point) {
    double& out = result.data[flat(shape, Index(point.begin(), point.begin() + std::ssize(shape)))];
    if (kind == "einsum") {
      double product = 1;
      for (std::size_t k = 0; k < operands.size(); ++k) product *= element(k, point);
      out += product;
    } else if (kind == "sum") {
      out += element(0, point);
    } else if (kind == "max") {
      out = std::max(out, element(0, point));
    } else if (kind == "rotate") {
      // (x0 + i x1) (t0 + i t1); plane 0 is the real part.
      const double straight = element(0, point) * element(1, point, point[0] == 1);
      const double crossed = element(0, point, true) * element(1, point, point[0] == 0);
      out = point[0] == 0 ? straight - crossed : straight + crossed;
    } else {
      out = pointwise(kind, attributes, element(0, point),
                      operands.size() > 1 ? element(1, point) : 0);
    }
  });
  return result;
}

std::vector<Array> evaluate(const Program& program, std::vector<Array> inputs) {
  inputs.resize(program.values().size());
  const auto labels = [&](const Dimensions& dimensions) {
    std::string text;
    for (DimensionId dimension : dimensions) text += " " + program.at(dimension).name;
    return text;
  };
  for (const Operation& operation : program.operations()) {
    NodeAttributes attributes;
    attributes.factor = operation.factor;
    attributes.offset = operation.offset;
    attributes.top_k = operation.top_k;
    const Index shape = program.shape(operation.result);
    if (operation.kind == "fill") {
      attributes.rule = "causal";
      attributes.start.assign(shape.size(), 0);
    }
    std::vector<Array> operands;
    for (const Operand& operand : operation.operands) {
      attributes.index += (operands.empty() ? "" : ",") + labels(operand.labels);
      Index start = operand.offset;
      Index extent;
      start.resize(operand.labels.size(), 0);
      for (DimensionId label : operand.labels) extent.push_back(program.at(label).size);
      operands.push_back(box_of(inputs[operand.value.index()], start, extent));
    }
    attributes.index += " ->" + labels(operation.result_dimensions);
    inputs[operation.result.index()] = run_kernel(operation.kind, attributes, operands, shape);
  }
  return inputs;
}

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs) {
  std::vector<Array> outputs(graph.n_nodes());
  for (NodeId node : graph.topological_order()) {
    const std::string name(graph.name(node));
    const NodeAttributes attributes = parse_node_attributes(graph.attributes(node), name);
    std::set<std::int32_t> edges_read;
    std::vector<Array> operands;
    for (const NodeOperand& operand : attributes.operands) {
      Array array = Array::zeros(operand.shape);
      std::vector<char> covered(array.data.size(), 0);
      for (const OperandPiece& piece : operand.pieces) {
        const bool is_edge = piece.source == OperandPiece::Source::edge;
        const auto at = static_cast<std::size_t>(piece.index);
        if (is_edge) edges_read.insert(piece.index);
        const Array& source = is_edge
                                  ? outputs[graph.edge(graph.in_edges(node)[at]).producer.index()]
                                  : inputs.at(at);
        for_each(piece.shape, [&](const Index& index) {
          const std::size_t place = flat(array.shape, plus(index, piece.to));
          if (covered[place]++) throw std::logic_error(name + ": pieces overlap");
          array.data[place] = source.data[flat(source.shape, plus(index, piece.start))];
        });
      }
      if (std::count(covered.begin(), covered.end(), 0) > 0) {
        throw std::logic_error(name + ": pieces leave holes");
      }
      operands.push_back(std::move(array));
    }
    if (edges_read.size() != graph.in_edges(node).size()) {
      throw std::logic_error(name + ": an edge is not read");
    }
    const auto shape = graph.tensor_shape(graph.first_tensor(node));
    outputs[node.index()] = run_kernel(std::string(graph.kind(node)), attributes, operands,
                                       Index(shape.begin(), shape.end()));
  }
  return outputs;
}

std::vector<Array> random_inputs(const Program& program, std::uint64_t seed) {
  std::vector<Array> inputs(program.values().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (program.values()[i].producer >= 0) continue;
    inputs[i] = Array::zeros(program.shape(ValueId(static_cast<std::int64_t>(i))));
    for (double& x : inputs[i].data) {
      seed += 0x9e3779b97f4a7c15ULL;
      x = static_cast<double>(mix64(seed) >> 11) * 0x1p-52 - 1;
    }
  }
  return inputs;
}

std::vector<Array> input_blocks(const ShardedProgram& sharded, const std::vector<Array>& values) {
  std::vector<Array> blocks;
  for (const Block& block : sharded.inputs) {
    Index start;
    Index shape;
    for (const Range& range : block.box) {
      start.push_back(range.begin);
      shape.push_back(range.size());
    }
    blocks.push_back(box_of(values[block.value.index()], start, shape));
  }
  return blocks;
}

double relative_error(const ShardedProgram& sharded, const std::vector<Array>& node_outputs,
                      const std::vector<Array>& values) {
  std::map<ValueId, std::pair<double, double>> errors;  // largest |a - b| and |b| of each result
  std::map<ValueId, std::size_t> n_compared;
  for (const auto& [node, block] : sharded.results) {
    const Array& value = values[block.value.index()];
    const Array& output = node_outputs[node.index()];
    auto& [difference, size] = errors[block.value];
    Index start;
    for (const Range& range : block.box) start.push_back(range.begin);
    const Array expected = box_of(value, start, output.shape);
    for (std::size_t i = 0; i < output.data.size(); ++i) {
      if (!std::isfinite(output.data[i])) throw std::logic_error("a result that is not finite");
      difference = std::max(difference, std::abs(output.data[i] - expected.data[i]));
      size = std::max(size, std::abs(expected.data[i]));
    }
    n_compared[block.value] += output.data.size();
  }
  double worst = 0;
  for (const auto& [value, error] : errors) {
    if (n_compared[value] != values[value.index()].data.size()) {
      throw std::logic_error("a result that no node holds");
    }
    if (error.second == 0) throw std::logic_error("a result of zeros shows nothing");
    worst = std::max(worst, error.first / error.second);
  }
  if (errors.empty()) throw std::logic_error("no results");
  return worst;
}

}  // namespace doppler::testing
