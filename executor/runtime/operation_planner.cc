#include "executor/runtime/operation_planner.h"

#include <algorithm>
#include <utility>

#include "graphs/error.h"

namespace doppler {
namespace {

using Labels = std::vector<std::int32_t>;

steps::Access access_of(const LabelledView& view) {
  steps::Access access;
  access.buffer = view.buffer;
  access.dtype = view.dtype;
  access.offset = view.offset;
  return access;
}

Labels joined(const Labels& a, const Labels& b) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool contains(const Labels& labels, std::int32_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace

std::int64_t LabelledView::stride(std::int32_t label) const {
  std::int64_t sum = 0;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    if (labels[axis] == label) sum += strides[axis];
  }
  return sum;
}

bool LabelledView::has(std::int32_t label) const { return contains(labels, label); }

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * shape[axis];
  }
  return strides;
}

std::int64_t OperationPlanner::extent(const Labels& labels) const {
  std::int64_t product = 1;
  for (std::int32_t label : labels) product *= sizes_[static_cast<std::size_t>(label)];
  return product;
}

LabelledView OperationPlanner::scratch(const Labels& labels, DType dtype) {
  LabelledView view;
  view.buffer = static_cast<std::int32_t>(operation_.buffers.size());
  view.dtype = dtype;
  view.labels = labels;
  std::vector<std::int64_t> shape;
  for (std::int32_t label : labels) shape.push_back(sizes_[static_cast<std::size_t>(label)]);
  view.strides = dense_strides(shape);
  operation_.buffers.push_back({extent(labels), dtype});
  return view;
}

std::int32_t OperationPlanner::walk(
    const Labels& labels, std::size_t n_apart,
    const std::vector<std::pair<const LabelledView*, steps::Access*>>& views,
    steps::Points& points) const {
  for (const auto& [view, access] : views) *access = access_of(*view);
  const std::size_t first_apart = labels.size() - n_apart;
  std::int32_t n_apart_axes = 0;
  points.axes = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t size = sizes_[static_cast<std::size_t>(labels[i])];
    if (size == 1) continue;
    const bool is_apart = i >= first_apart;
    const bool may_join = points.axes > 0 && is_apart == (n_apart_axes > 0);
    const int last = points.axes - 1;
    // An axis continues the one before it where one step there is `size` steps here, in all views.
    const bool joins = may_join && std::all_of(views.begin(), views.end(), [&](const auto& pair) {
                         return pair.second->strides[last] == pair.first->stride(labels[i]) * size;
                       });
    if (!joins) {
      if (points.axes == steps::kMaxAxes) {
        throw InvalidError("more than " + std::to_string(steps::kMaxAxes) +
                           " axes that cannot be joined");
      }
      points.sizes[points.axes++] = 1;
      if (is_apart) ++n_apart_axes;
    }
    const int axis = points.axes - 1;
    points.sizes[axis] *= size;
    for (const auto& [view, access] : views) access->strides[axis] = view->stride(labels[i]);
  }
  return n_apart_axes;
}

void OperationPlanner::pointwise(steps::Pointwise step, const LabelledView& x,
                                 const LabelledView* y, const LabelledView& out) {
  std::vector<std::pair<const LabelledView*, steps::Access*>> views{{&x, &step.x},
                                                                    {&out, &step.out}};
  if (y != nullptr) views.emplace_back(y, &step.y);
  walk(out.labels, 0, views, step.points);
  operation_.steps.emplace_back(step);
}

void OperationPlanner::join(bool maximum, const std::vector<LabelledView>& operands,
                            const LabelledView& out) {
  for (std::size_t next = 0; next < operands.size();) {
    std::vector<const LabelledView*> sources;
    if (next > 0) sources.push_back(&out);  // what is joined so far
    while (next < operands.size() && sources.size() < steps::kMaxJoined) {
      sources.push_back(&operands[next++]);
    }
    steps::Join step;
    step.maximum = maximum;
    step.operands.resize(sources.size());
    std::vector<std::pair<const LabelledView*, steps::Access*>> views{{&out, &step.out}};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      views.emplace_back(sources[i], &step.operands[i]);
    }
    walk(out.labels, 0, views, step.points);
    operation_.steps.emplace_back(std::move(step));
  }
}

void OperationPlanner::reduce(bool maximum, const LabelledView& x, const LabelledView* y,
                              const LabelledView& out) {
  Labels reduced;
  for (const LabelledView* view : {&x, y}) {
    if (view == nullptr) continue;
    for (std::int32_t label : view->labels) {
      if (!out.has(label) && !contains(reduced, label)) reduced.push_back(label);
    }
  }
  steps::Reduce step;
  step.maximum = maximum;
  step.has_y = y != nullptr;
  std::vector<std::pair<const LabelledView*, steps::Access*>> views{{&x, &step.x},
                                                                    {&out, &step.out}};
  if (y != nullptr) views.emplace_back(y, &step.y);
  step.reduced_axes = walk(joined(out.labels, reduced), reduced.size(), views, step.points);
  operation_.steps.emplace_back(step);
}

