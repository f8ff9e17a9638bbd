// Matrix products by Eigen.
#include <Eigen/Core>
#include <utility>
#include <vector>

#include "executor/cpu/step_kernels.h"
#include "executor/runtime/step_functions.h"

namespace doppler::cpu {
namespace {

using steps::MatrixStrides;

template <int Order>
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <int Order>
using ConstMap = Eigen::Map<const Matrix<Order>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <int Order>
using Map = Eigen::Map<Matrix<Order>, Eigen::Unaligned, Eigen::OuterStride<>>;

// A matrix of float32; `leading` is the stride that is not 1.
struct Operand {
  const float* data = nullptr;
  MatrixStrides strides;

  [[nodiscard]] bool is_row_major() const { return strides.column == 1; }
  [[nodiscard]] std::int64_t leading() const {
    return is_row_major() ? strides.row : strides.column;
  }
};

struct Extents {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

template <int AOrder, int BOrder>
void multiply_ordered(const Operand& a, const Operand& b, float* c, std::int64_t c_leading,
                      const Extents& size) {
  const ConstMap<AOrder> left(a.data, size.m, size.k, Eigen::OuterStride<>(a.leading()));
  const ConstMap<BOrder> right(b.data, size.k, size.n, Eigen::OuterStride<>(b.leading()));
  Map<Eigen::RowMajor>(c, size.m, size.n, Eigen::OuterStride<>(c_leading)).noalias() = left * right;
}

Operand transposed(const Operand& a) { return {a.data, {a.strides.column, a.strides.row}}; }

void multiply(Operand a, Operand b, float* c, MatrixStrides c_strides, Extents size) {
  if (c_strides.column != 1) {  // C' = B' A'
    std::swap(a, b);
    a = transposed(a);
    b = transposed(b);
    std::swap(c_strides.row, c_strides.column);
    std::swap(size.m, size.n);
  }
  constexpr int kRows = Eigen::RowMajor;
  constexpr int kColumns = Eigen::ColMajor;
  if (a.is_row_major()) {
    b.is_row_major() ? multiply_ordered<kRows, kRows>(a, b, c, c_strides.row, size)
                     : multiply_ordered<kRows, kColumns>(a, b, c, c_strides.row, size);
  } else {
    b.is_row_major() ? multiply_ordered<kColumns, kRows>(a, b, c, c_strides.row, size)
                     : multiply_ordered<kColumns, kColumns>(a, b, c, c_strides.row, size);
  }
}

// The matrix in float32 at `offset`: the buffer itself, or a row-major copy in `copy`.
Operand operand(const void* buffer, DType dtype, std::int64_t offset, MatrixStrides strides,
                std::pair<std::int64_t, std::int64_t> extents, std::vector<float>& copy) {
  if (dtype == DType::float32) return {static_cast<const float*>(buffer) + offset, strides};
  const auto [n_rows, n_columns] = extents;
  copy.resize(static_cast<std::size_t>(n_rows * n_columns));
  for (std::int64_t i = 0; i < n_rows; ++i) {
    for (std::int64_t j = 0; j < n_columns; ++j) {
      copy[static_cast<std::size_t>(i * n_columns + j)] =
          steps::load(buffer, dtype, offset + i * strides.row + j * strides.column);
    }
  }
  return {copy.data(), {n_columns, 1}};
}

}  // namespace

void run_step(const steps::Multiply& step, const Buffers& buffers) {
  std::vector<float> a_copy;
  std::vector<float> b_copy;
  std::vector<float> c_copy;
  const std::int64_t n_batch = steps::n_points(step.batch);
  for (std::int64_t point = 0; point < n_batch; ++point) {
    std::int64_t a_at = step.a.offset;
    std::int64_t b_at = step.b.offset;
    std::int64_t c_at = step.c.offset;
    steps::for_each_axis(step.batch, point, [&](int axis, std::int64_t index) {
      a_at += index * step.a.strides[axis];
      b_at += index * step.b.strides[axis];
      c_at += index * step.c.strides[axis];
    });
    const Operand a =
        operand(buffers.of(step.a), step.a.dtype, a_at, step.a_strides, {step.m, step.k}, a_copy);
    const Operand b =
        operand(buffers.of(step.b), step.b.dtype, b_at, step.b_strides, {step.k, step.n}, b_copy);
    const Extents size{step.m, step.n, step.k};
    if (step.c.dtype == DType::float32) {
      multiply(a, b, static_cast<float*>(buffers.out(step.c)) + c_at, step.c_strides, size);
      continue;
    }
    c_copy.resize(static_cast<std::size_t>(step.m * step.n));
    multiply(a, b, c_copy.data(), {step.n, 1}, size);
    for (std::int64_t i = 0; i < step.m; ++i) {
      for (std::int64_t j = 0; j < step.n; ++j) {
        steps::store(buffers.out(step.c), step.c.dtype,
                     c_at + i * step.c_strides.row + j * step.c_strides.column,
                     c_copy[static_cast<std::size_t>(i * step.n + j)]);
      }
    }
  }
}

}  // namespace doppler::cpu
