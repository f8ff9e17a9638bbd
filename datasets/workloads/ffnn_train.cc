// One training step of a feed-forward network: softmax(relu(X W1) W2) with cross entropy, forward
// and backward, to the gradients of both weights.
#include "datasets/programs/operations.h"
#include "datasets/workloads/builtin.h"

namespace doppler {
namespace {

// With R = relu(X W1), P = softmax(R W2) and one target distribution a row of T, the gradient of
// - sum of T log P is P - T with respect to the scores, R^T (P - T) with respect to W2, and
// X^T ((P - T) W2^T where X W1 > 0) with respect to W1. Every product has s^2 blocks.
Program ffnn_train_program(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t s = shards_of(parameters, n_devices);
  Program program("ffnn-train");
  const DimensionId batch = program.dimension("batch", parameters.get<std::int64_t>("batch"));
  const DimensionId in = program.dimension("in", parameters.get<std::int64_t>("inputs"));
  const DimensionId hidden = program.dimension("hidden", parameters.get<std::int64_t>("hidden"));
  const DimensionId out = program.dimension("out", parameters.get<std::int64_t>("outputs"));
  const Cut cut{{batch, s}, {hidden, s}};
  const Cut rows{{batch, s * s}};
  const ValueId x = program.input("X", {batch, in});
  const ValueId w1 = program.input("W1", {in, hidden});
  const ValueId w2 = program.input("W2", {hidden, out});
  const ValueId first = einsum(program, "XW1", x, w1, {batch, hidden}, cut);
  const ValueId active = unary(program, "active", "relu", first, cut);
  const ValueId scores = einsum(program, "scores", active, w2, {batch, out}, cut);
  const ValueId shares = softmax(program, "shares", scores, out, rows);
  const ValueId target = program.input("target", {batch, out});
  const ValueId error = binary(program, "error", "subtract", shares, target, rows);
  einsum(program, "W2_gradient", active, error, {hidden, out}, cut);
  const ValueId back = einsum(program, "active_gradient", error, w2, {batch, hidden}, cut);
  const ValueId positive = unary(program, "positive", "positive", first, cut);
  const ValueId masked = binary(program, "XW1_gradient", "multiply", back, positive, cut);
  einsum(program, "W1_gradient", x, masked, {in, hidden}, cut);
  return program;
}

// Two products forward and three backward; relu, its derivative and its product; softmax and error;
// s parts of the scores and of both gradients to aggregate.
double ffnn_train_flops(const Parameters& parameters, std::int64_t n_devices) {
  const auto size = [&](const char* name) {
    return static_cast<double>(parameters.get<std::int64_t>(name));
  };
  const auto s = static_cast<double>(shards_of(parameters, n_devices));
  const double batch = size("batch");
  const double in = size("inputs");
  const double hidden = size("hidden");
  const double out = size("outputs");
  return 2 * batch * hidden * (2 * in + 3 * out) + 3 * batch * hidden + 6 * batch * out +
         (s - 1) * (batch * out + hidden * out + in * hidden);
}

}  // namespace

WorkloadEntry ffnn_train_workload() {
  WorkloadEntry entry;
  entry.name = "ffnn-train";
  entry.summary = "training step of ffnn: forward, backward, gradients of both weights";
  entry.source = "own; sizes of the DOPPLER paper's FFNN";
  entry.parameters = {size_parameter("batch", "rows of X", 1 << 15, 1 << 28),
                      size_parameter("inputs", "columns of X", 1 << 5, 1 << 28),
                      size_parameter("hidden", "columns of W1", 1 << 16, 1 << 28),
                      size_parameter("outputs", "columns of W2", 1 << 5, 1 << 28),
                      shards_parameter("s: each product has s^2 blocks; 0: one a device")};
  entry.core_sizes = "batch=2048,hidden=8192";
  entry.program = ffnn_train_program;
  entry.total_flops = ffnn_train_flops;
  return program_workload(std::move(entry));
}

}  // namespace doppler
