// A model of one layer: the block, with the steps before and after it.
#include "datasets/workloads/builtin.h"
#include "datasets/workloads/llama_model.h"

namespace doppler {
namespace {

LlamaOptions options_of(const Parameters& parameters, std::int64_t n_devices) {
  LlamaOptions options{.whole_model = true};
  options.vocabulary = parameters.get<std::int64_t>("vocabulary");
  return llama_options(parameters, n_devices, options);
}

}  // namespace

WorkloadEntry llama_layer_workload() {
  WorkloadEntry entry;
  entry.name = "llama-layer";
  entry.summary = "Llama 7B with one layer: block, rotary select, mask, final norm, last token";
  entry.source = "DOPPLER paper, workload Llama-Layer; 4 and 8 shards give its published graphs";
  entry.parameters = llama_parameters(true, false);
  entry.core_sizes = "sequence=512,width=512,heads=8,hidden=1376,vocabulary=4000";
  entry.program = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_program("llama-layer", options_of(parameters, n_devices));
  };
  entry.total_flops = [](const Parameters& parameters, std::int64_t n_devices) {
    return llama_flops(options_of(parameters, n_devices));
  };
  return program_workload(std::move(entry));
}

}  // namespace doppler