void OperationPlanner::rotate(const LabelledView& x, const LabelledView& y,
                              const LabelledView& out) {
  const std::int32_t plane = out.labels.front();
  steps::Rotate step;
  step.x_plane = x.stride(plane);
  step.y_plane = y.stride(plane);
  step.out_plane = out.stride(plane);
  walk(Labels(out.labels.begin() + 1, out.labels.end()), 0,
       {{&x, &step.x}, {&y, &step.y}, {&out, &step.out}}, step.points);
  operation_.steps.emplace_back(step);
}

// The labels of a contraction, those of size 1 left out: a product of matrices with `rows` and
// `inner`, `inner` and `columns`, for each index of `batch`.
struct OperationPlanner::Groups {
  Labels batch;
  Labels rows;
  Labels columns;
  Labels inner;
};

// None where a label is in one tensor alone, or in one operand twice.
std::optional<OperationPlanner::Groups> OperationPlanner::groups_of(const LabelledView& x,
                                                                    const LabelledView& y,
                                                                    const LabelledView& out) const {
  const auto counts = [&](std::int32_t label) {
    return sizes_[static_cast<std::size_t>(label)] > 1;
  };
  for (const LabelledView* view : {&x, &y, &out}) {
    for (std::int32_t label : view->labels) {
      if (counts(label) && std::count(view->labels.begin(), view->labels.end(), label) > 1)
        return {};
    }
  }
  Groups groups;
  for (std::int32_t label : out.labels) {
    if (!counts(label)) continue;
    if (x.has(label)) {
      (y.has(label) ? groups.batch : groups.rows).push_back(label);
    } else if (y.has(label)) {
      groups.columns.push_back(label);
    } else {
      return {};
    }
  }
  for (std::int32_t label : x.labels) {
    if (!counts(label) || out.has(label)) continue;
    if (!y.has(label)) return {};
    groups.inner.push_back(label);
  }
  for (std::int32_t label : y.labels) {
    if (counts(label) && !out.has(label) && !x.has(label)) return {};
  }
  return groups;
}

// The stride of all these labels as one axis, the last one fastest; none where they are not one.
std::optional<std::int64_t> OperationPlanner::common_stride(const Labels& labels,
                                                            const LabelledView& view) const {
  for (std::size_t i = 0; i + 1 < labels.size(); ++i) {
    if (view.stride(labels[i]) !=
        view.stride(labels[i + 1]) * sizes_[static_cast<std::size_t>(labels[i + 1])]) {
      return {};
    }
  }
  return labels.empty() ? 0 : view.stride(labels.back());
}

// None where the view holds no matrix of these rows and columns with a stride of 1.
std::optional<steps::MatrixStrides> OperationPlanner::matrix_strides(const LabelledView& view,
                                                                     const Labels& rows,
                                                                     const Labels& columns) const {
  const std::int64_t n_rows = extent(rows);
  const std::int64_t n_columns = extent(columns);
  std::optional<std::int64_t> row = common_stride(rows, view);
  std::optional<std::int64_t> column = common_stride(columns, view);
  if (!row || !column) return {};
  // The stride of a single row or column is free.
  if (n_columns == 1) column = *row == 1 ? n_rows : 1;
  if (n_rows == 1) row = *column == 1 ? n_columns : 1;
  if ((*column == 1 && *row >= n_columns) || (*row == 1 && *column >= n_rows)) {
    return steps::MatrixStrides{*row, *column};
  }
  return {};
}

void OperationPlanner::contract(const LabelledView& x, const LabelledView& y,
                                const LabelledView& out) {
  const std::optional<Groups> groups = groups_of(x, y, out);
  const auto is_empty = [&](std::int64_t size) { return size == 0; };
  // Dot products alone are no matrices worth the name, and nothing is to be done for no elements.
  if (!groups || (groups->rows.empty() && groups->columns.empty()) ||
      std::any_of(sizes_.begin(), sizes_.end(), is_empty)) {
    reduce(false, x, &y, out);
    return;
  }
  const DType dtype = x.dtype == y.dtype ? x.dtype : DType::float32;
  const auto prepare = [&](const LabelledView& view, const Labels& rows, const Labels& columns) {
    if (view.dtype == dtype && matrix_strides(view, rows, columns)) return view;
    LabelledView packed = scratch(joined(groups->batch, joined(rows, columns)), dtype);
    pointwise({}, view, nullptr, packed);
    return packed;
  };
  const LabelledView a = prepare(x, groups->rows, groups->inner);
  const LabelledView b = prepare(y, groups->inner, groups->columns);
  const bool is_direct = (out.dtype == dtype || out.dtype == DType::float32) &&
                         matrix_strides(out, groups->rows, groups->columns);
  const LabelledView c =
      is_direct ? out
                : scratch(joined(groups->batch, joined(groups->rows, groups->columns)), dtype);
  steps::Multiply step;
  walk(groups->batch, 0, {{&a, &step.a}, {&b, &step.b}, {&c, &step.c}}, step.batch);
  step.m = extent(groups->rows);
  step.n = extent(groups->columns);
  step.k = extent(groups->inner);
  step.a_strides = *matrix_strides(a, groups->rows, groups->inner);
  step.b_strides = *matrix_strides(b, groups->inner, groups->columns);
  step.c_strides = *matrix_strides(c, groups->rows, groups->columns);
  operation_.steps.emplace_back(step);
  if (!is_direct) pointwise({}, c, nullptr, out);
}

}  // namespace doppler
