// The small kernels' launches, done by the host's kernels in the order of their stream. Matrix
// products go by the module's own calls of cuBLAS.
#include "executor/cuda/module/kernels.h"

#include <utility>

#include "executor/cpu/step_kernels.h"
#include "executor/cuda/module/check.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace doppler::cuda {
namespace {

template <class Step>
void enqueue_step(const Step& step, const Launch& at) {
  cpu::Buffers buffers;
  for (void* buffer : at.buffers) {
    buffers.read.push_back(buffer);
    buffers.written.push_back(buffer);
  }
  check(stand_in::enqueue(at.stream, [step, buffers] { cpu::run_step(step, buffers); }),
        "launch a kernel");
}

}  // namespace

void launch(const steps::Pointwise& step, const Launch& at) { enqueue_step(step, at); }
void launch(const steps::Join& step, const Launch& at) { enqueue_step(step, at); }
void launch(const steps::Reduce& step, const Launch& at) { enqueue_step(step, at); }
void launch(const steps::Rotate& step, const Launch& at) { enqueue_step(step, at); }
void launch(const steps::Route& step, const Launch& at) { enqueue_step(step, at); }
void launch(const steps::Causal& step, const Launch& at) { enqueue_step(step, at); }

}  // namespace doppler::cuda
