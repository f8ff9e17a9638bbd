#include "executor/runtime/input_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "executor/runtime/step_functions.h"
#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/node_attributes.h"

namespace doppler {
namespace {

using Shape = std::vector<std::int64_t>;

// "name[1,0]" as name and numbers; the numbers are as many as the tensor has axes.
std::optional<std::pair<std::string, Shape>> block_of(const GraphInput& input) {
  const std::string& name = input.name;
  const std::size_t open = name.rfind('[');
  if (open == std::string::npos || name.back() != ']') return {};
  Shape index;
  const char* at = name.data() + open + 1;
  const char* end = name.data() + name.size() - 1;
  while (at < end) {
    std::int64_t number = -1;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || (stop < end && (*stop != ',' || stop + 1 == end))) {
      return {};
    }
    index.push_back(number);
    at = stop < end ? stop + 1 : end;
  }
  if (index.size() != input.tensor.shape.size()) return {};
  return std::pair(name.substr(0, open), index);
}

// All blocks of one name.
struct Grid {
  std::map<Shape, std::size_t> inputs;  // by index

  // Parts along each axis, and where each begins, its end at last; none if the blocks make no grid.
  [[nodiscard]] std::optional<std::vector<Shape>> bounds(const Graph& graph) const {
    const Shape& last = inputs.rbegin()->first;
    std::vector<Shape> result;
    std::size_t n_blocks = 1;
    for (std::size_t axis = 0; axis < last.size(); ++axis) {
      Shape index(last.size(), 0);
      Shape begins{0};
      for (; index[axis] <= last[axis]; ++index[axis]) {
        const auto found = inputs.find(index);
        if (found == inputs.end()) return {};
        begins.push_back(begins.back() + graph.inputs()[found->second].tensor.shape[axis]);
      }
      n_blocks *= begins.size() - 1;
      if (n_blocks > inputs.size()) return {};
      result.push_back(std::move(begins));
    }
    if (n_blocks != inputs.size()) return {};
    for (const auto& [index, input] : inputs) {
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        if (index[axis] > last[axis]) return {};
        const auto part = static_cast<std::size_t>(index[axis]);
        const std::int64_t size = result[axis][part + 1] - result[axis][part];
        if (graph.inputs()[input].tensor.shape[axis] != size) return {};
      }
    }
    return result;
  }
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return result;
    text.remove_prefix(begin);
    result.emplace_back(text.substr(0, text.find(' ')));
    text.remove_prefix(result.back().size());
  }
}

// True if the piece is of a graph input, also by way of slices and concatenations.
bool is_of_input(const Graph& graph, NodeId node, const OperandPiece& piece) {
  if (piece.source == OperandPiece::Source::input) return true;
  const auto edges = graph.in_edges(node);
  if (static_cast<std::size_t>(piece.index) >= edges.size()) return false;
  const NodeId producer = graph.edge(edges[static_cast<std::size_t>(piece.index)]).producer;
  const std::string_view kind = graph.kind(producer);
  if ((kind != "slice" && kind != "concat") || graph.attributes(producer).empty()) return false;
  const NodeAttributes attributes =
      parse_node_attributes(graph.attributes(producer), std::string(graph.name(producer)));
  return std::all_of(
      attributes.operands.begin(), attributes.operands.end(), [&](const NodeOperand& operand) {
        return std::all_of(
            operand.pieces.begin(), operand.pieces.end(),
            [&](const OperandPiece& inner) { return is_of_input(graph, producer, inner); });
      });
}

// Elements over which a contraction sums tensor `id`, and whether its other operand is an input.
struct Contraction {
  double elements = 1;
  bool of_inputs = false;
};

