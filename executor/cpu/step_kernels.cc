// Loops over the points of a step. Where all elements are float32 they run along the last axis, so
// that the compiler makes vector instructions of them; else point by point.
#include "executor/cpu/step_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "executor/runtime/step_functions.h"

namespace doppler::cpu {
namespace {

using steps::Access;
using steps::Function;
using steps::Points;

// Elements of a run that stay in the first cache while several operands pass over them.
constexpr std::int64_t kBlock = 2048;

bool is_float(const Access& access) { return access.dtype == DType::float32; }

const float* floats(const Buffers& buffers, const Access& access) {
  return static_cast<const float*>(buffers.of(access));
}

float* float_out(const Buffers& buffers, const Access& access) {
  return static_cast<float*>(buffers.out(access));
}

std::int64_t run_length(const Points& points) {
  return points.axes == 0 ? 1 : points.sizes[points.axes - 1];
}

// The stride along the last axis.
std::int64_t run_stride(const Points& points, const Access& access) {
  return points.axes == 0 ? 0 : access.strides[points.axes - 1];
}

// Calls visit(offsets) for the first point of each run along the last axis.
template <std::size_t kN, class Visit>
void for_each_run(const Points& points, const std::array<const Access*, kN>& accesses,
                  Visit visit) {
  if (steps::n_points(points) == 0) return;
  std::array<std::int64_t, kN> offsets;
  for (std::size_t i = 0; i < kN; ++i) offsets[i] = accesses[i]->offset;
  std::array<std::int64_t, steps::kMaxAxes> index{};
  while (true) {
    visit(offsets);
    int axis = points.axes - 2;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      for (std::size_t i = 0; i < kN; ++i) offsets[i] += accesses[i]->strides[axis];
      if (++index[a] < points.sizes[axis]) break;
      for (std::size_t i = 0; i < kN; ++i) {
        offsets[i] -= accesses[i]->strides[axis] * points.sizes[axis];
      }
      index[a] = 0;
    }
    if (axis < 0) return;
  }
}

template <class Visit>
void for_each_point(const Points& points, Visit visit) {
  const std::int64_t n = steps::n_points(points);
  for (std::int64_t point = 0; point < n; ++point) visit(point);
}

// Calls visit with the function as a constant, so that the loop inside knows it.
template <class Visit>
void with_constant(Function function, Visit visit) {
  switch (function) {
    case Function::copy:
      return visit(std::integral_constant<Function, Function::copy>{});
    case Function::add:
      return visit(std::integral_constant<Function, Function::add>{});
    case Function::subtract:
      return visit(std::integral_constant<Function, Function::subtract>{});
    case Function::multiply:
      return visit(std::integral_constant<Function, Function::multiply>{});
    case Function::divide:
      return visit(std::integral_constant<Function, Function::divide>{});
    case Function::affine:
      return visit(std::integral_constant<Function, Function::affine>{});
    case Function::relu:
      return visit(std::integral_constant<Function, Function::relu>{});
    case Function::silu:
      return visit(std::integral_constant<Function, Function::silu>{});
    case Function::exp:
      return visit(std::integral_constant<Function, Function::exp>{});
    case Function::square:
      return visit(std::integral_constant<Function, Function::square>{});
    case Function::rsqrt:
      return visit(std::integral_constant<Function, Function::rsqrt>{});
    case Function::positive:
      return visit(std::integral_constant<Function, Function::positive>{});
  }
}

template <Function kFunction>
void pointwise_floats(const steps::Pointwise& step, const float* x, const float* y, float* out) {
  const auto f = [&](float a, float b) {
    return steps::apply(kFunction, a, b, step.factor, step.offset);
  };
  const std::int64_t n = run_length(step.points);
  const std::int64_t x_stride = run_stride(step.points, step.x);
  const std::int64_t y_stride = run_stride(step.points, step.y);
  const std::int64_t out_stride = run_stride(step.points, step.out);
  for_each_run<3>(step.points, {&step.x, &step.y, &step.out}, [&](const auto& offsets) {
    const float* a = x + offsets[0];
    const float* b = y + offsets[1];
    float* to = out + offsets[2];
    if (x_stride == 1 && out_stride == 1 && y_stride == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
    } else if (x_stride == 1 && out_stride == 1 && y_stride == 0) {
      const float constant = *b;
      for (std::int64_t i = 0; i < n; ++i) to[i] = f(a[i], constant);
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        to[i * out_stride] = f(a[i * x_stride], b[i * y_stride]);
      }
    }
  });
}

