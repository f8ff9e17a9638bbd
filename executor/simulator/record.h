// From a timeline to the Execution that engines return. Private to executor/.
#pragma once

#include <cstdint>
#include <span>

#include "executor/execution.h"
#include "executor/simulator/model.h"

namespace doppler::simulation {

// `devices` is by position; `peaks` are bytes by device, as MemoryMeter::peaks() gives them.
// O(nodes + edges).
Execution record(const Model& model, std::span<const std::int32_t> devices,
                 const Timeline& timeline, std::span<const double> peaks);

}  // namespace doppler::simulation
