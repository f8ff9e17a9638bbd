// The host's kernels: matrix products by Eigen, the rest by loops.
#pragma once

#include <cstddef>
#include <span>

#include "executor/runtime/operation.h"

namespace doppler::cpu {

// Runs the steps of an operation. `inputs` are its first NodeOperation::n_inputs() buffers, dense
// and row-major in the dtypes that NodeOperation::buffers says, aligned to their elements; `output`
// is the next one, and is written completely. Scratch is allocated. An empty operation returns at
// once, whatever the spans are. Safe in several threads at once on different outputs; one thread
// does the work. Throws std::invalid_argument for spans of the wrong number or size, and RunError
// that names the node if there is no memory for the scratch.
void run_operation(const NodeOperation& operation,
                   std::span<const std::span<const std::byte>> inputs, std::span<std::byte> output);

}  // namespace doppler::cpu