// Joins n elements that stand side by side, in as many lanes as vector registers have.
template <bool kMaximum>
float join_run(const float* x, std::int64_t n, float first) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(steps::neutral(kMaximum));
  std::int64_t i = 0;
  for (; i + std::int64_t{kLanes} <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = steps::combine(kMaximum, lanes[lane], x[i + static_cast<std::int64_t>(lane)]);
    }
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      lanes[lane] = steps::combine(kMaximum, lanes[lane], lanes[lane + half]);
    }
  }
  float result = steps::combine(kMaximum, first, lanes[0]);
  for (; i < n; ++i) result = steps::combine(kMaximum, result, x[i]);
  return result;
}

// The reduced points stand side by side: one kept point after the other.
template <bool kMaximum>
void reduce_rows(const steps::Reduce& step, const float* x, float* out) {
  const int n_kept_axes = step.points.axes - step.reduced_axes;
  const Points reduced = steps::reduced_points(step);
  Access within;  // of x, over the reduced axes
  std::copy(step.x.strides + n_kept_axes, step.x.strides + step.points.axes, within.strides);
  const std::int64_t n = run_length(reduced);
  for_each_point(steps::kept_points(step), [&](std::int64_t kept) {
    std::int64_t first = step.x.offset;
    steps::for_each_axis(steps::kept_points(step), kept, [&](int axis, std::int64_t index) {
      first += index * step.x.strides[axis];
    });
    float result = steps::neutral(kMaximum);
    for_each_run<1>(reduced, {&within}, [&](const auto& offsets) {
      result = join_run<kMaximum>(x + first + offsets[0], n, result);
    });
    steps::store_reduced(step, out, kept, result);
  });
}

// The kept points stand side by side: row upon row of them.
template <bool kMaximum>
void reduce_columns(const steps::Reduce& step, const float* x, float* out) {
  const int n_kept_axes = step.points.axes - step.reduced_axes;
  const Points kept = steps::kept_points(step);
  const Points reduced = steps::reduced_points(step);
  Access within;
  std::copy(step.x.strides + n_kept_axes, step.x.strides + step.points.axes, within.strides);
  const std::int64_t n = run_length(kept);
  for_each_run<2>(kept, {&step.x, &step.out}, [&](const auto& offsets) {
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t size = std::min(kBlock, n - begin);
      float* to = out + offsets[1] + begin;
      std::fill(to, to + size, steps::neutral(kMaximum));
      const float* from = x + offsets[0] + begin;
      for_each_point(reduced, [&](std::int64_t point) {
        std::int64_t at = 0;
        steps::for_each_axis(reduced, point, [&](int axis, std::int64_t index) {
          at += index * within.strides[axis];
        });
        for (std::int64_t i = 0; i < size; ++i) {
          to[i] = steps::combine(kMaximum, to[i], from[at + i]);
        }
      });
    }
  });
}

template <bool kMaximum>
void join_floats(const steps::Join& step, const Buffers& buffers) {
  const std::int64_t n = run_length(step.points);
  // The offsets of the operands follow from those of one pass each, block by block.
  for_each_run<1>(
      step.points, {&step.out}, [&, run = std::int64_t{0}](const auto& offsets) mutable {
        for (std::int64_t begin = 0; begin < n; begin += kBlock) {
          const std::int64_t size = std::min(kBlock, n - begin);
          float* to = float_out(buffers, step.out) + offsets[0] + begin;
          for (std::size_t k = 0; k < step.operands.size(); ++k) {
            const Access& operand = step.operands[k];
            std::int64_t at = operand.offset + begin;
            steps::for_each_axis(step.points, run * n, [&](int axis, std::int64_t index) {
              at += index * operand.strides[axis];
            });
            const float* from = floats(buffers, operand) + at;
            if (k == 0) {
              if (from != to) std::copy(from, from + size, to);
            } else {
              for (std::int64_t i = 0; i < size; ++i) {
                to[i] = steps::combine(kMaximum, to[i], from[i]);
              }
            }
          }
        }
        ++run;
      });
}

}  // namespace

