// A mixture-of-experts layer: each token goes to its top_k experts, as far as they have room.
//
// Routing by one-hot dispatch and combine tensors over groups of tokens, as in GShard (Lepikhin et
// al., arXiv 2006.16668, section 2.2); the gate's probabilities weigh the experts' results, as in
// Switch (Fedus et al., arXiv 2101.03961). Sizes default to Mixtral 8x7B (arXiv 2401.04088).
#include <algorithm>

#include "datasets/programs/operations.h"
#include "datasets/workloads/builtin.h"
#include "graphs/error.h"

namespace doppler {
namespace {

// Tokens are cut by group, experts into as many of the shards as there are experts for, their
// hidden dimension by the rest.
struct MoeParts {
  std::int64_t groups = 1;
  std::int64_t experts = 1;
  std::int64_t hidden = 1;
};

MoeParts moe_parts(const Parameters& parameters, std::int64_t n_devices) {
  const std::int64_t shards = shards_of(parameters, n_devices);
  std::int64_t experts = std::min(shards, parameters.get<std::int64_t>("experts"));
  while (shards % experts != 0) --experts;
  return {shards, experts, shards / experts};
}

Program moe_program(const Parameters& parameters, std::int64_t n_devices) {
  const auto [groups, experts, hidden_parts] = moe_parts(parameters, n_devices);
  const auto top_k = parameters.get<std::int64_t>("top_k");
  if (top_k > parameters.get<std::int64_t>("experts")) {
    throw UsageError("moe: top_k " + std::to_string(top_k) + " is more than the " +
                     std::to_string(parameters.get<std::int64_t>("experts")) +
                     " experts; choose a smaller top_k");
  }
  Program program("moe");
  const auto dimension = [&](const char* name, const char* parameter) {
    return program.dimension(name, parameters.get<std::int64_t>(parameter));
  };
  const DimensionId group = dimension("group", "groups");
  const DimensionId token = dimension("token", "tokens");
  const DimensionId width = dimension("width", "width");
  const DimensionId expert = dimension("expert", "experts");
  const DimensionId slot = dimension("slot", "capacity");
  const DimensionId hidden = dimension("hidden", "hidden");
  const Cut by_group{{group, groups}};
  const Cut by_pair{{group, groups}, {expert, experts}};
  const Cut by_expert{{expert, experts}, {hidden, hidden_parts}};

  const ValueId x = program.input("tokens", {group, token, width});
  const ValueId gate = program.input("gate_weight", {width, expert});
  const ValueId scores = einsum(program, "scores", x, gate, {group, token, expert}, by_group);
  const ValueId shares = softmax(program, "shares", scores, expert, by_group);
  const ValueId combine = program.add("combine", {.kind = "route",
                                                  .operands = {{shares, {group, token, expert}}},
                                                  .result_dimensions = {group, token, expert, slot},
                                                  .cut = by_group,
                                                  .top_k = top_k});
  const ValueId dispatch = unary(program, "dispatch", "positive", combine, by_group);
  const ValueId sent = einsum(program, "sent", dispatch, x, {expert, group, slot, width}, by_pair);
  const ValueId up =
      einsum(program, "up", sent, program.input("up_weight", {expert, width, hidden}),
             {expert, group, slot, hidden}, by_expert);
  const ValueId active = unary(program, "active", "relu", up, by_expert);
  const ValueId down =
      einsum(program, "down", active, program.input("down_weight", {expert, hidden, width}),
             {expert, group, slot, width}, by_expert);
  const ValueId returned =
      einsum(program, "returned", combine, down, {group, token, width}, by_pair);
  binary(program, "result", "add", returned, x, by_group);
  return program;
}

double moe_flops(const Parameters& parameters, std::int64_t n_devices) {
  const auto size = [&](const char* name) {
    return static_cast<double>(parameters.get<std::int64_t>(name));
  };
  const MoeParts parts = moe_parts(parameters, n_devices);
  const double tokens = size("groups") * size("tokens");
  const double width = size("width");
  const double hidden = size("hidden");
  const double experts = size("experts");
  const double capacity = size("capacity");
  const double slots = experts * size("groups") * capacity;
  const double gate = tokens * experts * (2 * width + 5);
  const double routing = 2 * tokens * experts * capacity;
  const double exchange = 4 * tokens * experts * capacity * width +
                          static_cast<double>(parts.experts - 1) * tokens * width;
  const double network =
      slots * hidden * (4 * width + 1) + static_cast<double>(parts.hidden - 1) * slots * width;
  return gate + routing + exchange + network + tokens * width;
}

}  // namespace

WorkloadEntry moe_workload() {
  WorkloadEntry entry;
  entry.name = "moe";
  entry.summary = "mixture-of-experts layer: gate, top-k routing with capacity, experts, residual";
  entry.source = "GShard, arXiv 2006.16668, section 2.2; sizes of Mixtral 8x7B";
  entry.parameters = {
      size_parameter("groups", "groups of tokens that are routed by themselves", 32, 1 << 20),
      size_parameter("tokens", "tokens a group", 128, 1 << 20),
      size_parameter("width", "elements a token", 4096, 1 << 24),
      size_parameter("hidden", "width of an expert's hidden layer", 14336, 1 << 28),
      size_parameter("experts", "experts", 8, 1 << 20),
      size_parameter("top_k", "experts that a token is sent to; at most experts", 2, 1 << 20),
      size_parameter("capacity", "tokens that an expert takes from a group", 40, 1 << 20),
      shards_parameter("s: groups are cut into s parts, experts (or their width) too; "
                       "0: one a device")};
  entry.core_sizes = "groups=8,tokens=64,width=256,hidden=896";
  entry.program = moe_program;
  entry.total_flops = moe_flops;
  return program_workload(std::move(entry));
}

}  // namespace doppler
