#include "datasets/workloads/llama_model.h"

#include <cmath>
#include <string>

#include "datasets/programs/operations.h"
#include "datasets/workloads/builtin.h"
#include "graphs/error.h"

namespace doppler {
namespace {

// Builds the program; the dimensions are named as in the index expressions of its nodes.
class LlamaBuilder {
 public:
  LlamaBuilder(const std::string& name, const LlamaOptions& options)
      : options_(options), parts_(llama_parts(options.shards)), program_(name) {
    const auto add = [&](const char* dimension, std::int64_t size) {
      return program_.dimension(dimension, size);
    };
    query_ = add("query", options.sequence);
    key_ = add("key", options.sequence);
    width_ = add("width", options.width);
    head_ = add("head", options.heads);
    pair_ = add("pair", options.width / options.heads / 2);
    plane_ = add("plane", 2);
    hidden_ = add("hidden", options.hidden);
  }

  Program build() {
    ValueId x = program_.input("tokens", {query_, width_}, options_.dtype);
    if (options_.whole_model) {
      const DimensionId position = program_.dimension("position", 2 * options_.sequence);
      const ValueId all = program_.input("rotary_table", {plane_, position, pair_}, DType::float32);
      table_ = select(program_, "rotary", all, position, query_, 0, {});
      mask_ = causal_mask(program_, "mask", query_, key_, options_.dtype,
                          {{query_, parts_.sequence}, {key_, parts_.keys}});
    } else {
      table_ = program_.input("rotary_table", {plane_, query_, pair_}, DType::float32);
    }
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      const std::string prefix = options_.layers > 1 ? "layer" + std::to_string(layer) + "." : "";
      x = feed_forward(prefix, attention(prefix, x));
    }
    if (options_.whole_model) head(x);
    return std::move(program_);
  }

 private:
  ValueId weight(const std::string& name, Dimensions dimensions) {
    return program_.input(name, std::move(dimensions), options_.dtype);
  }

  // Queries are cut by position and head; keys and values by head, and by position only where the
  // scores are: every query needs all of them.
  ValueId attention(const std::string& prefix, ValueId x) {
    const auto [a, b, c] = parts_;
    const ValueId norm = rms_norm(program_, prefix + "attention_norm", x,
                                  weight(prefix + "attention_norm_weight", {width_}), width_,
                                  {.squares = {{query_, a}, {width_, b * c}},
                                   .rows = {{query_, a}},
                                   .result = {{query_, a}, {width_, b}}});
    const Dimensions inner{head_, pair_, plane_};
    const auto project = [&](const char* name, DimensionId position, std::int64_t position_parts,
                             std::int64_t width_parts) {
      Dimensions weight_dimensions = inner;
      Dimensions result = inner;
      weight_dimensions.insert(weight_dimensions.begin(), width_);
      result.insert(result.begin(), position);
      const ValueId w = weight(prefix + name + "_weight", weight_dimensions);
      return einsum(program_, prefix + name,
                    {{.value = norm, .labels = {position, width_}}, {w, weight_dimensions}},
                    std::move(result),
                    {{position, position_parts}, {head_, parts_.heads}, {width_, width_parts}});
    };
    const ValueId q = project("Q", query_, a, c);
    const ValueId k = project("K", key_, c, a);
    const ValueId v = project("V", key_, c, a);
    const ValueId rotated_q =
        rotary(program_, prefix + "rotated_Q", q, {table_, {plane_, query_, pair_}}, plane_,
               {{query_, a}, {head_, b}});
    const ValueId rotated_k =
        rotary(program_, prefix + "rotated_K", k, {table_, {plane_, key_, pair_}}, plane_,
               {{key_, c}, {head_, b}});

    const Cut scores_cut{{head_, b}, {query_, a}, {key_, c}};
    const ValueId scores = einsum(program_, prefix + "scores", rotated_q, rotated_k,
                                  {head_, query_, key_}, scores_cut);
    const double scale =
        1 / std::sqrt(static_cast<double>(options_.width) / static_cast<double>(options_.heads));
    ValueId scaled = affine(program_, prefix + "scaled", scores, scale, 0, scores_cut);
    if (options_.whole_model) {
      scaled = binary(program_, prefix + "masked", "add", scaled, mask_, scores_cut);
    }
    const ValueId wide = cast(program_, prefix + "wide", scaled, DType::float32, scores_cut);
    const ValueId shares = softmax(program_, prefix + "shares", wide, key_, scores_cut);
    const ValueId narrow = cast(program_, prefix + "narrow", shares, options_.dtype, scores_cut);
    const ValueId mixed =
        einsum(program_, prefix + "mixed", narrow, v, {query_, head_, pair_, plane_}, scores_cut);
    const ValueId projected =
        einsum(program_, prefix + "projected", mixed,
               weight(prefix + "projection_weight", {head_, pair_, plane_, width_}),
               {query_, width_}, {{query_, a}, {width_, c}, {head_, b}});
    return binary(program_, prefix + "attended", "add", projected, x, {{query_, a}, {width_, c}});
  }

