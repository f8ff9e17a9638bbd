// Matrix products by cuBLAS.
#include <cstdint>

#include "executor/cuda/module/check.h"
#include "executor/cuda/module/kernels.h"
#include "executor/runtime/step_functions.h"

namespace doppler::cuda {
namespace {

using steps::MatrixStrides;

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(DType dtype, Precision precision) {
  if (dtype != DType::float32) return CUBLAS_COMPUTE_32F;
  switch (precision) {
    case Precision::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::bfloat16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Precision::float32:
      break;
  }
  return CUBLAS_COMPUTE_32F;
}

// A factor as cuBLAS takes it: by columns, or turned.
struct Factor {
  const steps::Access* access = nullptr;
  MatrixStrides strides;

  [[nodiscard]] cublasOperation_t operation() const {
    return strides.row == 1 ? CUBLAS_OP_N : CUBLAS_OP_T;
  }
  [[nodiscard]] std::int64_t leading() const {
    return strides.row == 1 ? strides.column : strides.row;
  }
};

MatrixStrides turned(const MatrixStrides& strides) { return {strides.column, strides.row}; }

}  // namespace

void launch(const steps::Multiply& step, const Launch& at) {
  // cuBLAS writes by columns; a product by rows is its turned one: C' = B' A'.
  const bool is_by_rows = step.c_strides.column == 1;
  const Factor first =
      is_by_rows ? Factor{&step.b, turned(step.b_strides)} : Factor{&step.a, step.a_strides};
  const Factor second =
      is_by_rows ? Factor{&step.a, turned(step.a_strides)} : Factor{&step.b, step.b_strides};
  const std::int64_t n_rows = is_by_rows ? step.n : step.m;
  const std::int64_t n_columns = is_by_rows ? step.m : step.n;
  const std::int64_t c_leading = is_by_rows ? step.c_strides.row : step.c_strides.column;

  // One call does all products along the last axis of the batch.
  steps::Points outer = step.batch;
  std::int64_t n_together = 1;
  const int last = step.batch.axes - 1;
  if (last >= 0) {
    n_together = step.batch.sizes[last];
    outer.axes = last;
  }
  const auto stride = [&](const steps::Access& access) {
    return last >= 0 ? access.strides[last] : 0;
  };
  const auto address = [&](const steps::Access& access, std::int64_t point) {
    std::int64_t offset = access.offset;
    steps::for_each_axis(outer, point, [&](int axis, std::int64_t index) {
      offset += index * access.strides[axis];
    });
    return static_cast<std::byte*>(at.of(access)) + offset * size_of(access.dtype);
  };
  const float one = 1;
  const float zero = 0;
  for (std::int64_t point = 0; point < steps::n_points(outer); ++point) {
    check(cublasGemmStridedBatchedEx_64(
              at.blas, first.operation(), second.operation(), n_rows, n_columns, step.k, &one,
              address(*first.access, point), type_of(first.access->dtype), first.leading(),
              stride(*first.access), address(*second.access, point), type_of(second.access->dtype),
              second.leading(), stride(*second.access), &zero, address(step.c, point),
              type_of(step.c.dtype), c_leading, stride(step.c), n_together,
              compute_type(step.a.dtype, at.precision), CUBLAS_GEMM_DEFAULT),
          "multiply matrices by cuBLAS");
  }
}

}  // namespace doppler::cuda
