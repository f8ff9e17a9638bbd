// The steps of one operation over named axes. Used by operation.cc alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/runtime/operation.h"
#include "executor/runtime/steps.h"

namespace doppler {

// A tensor whose axes carry labels; label l of the operation has size `sizes[l]`.
struct LabelledView {
  std::int32_t buffer = 0;
  DType dtype = DType::float32;
  std::int64_t offset = 0;
  std::vector<std::int32_t> labels = {};
  std::vector<std::int64_t> strides = {};  // one a label of `labels`

  // Elements from one index of a label to the next: the sum over its axes, 0 without one.
  [[nodiscard]] std::int64_t stride(std::int32_t label) const;
  [[nodiscard]] bool has(std::int32_t label) const;
};

// Strides of a dense row-major tensor.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape);

class OperationPlanner {
 public:
  // Adds to an operation; `sizes` are those of its labels.
  OperationPlanner(NodeOperation& operation, std::vector<std::int64_t> sizes)
      : operation_(operation), sizes_(std::move(sizes)) {}

  // One step over the labels of `out`; y only for functions of two operands.
  void pointwise(steps::Pointwise step, const LabelledView& x, const LabelledView* y,
                 const LabelledView& out);
  void join(bool maximum, const std::vector<LabelledView>& operands, const LabelledView& out);
  // Over all labels of x (and y) that `out` lacks.
  void reduce(bool maximum, const LabelledView& x, const LabelledView* y, const LabelledView& out);
  // out = sum of x y over all labels that it lacks: by matrix products where the labels make
  // matrices, and then without a copy where the strides do.
  void contract(const LabelledView& x, const LabelledView& y, const LabelledView& out);
  void rotate(const LabelledView& x, const LabelledView& y, const LabelledView& out);

  // A new scratch tensor, dense over the labels in this order.
  LabelledView scratch(const std::vector<std::int32_t>& labels, DType dtype);

 private:
  struct Groups;
  [[nodiscard]] std::optional<Groups> groups_of(const LabelledView& x, const LabelledView& y,
                                                const LabelledView& out) const;
  [[nodiscard]] std::optional<std::int64_t> common_stride(const std::vector<std::int32_t>& labels,
                                                          const LabelledView& view) const;
  [[nodiscard]] std::optional<steps::MatrixStrides> matrix_strides(
      const LabelledView& view, const std::vector<std::int32_t>& rows,
      const std::vector<std::int32_t>& columns) const;
  [[nodiscard]] std::int64_t extent(const std::vector<std::int32_t>& labels) const;
  // The points of these labels and the strides of the views along them, in as few axes as hold
  // them. Returns how many of the axes belong to the last `n_apart` labels, which are not joined
  // with the others.
  std::int32_t walk(const std::vector<std::int32_t>& labels, std::size_t n_apart,
                    const std::vector<std::pair<const LabelledView*, steps::Access*>>& views,
                    steps::Points& points) const;

  NodeOperation& operation_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace doppler
