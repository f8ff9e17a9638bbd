// What `doppler` has learnt: the network and the heads that it may decide with.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agents/learned/doppler_network.h"
#include "agents/learned/policy_heads.h"

namespace doppler {

// A policy of one head decides with it. One of several has a gate, which reads the graph and what
// the heads decide, and puts them in order.
struct DopplerPolicy {
  DopplerNetwork network;
  std::vector<Head> heads;  // at least one

  // From nothing: a network of random weights, and heads that are the linear rules of partner-list
  // and of critical-path.
  static DopplerPolicy untrained(std::uint64_t seed);
  // The content of a policy file; throws ParseError. `source` stands for the file in messages.
  static DopplerPolicy parse(std::string_view content, const std::string& source);
  [[nodiscard]] std::string text() const;
};

// The content of a policy file without a gate.
std::string policy_text(const DopplerNetwork& network, std::span<const Head> heads);

// What the gate is told of each head; no engine is run.
std::vector<EstimateFeatures> estimate_heads(std::shared_ptr<const PlacementModel> model,
                                             const Latents& latents, std::span<const Head> heads,
                                             std::span<const DeviceId> pattern = {});
// Whether the pattern promises more than what the head decides.
bool pattern_promises_more(const std::shared_ptr<const PlacementModel>& model,
                           const Latents& latents, const Head& head,
                           std::span<const DeviceId> pattern);
// Indices of the policy's heads, the one that promises most first.
std::vector<std::size_t> order_heads(const DopplerPolicy& policy,
                                     const std::shared_ptr<const PlacementModel>& model,
                                     const NetworkInputs& inputs, const Latents& latents);

}  // namespace doppler
