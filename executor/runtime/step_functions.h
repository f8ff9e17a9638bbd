// What a step does at one point: the arithmetic that the kernels of both engines share. Compiled
// for the host and, by a CUDA compiler, for the GPU. Elements are stored as float32, float16 or
// bfloat16 and computed in float32.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "executor/runtime/steps.h"
#include "graphs/hash.h"

#if defined(__CUDACC__)
#define DOPPLER_HOST_DEVICE __host__ __device__
#else
#define DOPPLER_HOST_DEVICE
#endif

namespace doppler::steps {

DOPPLER_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

DOPPLER_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

DOPPLER_HOST_DEVICE inline float from_bfloat16(std::uint16_t bits) {
  return float_of(static_cast<std::uint32_t>(bits) << 16);
}

// To the nearest, ties to even; what is not a number stays so.
DOPPLER_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
DOPPLER_HOST_DEVICE inline float from_float16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0x1fU) return float_of(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return float_of(sign | ((exponent + 112U) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // subnormal, or zero
  return sign != 0 ? -magnitude : magnitude;
}

// To the nearest, ties to even; 65520 and above become infinity.
DOPPLER_HOST_DEVICE inline std::uint16_t to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {
    half = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // normal: 2^-14 and above
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  } else {
    // Adding 1/2 leaves the fraction in units of 2^-24, rounded, in the low bits.
    half = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

DOPPLER_HOST_DEVICE inline float load(const void* buffer, DType dtype, std::int64_t at) {
  if (dtype == DType::float32) return static_cast<const float*>(buffer)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(buffer)[at];
  return dtype == DType::bfloat16 ? from_bfloat16(bits) : from_float16(bits);
}

DOPPLER_HOST_DEVICE inline void store(void* buffer, DType dtype, std::int64_t at, float value) {
  if (dtype == DType::float32) {
    static_cast<float*>(buffer)[at] = value;
  } else {
    static_cast<std::uint16_t*>(buffer)[at] =
        dtype == DType::bfloat16 ? to_bfloat16(value) : to_float16(value);
  }
}

DOPPLER_HOST_DEVICE inline std::int64_t n_points(const Points& points) {
  std::int64_t n = 1;
  for (int axis = 0; axis < points.axes; ++axis) n *= points.sizes[axis];
  return n;
}

// Splits the number of a point into its index along each axis and calls visit(axis, index).
template <class Visit>
DOPPLER_HOST_DEVICE inline void for_each_axis(const Points& points, std::int64_t point,
                                              Visit visit) {
  // The first axis needs no division: its index is what is left.
  for (int axis = points.axes - 1; axis > 0; --axis) {
    const std::int64_t size = points.sizes[axis];
    std::int64_t rest = 0;
    if (point <= 0xffffffffLL && size <= 0xffffffffLL) {
      rest = static_cast<std::uint32_t>(point) / static_cast<std::uint32_t>(size);
    } else {
      rest = point / size;
    }
    visit(axis, point - rest * size);
    point = rest;
  }
  if (points.axes > 0) visit(0, point);
}

DOPPLER_HOST_DEVICE inline float apply(Function function, float x, float y, float factor,
                                       float offset) {
  switch (function) {
    case Function::copy:
      return x;
    case Function::add:
      return x + y;
    case Function::subtract:
      return x - y;
    case Function::multiply:
      return x * y;
    case Function::divide:
      return x / y;
    case Function::affine:
      return factor * x + offset;
    case Function::relu:
      return x < 0 ? 0.0F : x;
    case Function::silu:
      return x / (1 + expf(-x));
    case Function::exp:
      return expf(x);
    case Function::square:
      return x * x;
    case Function::rsqrt:
      return 1 / sqrtf(x);
    case Function::positive:
      return x > 0 ? 1.0F : 0.0F;
  }
  return 0;
}

DOPPLER_HOST_DEVICE inline bool takes_two(Function function) {
  return function == Function::add || function == Function::subtract ||
         function == Function::multiply || function == Function::divide;
}

DOPPLER_HOST_DEVICE inline float combine(bool maximum, float a, float b) {
  if (maximum) return a < b ? b : a;
  return a + b;
}

// What a reduction of no points gives.
DOPPLER_HOST_DEVICE inline float neutral(bool maximum) { return maximum ? -HUGE_VALF : 0.0F; }

// --- each step at one of its points; the buffers are those that its accesses name ---

DOPPLER_HOST_DEVICE inline void pointwise_at(const Pointwise& step, const void* x, const void* y,
                                             void* out, std::int64_t point) {
  std::int64_t x_at = step.x.offset;
  std::int64_t y_at = step.y.offset;
  std::int64_t out_at = step.out.offset;
  for_each_axis(step.points, point, [&](int axis, std::int64_t index) {
    x_at += index * step.x.strides[axis];
    y_at += index * step.y.strides[axis];
    out_at += index * step.out.strides[axis];
  });
  const float y_value = takes_two(step.function) ? load(y, step.y.dtype, y_at) : 0.0F;
  store(out, step.out.dtype, out_at,
        apply(step.function, load(x, step.x.dtype, x_at), y_value, step.factor, step.offset));
}

// The n operands lie in `buffers`.
DOPPLER_HOST_DEVICE inline void join_at(bool maximum, const Points& points, const Access* operands,
                                        const void* const* buffers, int n, const Access& to,
                                        void* out, std::int64_t point) {
  float result = 0;
  for (int k = 0; k < n; ++k) {
    std::int64_t at = operands[k].offset;
    for_each_axis(points, point,
                  [&](int axis, std::int64_t index) { at += index * operands[k].strides[axis]; });
    const float value = load(buffers[k], operands[k].dtype, at);
    result = k == 0 ? value : combine(maximum, result, value);
  }
  std::int64_t out_at = to.offset;
  for_each_axis(points, point,
                [&](int axis, std::int64_t index) { out_at += index * to.strides[axis]; });
  store(out, to.dtype, out_at, result);
}

// The points of a reduction that are kept, and those that it runs over.
DOPPLER_HOST_DEVICE inline Points kept_points(const Reduce& step) {
  Points kept = step.points;
  kept.axes -= step.reduced_axes;
  return kept;
}

DOPPLER_HOST_DEVICE inline Points reduced_points(const Reduce& step) {
  Points reduced;
  reduced.axes = step.reduced_axes;
  const int first = step.points.axes - step.reduced_axes;
  for (int axis = 0; axis < reduced.axes; ++axis) {
    reduced.sizes[axis] = step.points.sizes[first + axis];
  }
  return reduced;
}

// Joins every `stride`-th reduced point from `first` on, for one kept point.
DOPPLER_HOST_DEVICE inline float reduce_part(const Reduce& step, const void* x, const void* y,
                                             std::int64_t kept, std::int64_t first,
                                             std::int64_t stride) {
  const Points reduced = reduced_points(step);
  const int n_kept_axes = step.points.axes - step.reduced_axes;
  std::int64_t x_first = step.x.offset;
  std::int64_t y_first = step.y.offset;
  for_each_axis(kept_points(step), kept, [&](int axis, std::int64_t index) {
    x_first += index * step.x.strides[axis];
    y_first += index * step.y.strides[axis];
  });
  float result = neutral(step.maximum);
  const std::int64_t n = n_points(reduced);
  for (std::int64_t point = first; point < n; point += stride) {
    std::int64_t x_at = x_first;
    std::int64_t y_at = y_first;
    for_each_axis(reduced, point, [&](int axis, std::int64_t index) {
      x_at += index * step.x.strides[n_kept_axes + axis];
      y_at += index * step.y.strides[n_kept_axes + axis];
    });
    float value = load(x, step.x.dtype, x_at);
    if (step.has_y) value *= load(y, step.y.dtype, y_at);
    result = combine(step.maximum, result, value);
  }
  return result;
}

DOPPLER_HOST_DEVICE inline void store_reduced(const Reduce& step, void* out, std::int64_t kept,
                                              float value) {
  std::int64_t out_at = step.out.offset;
  for_each_axis(kept_points(step), kept,
                [&](int axis, std::int64_t index) { out_at += index * step.out.strides[axis]; });
  store(out, step.out.dtype, out_at, value);
}

DOPPLER_HOST_DEVICE inline void rotate_at(const Rotate& step, const void* x, const void* y,
                                          void* out, std::int64_t point) {
  std::int64_t x_at = step.x.offset;
  std::int64_t y_at = step.y.offset;
  std::int64_t out_at = step.out.offset;
  for_each_axis(step.points, point, [&](int axis, std::int64_t index) {
    x_at += index * step.x.strides[axis];
    y_at += index * step.y.strides[axis];
    out_at += index * step.out.strides[axis];
  });
  const float x_real = load(x, step.x.dtype, x_at);
  const float x_imaginary = load(x, step.x.dtype, x_at + step.x_plane);
  const float y_real = load(y, step.y.dtype, y_at);
  const float y_imaginary = load(y, step.y.dtype, y_at + step.y_plane);
  store(out, step.out.dtype, out_at, x_real * y_real - x_imaginary * y_imaginary);
  store(out, step.out.dtype, out_at + step.out_plane, x_real * y_imaginary + x_imaginary * y_real);
}

DOPPLER_HOST_DEVICE inline void causal_at(const Causal& step, void* out, std::int64_t point) {
  std::int64_t query = 0;
  std::int64_t key = 0;
  for_each_axis(step.points, point,
                [&](int axis, std::int64_t index) { (axis == 0 ? query : key) = index; });
  const bool is_past = step.first_key + key <= step.first_query + query;
  store(out, step.out.dtype,
        step.out.offset + query * step.out.strides[0] + key * step.out.strides[1],
        is_past ? 0.0F : -HUGE_VALF);
}

// All elements of one group and expert; `point` = group * experts + expert.
DOPPLER_HOST_DEVICE inline void route_at(const Route& step, const void* x, void* out,
                                         std::int64_t point) {
  const std::int64_t group = point / step.experts;
  const std::int64_t expert = point % step.experts;
  const auto share = [&](std::int64_t token, std::int64_t of) {
    return load(x, step.x.dtype,
                step.x.offset + group * step.x.strides[0] + token * step.x.strides[1] +
                    of * step.x.strides[2]);
  };
  const auto put = [&](std::int64_t token, std::int64_t slot, float value) {
    store(out, step.out.dtype,
          step.out.offset + group * step.out.strides[0] + token * step.out.strides[1] +
              expert * step.out.strides[2] + slot * step.out.strides[3],
          value);
  };
  // How many experts come before this one for the token.
  const auto rank_of = [&](std::int64_t token) {
    const float own = share(token, expert);
    std::int64_t rank = 0;
    for (std::int64_t other = 0; other < step.experts; ++other) {
      const float value = share(token, other);
      if (value > own || (value == own && other < expert)) ++rank;
    }
    return rank;
  };
  for (std::int64_t token = 0; token < step.tokens; ++token) {
    for (std::int64_t slot = 0; slot < step.slots; ++slot) put(token, slot, 0.0F);
  }
  std::int64_t n_given = 0;
  for (std::int64_t rank = 0; rank < step.top_k; ++rank) {
    for (std::int64_t token = 0; token < step.tokens && n_given < step.slots; ++token) {
      if (rank_of(token) == rank) put(token, n_given++, share(token, expert));
    }
  }
}

// Element `at` of a graph input's whole tensor: uniform in [-scale, scale), a function of key and
// place alone.
DOPPLER_HOST_DEVICE inline float input_value(std::uint64_t key, std::int64_t at, float scale) {
  const std::uint64_t bits = mix64(key + 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(at));
  return (static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F) * scale;
}

}  // namespace doppler::steps

#undef DOPPLER_HOST_DEVICE