// What the node does with the input if it is a contraction that reads it; `whole` is the shape of
// the input's whole tensor.
std::optional<Contraction> contraction(const Graph& graph, NodeId node, InputId id,
                                       const Shape& whole) {
  if (graph.kind(node) != "einsum" || graph.attributes(node).empty()) return {};
  const NodeAttributes attributes =
      parse_node_attributes(graph.attributes(node), std::string(graph.name(node)));
  const std::size_t arrow = attributes.index.find("->");
  if (arrow == std::string::npos || attributes.operands.size() != 2) return {};
  const std::vector<std::string> output =
      words(std::string_view(attributes.index).substr(arrow + 2));
  std::string_view left = std::string_view(attributes.index).substr(0, arrow);
  std::optional<Contraction> result;
  bool all_are_inputs = true;
  for (const NodeOperand& operand : attributes.operands) {
    const std::vector<std::string> labels = words(left.substr(0, left.find(',')));
    left.remove_prefix(std::min(left.size(), left.find(',') + 1));
    for (const OperandPiece& piece : operand.pieces) {
      all_are_inputs = all_are_inputs && is_of_input(graph, node, piece);
      if (piece.source != OperandPiece::Source::input || piece.index != id.value ||
          labels.size() != whole.size())
        continue;
      result = Contraction{};
      for (std::size_t axis = 0; axis < labels.size(); ++axis) {
        if (std::find(output.begin(), output.end(), labels[axis]) == output.end()) {
          result->elements *= static_cast<double>(whole[axis]);
        }
      }
    }
  }
  if (result) result->of_inputs = all_are_inputs;
  return result;
}

float scale_of(const Graph& graph, InputId id, const Shape& whole) {
  double variance = 1;
  for (NodeId reader : graph.inputs()[id.index()].readers) {
    if (const auto found = contraction(graph, reader, id, whole)) {
      const double n = std::max(1.0, found->elements);
      variance = found->of_inputs ? 1 / std::sqrt(n) : 1 / n;
      break;
    }
  }
  // Uniform in [-a, a): variance a^2 / 3.
  return static_cast<float>(std::sqrt(3 * variance));
}

}  // namespace

std::vector<InputValues> input_values(const Graph& graph) {
  std::vector<InputValues> result(graph.n_inputs());
  std::map<std::string, Grid> grids;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    result[i] = {input.name,         input.tensor.shape, Shape(input.tensor.shape.size(), 0),
                 input.tensor.shape, input.tensor.dtype, 1};
    if (auto block = block_of(input)) grids[block->first].inputs.emplace(block->second, i);
  }
  std::vector<char> is_scaled(result.size(), 0);
  for (const auto& [name, grid] : grids) {
    const auto bounds = grid.bounds(graph);
    if (!bounds) continue;
    Shape whole;
    for (const Shape& begins : *bounds) whole.push_back(begins.back());
    const std::size_t first = grid.inputs.begin()->second;
    const float scale = scale_of(graph, InputId(static_cast<std::int64_t>(first)), whole);
    for (const auto& [index, input] : grid.inputs) {
      InputValues& values = result[input];
      values.tensor = name;
      values.whole = whole;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        values.start[axis] = (*bounds)[axis][static_cast<std::size_t>(index[axis])];
      }
      values.scale = scale;
      is_scaled[input] = 1;
    }
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (is_scaled[i] == 0) {
      result[i].scale = scale_of(graph, InputId(static_cast<std::int64_t>(i)), result[i].whole);
    }
  }
  return result;
}

void fill_input(const InputValues& input, std::uint64_t seed, std::span<std::byte> to) {
  const std::int64_t n =
      std::accumulate(input.shape.begin(), input.shape.end(), std::int64_t{1}, std::multiplies<>());
  if (static_cast<std::int64_t>(to.size()) != n * size_of(input.dtype)) {
    throw std::invalid_argument("graph input '" + input.tensor + "' of " + std::to_string(n) +
                                " elements does not fit into " + std::to_string(to.size()) +
                                " bytes");
  }
  if (n == 0) return;
  const std::uint64_t key = Hasher().add(seed).add(std::string_view(input.tensor)).digest();
  const std::size_t axes = input.shape.size();
  const std::int64_t run = axes == 0 ? 1 : input.shape.back();
  Shape index(axes, 0);
  for (std::int64_t written = 0; written < n; written += run) {
    std::int64_t place = 0;  // of the run's first element in the whole tensor
    for (std::size_t axis = 0; axis < axes; ++axis) {
      place = place * input.whole[axis] + input.start[axis] + index[axis];
    }
    for (std::int64_t i = 0; i < run; ++i) {
      steps::store(to.data(), input.dtype, written + i,
                   steps::input_value(key, place + i, input.scale));
    }
    for (std::size_t axis = axes - std::min<std::size_t>(axes, 1); axis-- > 0;) {
      if (++index[axis] < input.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace doppler
