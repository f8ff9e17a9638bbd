// A model of several layers, which share the rotary table and the mask.
#include "datasets/workloads/builtin.h"
#include "datasets/workloads/llama_model.h"

namespace doppler {
namespace {

LlamaOptions options_of(const Parameters& parameters, std::int64_t n_devices) {
  LlamaOptions options{.whole_model = true};
  options.vocabulary = parameters.get<std::int64_t>("vocabulary");
  options.layers = parameters.get<std::int64_t>("layers");
  return llama_options(parameters, n_devices, options);
}

}  // namespace

WorkloadEntry llama_stack_workload() {
  WorkloadEntry entry;
  entry.name = "llama-stack";
  entry.summary = "Llama 7B with several layers";
  entry.source = "Touvron et al., arXiv 2302.13971";
  entry.parameters = llama_parameters(true, true);
  entry.core_sizes = "sequence=256,width=512,heads=8,hidden=1376,vocabulary=4000";
  entry.program = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_program("llama-stack", options_of(parameters, n_devices));
  };
  entry.total_flops = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_flops(options_of(parameters, n_devices));
  };
  return program_workload(std::move(entry));
}

}  // namespace doppler
