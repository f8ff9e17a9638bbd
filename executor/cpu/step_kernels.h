// One host kernel for each kind of step. Private to executor/cpu.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/runtime/steps.h"

namespace doppler::cpu {

// The memory of each buffer of an operation, by its number.
struct Buffers {
  std::vector<const void*> read;
  std::vector<void*> written;  // null for inputs

  [[nodiscard]] const void* of(const steps::Access& access) const {
    return read[static_cast<std::size_t>(access.buffer)];
  }
  [[nodiscard]] void* out(const steps::Access& access) const {
    return written[static_cast<std::size_t>(access.buffer)];
  }
};

void run_step(const steps::Pointwise& step, const Buffers& buffers);
void run_step(const steps::Join& step, const Buffers& buffers);
void run_step(const steps::Reduce& step, const Buffers& buffers);
void run_step(const steps::Multiply& step, const Buffers& buffers);
void run_step(const steps::Rotate& step, const Buffers& buffers);
void run_step(const steps::Route& step, const Buffers& buffers);
void run_step(const steps::Causal& step, const Buffers& buffers);

}  // namespace doppler::cpu