void run_step(const steps::Pointwise& step, const Buffers& buffers) {
  const bool has_y = steps::takes_two(step.function);
  if (is_float(step.x) && is_float(step.out) && (!has_y || is_float(step.y))) {
    const float* x = floats(buffers, step.x);
    // A function of one operand reads x twice, at its first element.
    const float* y = has_y ? floats(buffers, step.y) : x;
    with_constant(step.function, [&](auto function) {
      pointwise_floats<function.value>(step, x, y, float_out(buffers, step.out));
    });
    return;
  }
  for_each_point(step.points, [&](std::int64_t point) {
    steps::pointwise_at(step, buffers.of(step.x), has_y ? buffers.of(step.y) : nullptr,
                        buffers.out(step.out), point);
  });
}

void run_step(const steps::Join& step, const Buffers& buffers) {
  const auto runs_along = [&](const Access& access) {
    return is_float(access) &&
           (run_stride(step.points, access) == 1 || run_length(step.points) == 1);
  };
  if (runs_along(step.out) && std::all_of(step.operands.begin(), step.operands.end(), runs_along)) {
    step.maximum ? join_floats<true>(step, buffers) : join_floats<false>(step, buffers);
    return;
  }
  std::vector<const void*> sources;
  for (const Access& operand : step.operands) sources.push_back(buffers.of(operand));
  for_each_point(step.points, [&](std::int64_t point) {
    steps::join_at(step.maximum, step.points, step.operands.data(), sources.data(),
                   static_cast<int>(sources.size()), step.out, buffers.out(step.out), point);
  });
}

void run_step(const steps::Reduce& step, const Buffers& buffers) {
  const int n_kept_axes = step.points.axes - step.reduced_axes;
  const bool is_simple = is_float(step.x) && is_float(step.out) && !step.has_y &&
                         step.reduced_axes > 0 && steps::n_points(step.points) > 0;
  if (is_simple && step.x.strides[step.points.axes - 1] == 1) {
    const float* x = floats(buffers, step.x);
    float* out = float_out(buffers, step.out);
    step.maximum ? reduce_rows<true>(step, x, out) : reduce_rows<false>(step, x, out);
  } else if (is_simple && n_kept_axes > 0 && step.x.strides[n_kept_axes - 1] == 1 &&
             step.out.strides[n_kept_axes - 1] == 1) {
    const float* x = floats(buffers, step.x);
    float* out = float_out(buffers, step.out);
    step.maximum ? reduce_columns<true>(step, x, out) : reduce_columns<false>(step, x, out);
  } else {
    for_each_point(steps::kept_points(step), [&](std::int64_t kept) {
      steps::store_reduced(
          step, buffers.out(step.out), kept,
          steps::reduce_part(step, buffers.of(step.x), step.has_y ? buffers.of(step.y) : nullptr,
                             kept, 0, 1));
    });
  }
}

void run_step(const steps::Rotate& step, const Buffers& buffers) {
  if (!is_float(step.x) || !is_float(step.y) || !is_float(step.out)) {
    for_each_point(step.points, [&](std::int64_t point) {
      steps::rotate_at(step, buffers.of(step.x), buffers.of(step.y), buffers.out(step.out), point);
    });
    return;
  }
  const std::int64_t n = run_length(step.points);
  const std::int64_t x_stride = run_stride(step.points, step.x);
  const std::int64_t y_stride = run_stride(step.points, step.y);
  const std::int64_t out_stride = run_stride(step.points, step.out);
  for_each_run<3>(step.points, {&step.x, &step.y, &step.out}, [&](const auto& offsets) {
    const float* x = floats(buffers, step.x) + offsets[0];
    const float* y = floats(buffers, step.y) + offsets[1];
    float* out = float_out(buffers, step.out) + offsets[2];
    for (std::int64_t i = 0; i < n; ++i) {
      const float x_real = x[i * x_stride];
      const float x_imaginary = x[i * x_stride + step.x_plane];
      const float y_real = y[i * y_stride];
      const float y_imaginary = y[i * y_stride + step.y_plane];
      out[i * out_stride] = x_real * y_real - x_imaginary * y_imaginary;
      out[i * out_stride + step.out_plane] = x_real * y_imaginary + x_imaginary * y_real;
    }
  });
}

void run_step(const steps::Route& step, const Buffers& buffers) {
  for (std::int64_t point = 0; point < step.groups * step.experts; ++point) {
    steps::route_at(step, buffers.of(step.x), buffers.out(step.out), point);
  }
}

void run_step(const steps::Causal& step, const Buffers& buffers) {
  for_each_point(step.points,
                 [&](std::int64_t point) { steps::causal_at(step, buffers.out(step.out), point); });
}

}  // namespace doppler::cpu
