// The arithmetic of a rollout: small dense layers on a few rows, without LibTorch.
//
// Results do not depend on the width of the machine's vectors: sums run in the order of the inputs,
// and there are no fused operations.
#pragma once

#include <cstddef>
#include <span>

namespace doppler {

// Columns of weights and of what they give are padded to a multiple of this.
inline constexpr std::size_t kLaneBlock = 16;
constexpr std::size_t padded(std::size_t n) {
  return (n + kLaneBlock - 1) / kLaneBlock * kLaneBlock;
}

// out[r, m] += sum over k of in[r, k] weights[k, m]; in: [n_rows, n_inputs], weights: [n_inputs,
// n_outputs], out: [n_rows, n_outputs]; n_outputs a multiple of kLaneBlock.
void add_product(const float* in, std::size_t n_rows, std::size_t n_inputs, const float* weights,
                 std::size_t n_outputs, float* out);

// x = max(x, slope x) for 0 <= slope <= 1.
void leaky_relu(float* x, std::size_t n, float slope);

// Standardises as standardise() (graph_features.h) rows of `width` numbers that lie anywhere, each
// with its weight, and writes row r to out + r stride. scratch: [2 width]; afterwards its first
// half holds the columns' deviations (without the floor).
void standardise_rows(std::span<const double* const> rows, std::span<const double> weights,
                      std::size_t width, float* out, std::size_t stride, double* scratch);
void standardise_rows(std::span<const double* const> rows, std::span<const double> weights,
                      std::size_t width, double* out, std::size_t stride, double* scratch);
// The other way: adds the gradient by each row to what `gradients` point at, from what was written,
// its gradient (both [n_rows, width]) and the deviations. scratch: [2 width].
void standardise_rows_backward(std::span<double* const> gradients, std::span<const double> weights,
                               std::size_t width, const float* out, const float* out_gradient,
                               const double* deviations, double* scratch);
void standardise_rows_backward(std::span<double* const> gradients, std::span<const double> weights,
                               std::size_t width, const double* out, const double* out_gradient,
                               const double* deviations, double* scratch);

}  // namespace doppler
