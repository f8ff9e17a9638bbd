// The index expression of a node's attributes, "i k, k j -> i j": which axes of operands and output
// are one. Used by operation.cc alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

// Labels are numbered in the order in which they are met.
class IndexExpression {
 public:
  using Labels = std::vector<std::int32_t>;

  // Throws UsageError for a text that is not of this form, or has not so many operands.
  IndexExpression(std::string_view text, std::size_t n_operands);

  // Gives the labels of an operand or of the output their sizes. Throws UsageError if they are not
  // as many as `shape` has axes, or one has another size elsewhere; `what` names the tensor.
  void bind(const Labels& labels, std::span<const std::int64_t> shape, const std::string& what);

  [[nodiscard]] const std::vector<Labels>& operands() const { return operands_; }
  [[nodiscard]] const Labels& output() const { return output_; }
  // By label; -1: not bound.
  [[nodiscard]] const std::vector<std::int64_t>& sizes() const { return sizes_; }

 private:
  Labels numbers(std::string_view text);

  std::vector<std::string> names_;
  std::vector<Labels> operands_;
  Labels output_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace doppler
