// A chain of matrix multiplications: (A B) C + D E, all n x n.
#include "datasets/programs/operations.h"
#include "datasets/workloads/builtin.h"

namespace doppler {
namespace {

// s = a b shards (a <= b as equal as can be). Every product has s^2 blocks: A B is cut a x b with s
// parts of its contraction, (A B) C and D E a x s with b parts, so that the blocks of A B are those
// that (A B) C reads. The sum has a x s blocks.
Program chainmm_program(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t s = shards_of(parameters, n_devices);
  const auto [a, b] = balanced_factors(s);
  const auto n = parameters.get<std::int64_t>("n");
  Program program("chainmm");
  const DimensionId i = program.dimension("i", n);
  const DimensionId j = program.dimension("j", n);
  const DimensionId k = program.dimension("k", n);
  const DimensionId l = program.dimension("l", n);
  const ValueId left = program.input("A", {i, k});
  const ValueId right = program.input("B", {k, j});
  const ValueId last = program.input("C", {j, l});
  const ValueId other_left = program.input("D", {i, k});
  const ValueId other_right = program.input("E", {k, l});
  const ValueId ab = einsum(program, "AB", left, right, {i, j}, {{i, a}, {j, b}, {k, s}});
  const ValueId abc = einsum(program, "ABC", ab, last, {i, l}, {{i, a}, {l, s}, {j, b}});
  const ValueId de =
      einsum(program, "DE", other_left, other_right, {i, l}, {{i, a}, {l, s}, {k, b}});
  binary(program, "result", "add", abc, de, {{i, a}, {l, s}});
  return program;
}

// Three products of 2 n^3, the sum of two matrices, and the aggregations: s parts of A B, b parts
// of the other two.
double chainmm_flops(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t s = shards_of(parameters, n_devices);
  const auto n = static_cast<double>(parameters.get<std::int64_t>("n"));
  const auto parts = static_cast<double>(s);
  const auto b = static_cast<double>(balanced_factors(s).larger);
  return 6 * n * n * n + n * n * (1 + (parts - 1) + 2 * (b - 1));
}

}  // namespace

WorkloadEntry chainmm_workload() {
  WorkloadEntry entry;
  entry.name = "chainmm";
  entry.summary = "matrix chain (A B) C + D E";
  entry.source = "DOPPLER paper, workload ChainMM; 4 shards give its published graph";
  entry.parameters = {size_parameter("n", "rows and columns of each matrix", 10000, 1 << 24),
                      shards_parameter("s: each product has s^2 blocks; 0: one a device")};
  entry.core_sizes = "n=1024";
  entry.program = chainmm_program;
  entry.total_flops = chainmm_flops;
  return program_workload(std::move(entry));
}

}  // namespace doppler
