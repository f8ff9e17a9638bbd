#include "agents/learned/dense_rows.h"

#include <algorithm>
#include <cmath>

#include "agents/learned/graph_features.h"

// One version for each width of vectors, chosen when the program starts.
#if defined(__x86_64__) && defined(__linux__)
#define DOPPLER_FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DOPPLER_FOR_EACH_VECTOR_WIDTH
#endif

namespace doppler {

namespace {

using Lanes
    [[gnu::vector_size(sizeof(float) * kLaneBlock), gnu::aligned(sizeof(float)), gnu::may_alias]] =
        float;

constexpr std::size_t kRowBlock = 4;

double sum_of(std::span<const double> weights) {
  double total = 0;
  for (double weight : weights) total += weight;
  return total;
}

template <class Number>
[[gnu::always_inline]] inline void standardise_into(std::span<const double* const> rows,
                                                    std::span<const double> weights,
                                                    std::size_t width, Number* out,
                                                    std::size_t stride, double* scratch) {
  double* const deviation = scratch;
  double* const mean = scratch + width;
  const double total = sum_of(weights);
  std::fill_n(scratch, 2 * width, 0.0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = rows[r];
    const double weight = weights[r];
    for (std::size_t j = 0; j < width; ++j) mean[j] += weight * row[j];
  }
  for (std::size_t j = 0; j < width; ++j) mean[j] /= total;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = rows[r];
    const double weight = weights[r];
    for (std::size_t j = 0; j < width; ++j) {
      deviation[j] += weight * (row[j] - mean[j]) * (row[j] - mean[j]);
    }
  }
  for (std::size_t j = 0; j < width; ++j) deviation[j] = std::sqrt(deviation[j] / total);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double* const row = rows[r];
    Number* const to = out + r * stride;
    for (std::size_t j = 0; j < width; ++j) {
      to[j] = static_cast<Number>((row[j] - mean[j]) / (deviation[j] + kDeviationFloor));
    }
  }
}

// With y the result, g its gradient, s the deviation and W the sum of the weights:
//   (g_r - w_r / W sum of g) / (s + floor) - w_r / W y_r (sum of g y) / s
template <class Number>
[[gnu::always_inline]] inline void add_gradients(std::span<double* const> gradients,
                                                 std::span<const double> weights, std::size_t width,
                                                 const Number* out, const Number* out_gradient,
                                                 const double* deviations, double* scratch) {
  double* const sum = scratch;
  double* const product = scratch + width;
  const double total = sum_of(weights);
  std::fill_n(scratch, 2 * width, 0.0);
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    const Number* const y = out + r * width;
    const Number* const g = out_gradient + r * width;
    for (std::size_t j = 0; j < width; ++j) sum[j] += static_cast<double>(g[j]);
    for (std::size_t j = 0; j < width; ++j) {
      product[j] += static_cast<double>(g[j]) * static_cast<double>(y[j]);
    }
  }
  for (std::size_t j = 0; j < width; ++j) {
    // Without any deviation every y is 0, and stays.
    product[j] = deviations[j] > 0 ? product[j] / deviations[j] : 0;
  }
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    const Number* const y = out + r * width;
    const Number* const g = out_gradient + r * width;
    double* const to = gradients[r];
    const double share = weights[r] / total;
    for (std::size_t j = 0; j < width; ++j) {
      to[j] += (static_cast<double>(g[j]) - share * sum[j]) / (deviations[j] + kDeviationFloor) -
               share * static_cast<double>(y[j]) * product[j];
    }
  }
}

}  // namespace

DOPPLER_FOR_EACH_VECTOR_WIDTH
void add_product(const float* in, std::size_t n_rows, std::size_t n_inputs, const float* weights,
                 std::size_t n_outputs, float* out) {
  std::size_t r = 0;
  for (; r + kRowBlock <= n_rows; r += kRowBlock) {
    const float* const x = in + r * n_inputs;
    for (std::size_t m = 0; m < n_outputs; m += kLaneBlock) {
      Lanes sums[kRowBlock];
      for (std::size_t i = 0; i < kRowBlock; ++i) {
        sums[i] = *reinterpret_cast<const Lanes*>(out + (r + i) * n_outputs + m);
      }
      for (std::size_t k = 0; k < n_inputs; ++k) {
        const Lanes weight = *reinterpret_cast<const Lanes*>(weights + k * n_outputs + m);
        for (std::size_t i = 0; i < kRowBlock; ++i) sums[i] += x[i * n_inputs + k] * weight;
      }
      for (std::size_t i = 0; i < kRowBlock; ++i) {
        *reinterpret_cast<Lanes*>(out + (r + i) * n_outputs + m) = sums[i];
      }
    }
  }
  for (; r < n_rows; ++r) {
    for (std::size_t m = 0; m < n_outputs; m += kLaneBlock) {
      Lanes sum = *reinterpret_cast<const Lanes*>(out + r * n_outputs + m);
      for (std::size_t k = 0; k < n_inputs; ++k) {
        sum += in[r * n_inputs + k] * *reinterpret_cast<const Lanes*>(weights + k * n_outputs + m);
      }
      *reinterpret_cast<Lanes*>(out + r * n_outputs + m) = sum;
    }
  }
}

DOPPLER_FOR_EACH_VECTOR_WIDTH
void leaky_relu(float* x, std::size_t n, float slope) {
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : slope * x[i];
}

DOPPLER_FOR_EACH_VECTOR_WIDTH
void standardise_rows(std::span<const double* const> rows, std::span<const double> weights,
                      std::size_t width, float* out, std::size_t stride, double* scratch) {
  standardise_into(rows, weights, width, out, stride, scratch);
}

DOPPLER_FOR_EACH_VECTOR_WIDTH
void standardise_rows(std::span<const double* const> rows, std::span<const double> weights,
                      std::size_t width, double* out, std::size_t stride, double* scratch) {
  standardise_into(rows, weights, width, out, stride, scratch);
}

DOPPLER_FOR_EACH_VECTOR_WIDTH
void standardise_rows_backward(std::span<double* const> gradients, std::span<const double> weights,
                               std::size_t width, const float* out, const float* out_gradient,
                               const double* deviations, double* scratch) {
  add_gradients(gradients, weights, width, out, out_gradient, deviations, scratch);
}

DOPPLER_FOR_EACH_VECTOR_WIDTH
void standardise_rows_backward(std::span<double* const> gradients, std::span<const double> weights,
                               std::size_t width, const double* out, const double* out_gradient,
                               const double* deviations, double* scratch) {
  add_gradients(gradients, weights, width, out, out_gradient, deviations, scratch);
}

}  // namespace doppler
