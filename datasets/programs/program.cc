#include "datasets/programs/program.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "graphs/error.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxDimension = std::int64_t{1} << 40;
constexpr double kMaxElements = 0x1p50;

bool contains(const Dimensions& dimensions, DimensionId dimension) {
  return std::find(dimensions.begin(), dimensions.end(), dimension) != dimensions.end();
}

}  // namespace

Range part_range(std::int64_t size, std::int64_t n_parts, std::int64_t part) {
  // floor(size * k / n) without the product, which may overflow.
  const std::int64_t whole = size / n_parts;
  const std::int64_t rest = size % n_parts;
  const auto boundary = [&](std::int64_t k) { return whole * k + rest * k / n_parts; };
  return {boundary(part), boundary(part + 1)};
}

std::int64_t part_of(std::int64_t size, std::int64_t n_parts, std::int64_t at) {
  std::int64_t part = std::min(n_parts - 1, at / std::max<std::int64_t>(1, size / n_parts));
  while (part_range(size, n_parts, part).begin > at) --part;
  while (part_range(size, n_parts, part).end <= at) ++part;
  return part;
}

std::int64_t Cut::parts(DimensionId dimension) const {
  for (const auto& [cut, n_parts] : parts_) {
    if (cut == dimension) return n_parts;
  }
  return 1;
}

std::string_view reduction_rule(std::string_view kind) {
  if (kind == "einsum" || kind == "sum") return "sum";
  if (kind == "max") return "max";
  return "";
}

double flops_per_point(const Operation& operation) {
  static constexpr std::array<std::string_view, 4> kMoves = {"fill", "select", "squeeze",
                                                             "transpose"};
  if (std::find(kMoves.begin(), kMoves.end(), operation.kind) != kMoves.end()) return 0;
  if (operation.kind == "einsum") return operation.operands.size() > 1 ? 2 : 1;
  return operation.kind == "rotate" ? 3 : 1;
}

DimensionId Program::dimension(std::string name, std::int64_t size) {
  if (size < 1 || size > kMaxDimension) {
    throw UsageError(name_ + ": dimension " + name + " has size " + std::to_string(size) +
                     "; sizes are from 1 to 2^40");
  }
  dimensions_.push_back({std::move(name), size});
  return DimensionId(static_cast<std::int64_t>(dimensions_.size()) - 1);
}

ValueId Program::input(std::string name, Dimensions dimensions, DType dtype) {
  check_size(name, dimensions);
  values_.push_back({std::move(name), std::move(dimensions), dtype, -1});
  return ValueId(static_cast<std::int64_t>(values_.size()) - 1);
}

ValueId Program::add(std::string name, Operation operation) {
  operation.reduced.clear();
  for (const Operand& operand : operation.operands) {
    for (DimensionId label : operand.labels) {
      if (!contains(operation.result_dimensions, label) && !contains(operation.reduced, label)) {
        operation.reduced.push_back(label);
      }
    }
  }
  check(name, operation);
  const ValueId result(static_cast<std::int64_t>(values_.size()));
  operation.result = result;
  values_.push_back({std::move(name), operation.result_dimensions, operation.dtype,
                     static_cast<std::int32_t>(operations_.size())});
  operations_.push_back(std::move(operation));
  return result;
}

std::vector<std::int64_t> Program::shape(ValueId id) const {
  std::vector<std::int64_t> shape;
  for (DimensionId dimension : at(id).dimensions) shape.push_back(at(dimension).size);
  return shape;
}

std::vector<ValueId> Program::results() const {
  std::vector<char> is_read(values_.size(), 0);
  for (const Operation& operation : operations_) {
    for (const Operand& operand : operation.operands) is_read[operand.value.index()] = 1;
  }
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!is_read[i]) results.push_back(ValueId(static_cast<std::int64_t>(i)));
  }
  return results;
}

void Program::check_size(const std::string& name, const Dimensions& dimensions) const {
  double elements = 1;
  std::string names;
  for (DimensionId dimension : dimensions) {
    elements *= static_cast<double>(at(dimension).size);
    names += (names.empty() ? "" : ", ") + at(dimension).name;
  }
  if (elements > kMaxElements) {
    throw UsageError(name_ + ": tensor " + name + "[" + names +
                     "] has more than 2^50 elements; choose smaller sizes");
  }
}

void Program::check(const std::string& name, const Operation& operation) const {
  check_size(name, operation.result_dimensions);
  for (const Operand& operand : operation.operands) {
    const Value& value = at(operand.value);
    if (operand.labels.size() != value.dimensions.size() ||
        (!operand.offset.empty() && operand.offset.size() != operand.labels.size())) {
      throw std::logic_error(name + ": labels of " + value.name + " do not match its dimensions");
    }
    for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
      const std::int64_t offset = operand.offset.empty() ? 0 : operand.offset[axis];
      if (offset < 0 || offset + at(operand.labels[axis]).size > at(value.dimensions[axis]).size) {
        throw std::logic_error(name + ": reads beyond dimension " +
                               at(value.dimensions[axis]).name + " of " + value.name);
      }
    }
  }
  for (const auto& [dimension, n_parts] : operation.cut.all()) {
    if (!contains(operation.result_dimensions, dimension) &&
        !contains(operation.reduced, dimension)) {
      throw std::logic_error(name + ": cuts " + at(dimension).name + ", which it does not have");
    }
    if (contains(operation.reduced, dimension) && n_parts > 1 &&
        reduction_rule(operation.kind).empty()) {
      throw std::logic_error(name + ": " + at(dimension).name + " cannot be cut here");
    }
    if (n_parts < 1 || n_parts > at(dimension).size) {
      throw UsageError(name_ + ": dimension " + at(dimension).name + " of size " +
                       std::to_string(at(dimension).size) + " cannot be cut into " +
                       std::to_string(n_parts) + " parts (for " + name +
                       "); choose fewer shards or a larger size");
    }
  }
}

}  // namespace doppler
