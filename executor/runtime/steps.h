// The primitive steps that the operation of every node is made of (operation.h makes them). Both
// engines run the same steps: a step walks the points of a box and reads and writes strided views
// of buffers. Plain data that a kernel can take by value.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "graphs/graph.h"

namespace doppler::steps {

inline constexpr int kMaxAxes = 8;
inline constexpr int kMaxJoined = 8;  // operands of one Join

// All combinations of one index for each axis, the last axis fastest.
struct Points {
  std::int32_t axes = 0;
  std::int64_t sizes[kMaxAxes] = {};

  friend bool operator==(const Points&, const Points&) = default;
};

// The element of a buffer at each point: offset + sum of strides[a] index[a], in elements. A stride
// of 0 repeats an element along its axis.
struct Access {
  std::int32_t buffer = 0;       // place in NodeOperation::buffers
  DType dtype = DType::float32;  // float32, float16 or bfloat16
  std::int64_t offset = 0;
  std::int64_t strides[kMaxAxes] = {};

  friend bool operator==(const Access&, const Access&) = default;
};

enum class Function : std::uint8_t {
  copy,
  add,
  subtract,
  multiply,
  divide,
  affine,
  relu,
  silu,
  exp,
  square,
  rsqrt,
  positive
};

// out = function(x, y) at each point. Functions of one operand leave y alone.
struct Pointwise {
  Function function = Function::copy;
  float factor = 1;  // affine: factor x + offset
  float offset = 0;
  Points points = {};
  Access x = {};
  Access y = {};
  Access out = {};
};

// out = sum, or maximum, of the operands at each point: 1 to kMaxJoined of them.
struct Join {
  bool maximum = false;
  Points points = {};
  std::vector<Access> operands = {};
  Access out = {};
};

// out = sum, or maximum, of x (or sum of x y) over the last `reduced_axes` of the points. Over no
// points a sum is 0 and a maximum minus infinity.
struct Reduce {
  bool maximum = false;
  bool has_y = false;
  std::int32_t reduced_axes = 0;
  Points points = {};
  Access x = {};
  Access y = {};
  Access out = {};  // strides of reduced axes are 0
};

// Element (i, j) of a matrix is i * row + j * column elements after its first. One of the two
// strides is 1, the other is at least the extent along the first.
struct MatrixStrides {
  std::int64_t row = 0;
  std::int64_t column = 0;

  friend bool operator==(const MatrixStrides&, const MatrixStrides&) = default;
};

// C = A B for each point of `batch`: A is m x k, B is k x n. A and B have one dtype; C has it too,
// or float32.
struct Multiply {
  Points batch = {};
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  Access a = {};  // of the first element of each matrix
  Access b = {};
  Access c = {};
  MatrixStrides a_strides = {};
  MatrixStrides b_strides = {};
  MatrixStrides c_strides = {};
};

// Product of complex numbers at each point; the imaginary part lies `plane` elements after the
// real one.
struct Rotate {
  Points points = {};
  Access x = {};
  Access y = {};
  Access out = {};
  std::int64_t x_plane = 0;
  std::int64_t y_plane = 0;
  std::int64_t out_plane = 0;
};

// Kind `route` of docs/node-attributes.md. Axes of x: group, token, expert; of out: group, token,
// expert, slot.
struct Route {
  std::int64_t groups = 0;
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t slots = 0;
  std::int64_t top_k = 0;
  Access x = {};
  Access out = {};
};

// out(q, k) = 0 where first_key + k <= first_query + q, else minus infinity. Two axes.
struct Causal {
  Points points = {};
  std::int64_t first_query = 0;
  std::int64_t first_key = 0;
  Access out = {};
};

using Step = std::variant<Pointwise, Join, Reduce, Multiply, Rotate, Route, Causal>;

}  // namespace doppler::steps
