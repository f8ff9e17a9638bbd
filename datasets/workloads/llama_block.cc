// One transformer block: RMSNorm, attention, residual, RMSNorm, gated feed-forward network,
// residual.
#include "datasets/workloads/builtin.h"
#include "datasets/workloads/llama_model.h"

namespace doppler {
namespace {

LlamaOptions options_of(const Parameters& parameters, std::int64_t n_devices) {
  return llama_options(parameters, n_devices, {});
}

}  // namespace

WorkloadEntry llama_block_workload() {
  WorkloadEntry entry;
  entry.name = "llama-block";
  entry.summary = "transformer block of Llama 7B: attention and gated feed-forward network";
  entry.source = "DOPPLER paper, workload Llama-Block; Touvron et al., arXiv 2302.13971";
  entry.parameters = llama_parameters(false, false);
  entry.core_sizes = "sequence=512,width=512,heads=8,hidden=1376";
  entry.program = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_program("llama-block", options_of(parameters, n_devices));
  };
  entry.total_flops = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_flops(options_of(parameters, n_devices));
  };
  return program_workload(std::move(entry));
}

}  // namespace doppler
