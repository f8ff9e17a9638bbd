// Says where two executions differ.
#pragma once

#include <string>

#include "executor/execution.h"

namespace doppler::testing {

// The first difference in words; empty if there is none. Times, slots, routes and the order of
// transfers must be equal to the last bit; sums (busy seconds, bytes, peak memory) may differ by
// 1e-9 relative, as their order of addition is free.
std::string difference(const Execution& a, const Execution& b);

}  // namespace doppler::testing
