// A tensor program: values over named dimensions and the operations that make them, each with the
// way in which it is cut into blocks.
//
// An operation visits every point of its dimensions (those of its result and those that it reduces
// over). A cut splits some of these dimensions into parts; one block a combination of parts is one
// node of the sharded graph (sharding.h). Unsharded meaning: the cuts do not change what a program
// computes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler {

using DimensionId = Id<struct DimensionTag>;  // a named dimension of a program
using ValueId = Id<struct ValueTag>;          // a tensor of a program
using Dimensions = std::vector<DimensionId>;

struct Dimension {
  std::string name;  // letters, digits, '_'
  std::int64_t size = 1;

  friend bool operator==(const Dimension&, const Dimension&) = default;
};

// Parts k = 0 .. n - 1 of a dimension of `size` elements are the ranges [size k / n, size (k+1) /
// n), rounded down: they differ by at most one element, and a cut into a multiple of n refines
// them.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};
[[nodiscard]] Range part_range(std::int64_t size, std::int64_t n_parts, std::int64_t part);
// The part that holds element `at`.
[[nodiscard]] std::int64_t part_of(std::int64_t size, std::int64_t n_parts, std::int64_t at);

// Into how many parts each dimension is cut; dimensions that are not named stay whole.
class Cut {
 public:
  Cut() = default;
  Cut(std::initializer_list<std::pair<DimensionId, std::int64_t>> parts) : parts_(parts) {}

  [[nodiscard]] std::int64_t parts(DimensionId dimension) const;
  [[nodiscard]] std::span<const std::pair<DimensionId, std::int64_t>> all() const { return parts_; }

  friend bool operator==(const Cut&, const Cut&) = default;

 private:
  std::vector<std::pair<DimensionId, std::int64_t>> parts_;
};

// A tensor. Inputs have no producer.
struct Value {
  std::string name;
  Dimensions dimensions;
  DType dtype = DType::float32;
  std::int32_t producer = -1;  // index of the operation; -1: an input of the program

  friend bool operator==(const Value&, const Value&) = default;
};

// What an operation reads: axis a of the value is walked by dimension labels[a] of the operation,
// from element offset[a] on (no offsets: all 0).
struct Operand {
  ValueId value;
  Dimensions labels;
  std::vector<std::int64_t> offset = {};

  friend bool operator==(const Operand&, const Operand&) = default;
};

// An operation. The meaning of each kind is in docs/node-attributes.md.
struct Operation {
  std::string kind;
  std::vector<Operand> operands;
  Dimensions result_dimensions;
  Cut cut = {};
  DType dtype = DType::float32;  // of the result
  double factor = 1;             // affine
  double offset = 0;             // affine
  std::int64_t top_k = 0;        // route
  ValueId result = {};           // set by Program::add
  Dimensions reduced = {};       // set by Program::add: in operands, not in the result

  friend bool operator==(const Operation&, const Operation&) = default;
};

// How parts of a reduction are joined: einsum and sum by "sum", max by "max", all other kinds "".
[[nodiscard]] std::string_view reduction_rule(std::string_view kind);
// FLOPs at each point of an operation's dimensions: einsum 2 (1 with one operand), rotate 3, other
// arithmetic 1 whatever the function (also exp or a division), moving data 0.
[[nodiscard]] double flops_per_point(const Operation& operation);

// A regular value. Operations stand in an order in which every value is made before it is read.
class Program {
 public:
  explicit Program(std::string name) : name_(std::move(name)) {}

  // Throws UsageError for a size below 1 or above 2^40.
  DimensionId dimension(std::string name, std::int64_t size);
  // Throws UsageError for a tensor of more than 2^50 elements.
  ValueId input(std::string name, Dimensions dimensions, DType dtype = DType::float32);
  // Adds an operation whose result is a new value called `name`. Throws UsageError for a dimension
  // that is cut into more parts than it has elements, and for a result that is too large.
  ValueId add(std::string name, Operation operation);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::span<const Dimension> dimensions() const { return dimensions_; }
  [[nodiscard]] std::span<const Value> values() const { return values_; }
  [[nodiscard]] std::span<const Operation> operations() const { return operations_; }
  [[nodiscard]] const Dimension& at(DimensionId id) const { return dimensions_.at(id.index()); }
  [[nodiscard]] const Value& at(ValueId id) const { return values_.at(id.index()); }
  [[nodiscard]] std::vector<std::int64_t> shape(ValueId id) const;
  // Values that no operation reads.
  [[nodiscard]] std::vector<ValueId> results() const;

  friend bool operator==(const Program&, const Program&) = default;

 private:
  void check(const std::string& name, const Operation& operation) const;
  void check_size(const std::string& name, const Dimensions& dimensions) const;

  std::string name_;
  std::vector<Dimension> dimensions_;
  std::vector<Value> values_;
  std::vector<Operation> operations_;
};

}  // namespace doppler
