#include "agents/learned/doppler_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace doppler {

namespace {

constexpr const char* kKind = "doppler(preset=best)";

// The logarithm of a ratio of seconds; 0 if either is not positive.
float log_ratio(double value, double base) {
  return value > 0 && base > 0 ? static_cast<float>(std::log(value / base)) : 0.0F;
}

// What an assignment asks of the machine, in seconds, each without regard to any order.
struct Demand {
  double transfers = 0;  // summed
  double channel = 0;    // of the busiest channel
  double device = 0;     // compute of the busiest device
};

Demand demand_of(const PlacementModel& model, std::span<const DeviceId> devices) {
  const Cluster& cluster = model.task().cluster;
  Demand demand;
  std::vector<double> channels(cluster.n_channels(), 0.0);
  std::vector<double> computes(model.n_devices(), 0.0);
  std::unordered_set<std::int64_t> sent;  // a tensor goes once to each device
  for (std::size_t v = 0; v < devices.size(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    const DeviceId to = devices[v];
    computes[to.index()] += model.costs().compute(node, to);
    for (const PlacementModel::Feed& feed : model.feeds(node)) {
      const DeviceId from = devices[feed.producer.index()];
      const std::int64_t key =
          feed.tensor.value * static_cast<std::int64_t>(model.n_devices()) + to.value;
      if (from == to || !sent.insert(key).second) continue;
      const double seconds = model.transfer(feed.bytes, from, to);
      demand.transfers += seconds;
      channels[cluster.route(from, to).channel.index()] += seconds;
    }
  }
  if (!channels.empty()) demand.channel = *std::max_element(channels.begin(), channels.end());
  demand.device = *std::max_element(computes.begin(), computes.end());
  return demand;
}

}  // namespace

DopplerPolicy DopplerPolicy::untrained(std::uint64_t seed) {
  DopplerNetwork network({}, seed);
  const auto n_latents = static_cast<std::size_t>(network.options().n_latents);
  return {.network = std::move(network),
          .heads = {plain_head(partner_list_weights(), n_latents),
                    plain_head(critical_path_weights(), n_latents)}};
}

DopplerPolicy DopplerPolicy::parse(std::string_view content, const std::string& source) {
  const PolicyFile file = parse_policy(content, kKind, source);
  DopplerPolicy policy{.network = DopplerNetwork(file, source), .heads = {}};
  const std::int64_t n_weights =
      (1 + policy.network.options().n_latents) * static_cast<std::int64_t>(kRuleWeights);
  const auto found = file.extra.find("n_heads");
  if (found == file.extra.end() || !found->is_number_integer() || *found < 1) {
    throw ParseError(source + ": this policy does not say how many heads it has");
  }
  const auto n_heads = found->get<std::int64_t>();
  const bool is_pulled = std::ranges::any_of(file.arrays, [&](const PolicyArray& array) {
    return array.name == "heads" && array.shape == std::vector{n_heads, n_weights + 1};
  });
  const std::int64_t width = is_pulled ? n_weights + 1 : n_weights;
  const PolicyArray& array = file.array("heads", {n_heads, width}, source);
  for (auto row = array.values.begin(); row != array.values.end(); row += width) {
    policy.heads.emplace_back(row, row + width);
  }
  const std::int64_t n_gated = policy.network.options().n_heads;
  if (n_gated != 0 && n_gated != n_heads) {
    throw ParseError(source + ": the gate is made for " + std::to_string(n_gated) +
                     " heads, the policy has " + std::to_string(n_heads));
  }
  return policy;
}

std::string DopplerPolicy::text() const { return policy_text(network, heads); }

std::string policy_text(const DopplerNetwork& network, std::span<const Head> heads) {
  PolicyFile file{.kind = kKind, .arrays = {}};
  network.write(file);
  std::size_t width = 0;
  for (const Head& head : heads) width = std::max(width, head.size());
  PolicyArray array{
      .name = "heads",
      .shape = {static_cast<std::int64_t>(heads.size()), static_cast<std::int64_t>(width)},
      .values = {}};
  for (const Head& head : heads) {
    for (double weight : head.size() < width ? pulled(head, 0) : head) {
      array.values.push_back(static_cast<float>(weight));
    }
  }
  file.arrays.push_back(std::move(array));
  file.extra["n_heads"] = heads.size();
  return write_policy(file);
}

std::vector<EstimateFeatures> estimate_heads(std::shared_ptr<const PlacementModel> model,
                                             const Latents& latents, std::span<const Head> heads,
                                             std::span<const DeviceId> pattern) {
  HeadRollout rollout(model, latents, pattern);
  std::vector<double> estimates;
  std::vector<Demand> demands;
  for (const Head& head : heads) {
    const auto devices = rollout.decide(head);
    estimates.push_back(rollout.estimate());
    demands.push_back(demand_of(*model, devices));
  }
  // With contention the busiest channel delays what the schedule does not know of.
  const bool contends = model->task().options.network != Network::independent;
  const auto promise = [&](std::size_t k) {
    return estimates[k] + (contends ? demands[k].channel : 0.0);
  };
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < heads.size(); ++k) least = std::min(least, promise(k));
  const double bound = model->task().lower_bound();
  std::vector<EstimateFeatures> features;
  for (std::size_t k = 0; k < heads.size(); ++k) {
    const double estimate = estimates[k];
    features.push_back({log_ratio(promise(k), least), log_ratio(estimate, bound),
                        static_cast<float>(demands[k].channel / std::max(estimate, 1e-300)),
                        static_cast<float>(demands[k].transfers / std::max(estimate, 1e-300) /
                                           static_cast<double>(model->n_devices())),
                        log_ratio(demands[k].device, estimate)});
  }
  return features;
}

bool pattern_promises_more(const std::shared_ptr<const PlacementModel>& model,
                           const Latents& latents, const Head& head,
                           std::span<const DeviceId> pattern) {
  const std::vector<Head> both = {head, pulled(head, kFullPull)};
  const auto estimates = estimate_heads(model, latents, both, pattern);
  return estimates[1][0] < estimates[0][0];
}

std::vector<std::size_t> order_heads(const DopplerPolicy& policy,
                                     const std::shared_ptr<const PlacementModel>& model,
                                     const NetworkInputs& inputs, const Latents& latents) {
  std::vector<std::size_t> order(policy.heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (policy.network.options().n_heads == 0) return order;
  const auto estimates = estimate_heads(model, latents, policy.heads);
  const std::vector<float> scores =
      policy.network.gate_scores(policy.network.readout(inputs), estimates);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  return order;
}

}  // namespace doppler
