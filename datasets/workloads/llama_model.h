// The transformer of Llama (Touvron et al., arXiv 2302.13971), prefill of one sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/workloads.h"

namespace doppler {

// Sizes default to Llama 7B.
struct LlamaOptions {
  std::int64_t sequence = 4096;  // tokens
  std::int64_t width = 4096;     // a multiple of 2 heads
  std::int64_t heads = 32;
  std::int64_t hidden = 11008;      // of the gated feed-forward network
  std::int64_t vocabulary = 32000;  // read only by whole models
  std::int64_t layers = 1;
  std::int64_t shards = 1;
  DType dtype = DType::float32;  // norms, rotary and softmax are computed in float32
  // With rotary table selected by position, causal mask, final norm, and the vocabulary's scores
  // for the last token; otherwise the transformer blocks alone, not masked.
  bool whole_model = false;
};

// Into how many parts s = sequence * heads * keys shards cut each dimension: keys = 1 below 8
// shards, generally the largest divisor of s up to its cube root; sequence <= heads as equal as can
// be. Width and hidden dimension are cut by products of these.
struct LlamaParts {
  std::int64_t sequence = 1;
  std::int64_t heads = 1;
  std::int64_t keys = 1;
};
LlamaParts llama_parts(std::int64_t shards);

// Throws UsageError if the width is not a multiple of 2 heads, and as Program does.
Program llama_program(const std::string& name, const LlamaOptions& options);
double llama_flops(const LlamaOptions& options);

// The parameters of llama workloads, in the order of LlamaOptions, and their values.
std::vector<ParameterSpec> llama_parameters(bool with_vocabulary, bool with_layers);
LlamaOptions llama_options(const Parameters& parameters, std::int64_t n_devices,
                           LlamaOptions options);

}  // namespace doppler
