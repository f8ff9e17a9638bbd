#include "executor/runtime/index_expression.h"

#include <algorithm>
#include <set>

#include "graphs/error.h"

namespace doppler {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

IndexExpression::IndexExpression(std::string_view text, std::size_t n_operands) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) throw UsageError("the index expression has no '->'");
  std::string_view left = text.substr(0, arrow);
  if (n_operands == 0) {
    if (!trimmed(left).empty()) throw UsageError("the index expression has operands too many");
  } else {
    while (true) {
      const std::size_t comma = left.find(',');
      operands_.push_back(numbers(left.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      left.remove_prefix(comma + 1);
    }
    if (operands_.size() != n_operands) {
      throw UsageError("the index expression has " + std::to_string(operands_.size()) +
                       " operands, the attributes " + std::to_string(n_operands));
    }
  }
  output_ = numbers(text.substr(arrow + 2));
  if (std::set<std::int32_t>(output_.begin(), output_.end()).size() != output_.size()) {
    throw UsageError("a label stands twice in the output of the index expression");
  }
  sizes_.assign(names_.size(), -1);
}

void IndexExpression::bind(const Labels& labels, std::span<const std::int64_t> shape,
                           const std::string& what) {
  if (labels.size() != shape.size()) {
    throw UsageError(what + " of shape " + shape_text(shape) + " has " +
                     std::to_string(labels.size()) + " labels in the index expression");
  }
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const auto label = static_cast<std::size_t>(labels[axis]);
    std::int64_t& size = sizes_[label];
    if (size >= 0 && size != shape[axis]) {
      throw UsageError("label " + names_[label] + " has the sizes " + std::to_string(size) +
                       " and " + std::to_string(shape[axis]));
    }
    size = shape[axis];
  }
}

IndexExpression::Labels IndexExpression::numbers(std::string_view text) {
  Labels labels;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::string name(text.substr(0, text.find(' ')));
    text.remove_prefix(name.size());
    const auto found = std::find(names_.begin(), names_.end(), name);
    labels.push_back(static_cast<std::int32_t>(found - names_.begin()));
    if (found == names_.end()) names_.push_back(name);
  }
  return labels;
}

}  // namespace doppler