  ValueId feed_forward(const std::string& prefix, ValueId x) {
    const auto [a, b, c] = parts_;
    const Cut rows{{query_, a}};
    const ValueId norm =
        rms_norm(program_, prefix + "ffn_norm", x, weight(prefix + "ffn_norm_weight", {width_}),
                 width_, {.squares = {{query_, a}, {width_, c}}, .rows = rows, .result = rows});
    const Cut cut{{query_, a}, {hidden_, b * c}};
    const ValueId gate =
        einsum(program_, prefix + "gate", norm, weight(prefix + "gate_weight", {width_, hidden_}),
               {query_, hidden_}, cut);
    const ValueId up =
        einsum(program_, prefix + "up", norm, weight(prefix + "up_weight", {width_, hidden_}),
               {query_, hidden_}, cut);
    const ValueId active = unary(program_, prefix + "active", "silu", gate, cut);
    const ValueId gated = binary(program_, prefix + "gated", "multiply", active, up, cut);
    const ValueId down =
        einsum(program_, prefix + "down", gated, weight(prefix + "down_weight", {hidden_, width_}),
               {query_, width_}, cut);
    return binary(program_, prefix + "output", "add", down, x, rows);
  }

  // Final norm, and the scores of the vocabulary for the last token.
  void head(ValueId x) {
    const Cut rows{{query_, parts_.sequence}};
    const ValueId norm = rms_norm(program_, "final_norm", x, weight("final_norm_weight", {width_}),
                                  width_, {.squares = rows, .rows = rows, .result = rows});
    const DimensionId token = program_.dimension("token", 1);
    const DimensionId word = program_.dimension("word", options_.vocabulary);
    const ValueId last =
        select(program_, "last_token", norm, query_, token, options_.sequence - 1, {});
    const ValueId vector = squeeze(program_, "last", last, token, {});
    einsum(program_, "logits", vector, weight("vocabulary_weight", {width_, word}), {word},
           {{word, options_.shards}});
  }

  LlamaOptions options_;
  LlamaParts parts_;
  Program program_;
  DimensionId query_, key_, width_, head_, pair_, plane_, hidden_;
  ValueId table_, mask_;
};

}  // namespace

LlamaParts llama_parts(std::int64_t shards) {
  std::int64_t keys = 1;
  for (std::int64_t divisor = 1; divisor * divisor * divisor <= shards; ++divisor) {
    if (shards % divisor == 0) keys = divisor;
  }
  const auto [sequence, heads] = balanced_factors(shards / keys);
  return {sequence, heads, keys};
}

Program llama_program(const std::string& name, const LlamaOptions& options) {
  if (options.width % (2 * options.heads) != 0) {
    throw UsageError(name + ": width " + std::to_string(options.width) +
                     " is not a multiple of 2 heads = " + std::to_string(2 * options.heads) +
                     "; choose another width or number of heads");
  }
  return LlamaBuilder(name, options).build();
}

// Counted a term for each operation; the factors (x - 1) are aggregations of x parts.
double llama_flops(const LlamaOptions& options) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const LlamaParts parts = llama_parts(options.shards);
  const double a = number(parts.sequence);
  const double b = number(parts.heads);
  const double c = number(parts.keys);
  const double mask = options.whole_model ? 1 : 0;
  const double rows = number(options.sequence);
  const double width = number(options.width);
  const double hidden = number(options.hidden);
  const double x = rows * width;  // elements of the residual stream
  const double scores = rows * rows * number(options.heads);
  const double row_heads = rows * number(options.heads);
  const double norm = 6 * x + 2 * rows;
  const double attention = norm + (b * c - 1) * rows               // norm
                           + 6 * x * width                         // Q, K, V
                           + (c - 1) * x + 2 * (a - 1) * x         // their aggregations
                           + 10 * x                                // rotary
                           + 2 * rows * x                          // scores
                           + (3 + mask) * scores                   // scale, mask, casts
                           + 5 * scores + 2 * (c - 1) * row_heads  // softmax
                           + 2 * rows * x + (c - 1) * x            // mixed
                           + 2 * x * width + (b - 1) * x           // projected
                           + x;                                    // residual
  const double feed_forward =
      norm + (c - 1) * rows + 6 * x * hidden + 2 * rows * hidden + (b * c - 1) * x + x;
  const double head = options.whole_model ? norm + 2 * width * number(options.vocabulary) : 0;
  return number(options.layers) * (attention + feed_forward) + head;
}

std::vector<ParameterSpec> llama_parameters(bool with_vocabulary, bool with_layers) {
  std::vector<ParameterSpec> all = {
      size_parameter("sequence", "tokens", 4096, 1 << 24),
      size_parameter("width", "elements a token; a multiple of 2 heads", 4096, 1 << 24),
      size_parameter("heads", "attention heads", 32, 1 << 20),
      size_parameter("hidden", "width of the gated feed-forward network", 11008, 1 << 28)};
  if (with_vocabulary) {
    all.push_back(size_parameter("vocabulary", "words", 32000, 1 << 28));
  }
  if (with_layers) all.push_back(size_parameter("layers", "transformer blocks", 4, 1000));
  all.push_back(shards_parameter("s: each product has about s blocks; 0: one a device"));
  all.push_back({.name = "dtype",
                 .summary = "of weights and activations",
                 .default_value = std::string("float32"),
                 .choices = {"float32", "float16", "bfloat16"}});
  return all;
}

LlamaOptions llama_options(const Parameters& parameters, std::int64_t n_devices,
                           LlamaOptions options) {
  options.sequence = parameters.get<std::int64_t>("sequence");
  options.width = parameters.get<std::int64_t>("width");
  options.heads = parameters.get<std::int64_t>("heads");
  options.hidden = parameters.get<std::int64_t>("hidden");
  options.shards = shards_of(parameters, n_devices);
  options.dtype = parse_dtype(parameters.get<std::string>("dtype"));
  return options;
}

}  // namespace doppler
