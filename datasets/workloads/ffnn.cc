// A feed-forward network: softmax(relu(X W1) W2).
#include "datasets/programs/operations.h"
#include "datasets/workloads/builtin.h"

namespace doppler {
namespace {

// Both products have s^2 blocks: s parts of the batch, s of the hidden dimension. The softmax,
// which needs whole rows, has s^2 parts of the batch.
Program ffnn_program(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t s = shards_of(parameters, n_devices);
  Program program("ffnn");
  const DimensionId batch = program.dimension("batch", parameters.get<std::int64_t>("batch"));
  const DimensionId in = program.dimension("in", parameters.get<std::int64_t>("inputs"));
  const DimensionId hidden = program.dimension("hidden", parameters.get<std::int64_t>("hidden"));
  const DimensionId out = program.dimension("out", parameters.get<std::int64_t>("outputs"));
  const Cut cut{{batch, s}, {hidden, s}};
  const ValueId x = program.input("X", {batch, in});
  const ValueId w1 = program.input("W1", {in, hidden});
  const ValueId w2 = program.input("W2", {hidden, out});
  const ValueId first = einsum(program, "XW1", x, w1, {batch, hidden}, cut);
  const ValueId active = unary(program, "active", "relu", first, cut);
  const ValueId second = einsum(program, "scores", active, w2, {batch, out}, cut);
  softmax(program, "result", second, out, {{batch, s * s}});
  return program;
}

// The products, one FLOP an element for relu, five for the softmax, and s parts of the second
// product to aggregate.
double ffnn_flops(const Parameters& parameters, std::int64_t n_devices) {
  const auto size = [&](const char* name) {
    return static_cast<double>(parameters.get<std::int64_t>(name));
  };
  const auto s = static_cast<double>(shards_of(parameters, n_devices));
  return size("batch") * (2 * size("hidden") * (size("inputs") + size("outputs")) + size("hidden") +
                          size("outputs") * (5 + s - 1));
}

}  // namespace

WorkloadEntry ffnn_workload() {
  WorkloadEntry entry;
  entry.name = "ffnn";
  entry.summary = "feed-forward network softmax(relu(X W1) W2)";
  entry.source = "DOPPLER paper, workload FFNN; 4 shards give its published graph";
  entry.parameters = {size_parameter("batch", "rows of X", 1 << 15, 1 << 28),
                      size_parameter("inputs", "columns of X", 1 << 5, 1 << 28),
                      size_parameter("hidden", "columns of W1", 1 << 16, 1 << 28),
                      size_parameter("outputs", "columns of W2", 1 << 5, 1 << 28),
                      shards_parameter("s: each product has s^2 blocks; 0: one a device")};
  entry.core_sizes = "batch=4096,hidden=8192";
  entry.program = ffnn_program;
  entry.total_flops = ffnn_flops;
  return program_workload(std::move(entry));
}

}  // namespace doppler
