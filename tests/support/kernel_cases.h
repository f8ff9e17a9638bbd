// Single nodes of every kind, for kernels of one engine against those of another.
#pragma once

#include <vector>

#include "graphs/graph.h"
#include "tests/support/graph_values.h"

namespace doppler::testing {

struct KernelCase {
  Graph graph;                // one node (one_node.h); no two cases are equal
  std::vector<Bytes> inputs;  // numbers in [-1, 1)
  // max |a - b| / max |b| that two engines may differ by: sums in another order, rounding.
  double tolerance = 1e-6;
};

std::vector<KernelCase> kernel_cases();

}  // namespace doppler::testing
