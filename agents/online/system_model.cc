#include "agents/online/system_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "executor/calibration/fit.h"

namespace doppler {

namespace {

// Runs that stand for the trust in what is known of the group.
constexpr double kDeviceTrust = 3;
constexpr double kSignatureTrust = 5;
constexpr double kNodeTrust = 5;
constexpr double kNodeOnDeviceTrust = 10;
constexpr double kLinkTrust = 3;
constexpr double kPairTrust = 10;
// A run that took so many times what it should have was disturbed.
constexpr double kMostOff = 32;
constexpr double kLeastFactor = 1e-3;

// Measured seconds and those of the cost model, of one group.
struct Sums {
  double measured = 0;
  double expected = 0;
  double n_runs = 0;

  // Their ratio, with `trust` runs of ratio `prior`.
  [[nodiscard]] double factor(double prior, double trust) const {
    if (!(expected > 0)) return prior;
    const double weight = trust * expected / n_runs;
    return std::max(kLeastFactor, (measured + weight * prior) / (expected + weight));
  }
};

}  // namespace

SystemModel::SystemModel(std::shared_ptr<const PlacementModel> nominal)
    : nominal_(std::move(nominal)),
      n_devices_(nominal_->n_devices()),
      seconds_(nominal_->n_nodes() * n_devices_, 0.0),
      n_runs_(seconds_.size(), 0.0),
      links_(n_devices_ * n_devices_) {
  std::unordered_map<std::string, std::int32_t> numbers;
  const Graph& graph = nominal_->task().graph;
  for (std::size_t v = 0; v < nominal_->n_nodes(); ++v) {
    const auto next = static_cast<std::int32_t>(numbers.size());
    const NodeId node(static_cast<std::int64_t>(v));
    signature_.push_back(numbers.try_emplace(Profile::signature(graph, node), next).first->second);
  }
  n_signatures_ = numbers.size();
}

double SystemModel::nominal_seconds(std::size_t node, std::size_t device) const {
  return nominal_->costs().compute(NodeId(static_cast<std::int64_t>(node)),
                                   DeviceId(static_cast<std::int64_t>(device)));
}

void SystemModel::LinkSums::add(const LinkSums& other) {
  aa += other.aa;
  ab += other.ab;
  bb += other.bb;
  ay += other.ay;
  by += other.by;
}

void SystemModel::add(const Execution& execution) {
  const std::vector<double> computing = occupied_slot_seconds(execution);
  for (std::size_t v = 0; v < computing.size(); ++v) {
    const std::size_t d = execution.nodes[v].device.index();
    const double expected = nominal_seconds(v, d);
    if (!(expected > 0)) continue;
    seconds_[v * n_devices_ + d] += std::min(computing[v], kMostOff * expected);
    n_runs_[v * n_devices_ + d] += 1;
  }
  const Task& task = nominal_->task();
  const std::vector<double> sending = occupied_channel_seconds(execution);
  for (std::size_t t = 0; t < sending.size(); ++t) {
    const TransferRun& run = execution.transfers[t];
    const Route route = task.cost_model.route(task.cluster, run.from, run.to);
    const double latency = route.latency;
    const double per_byte = run.bytes / route.bandwidth;
    const double expected = latency + per_byte;
    if (!(expected > 0)) continue;
    const double a = latency / expected;
    const double b = per_byte / expected;
    const double y = std::min(sending[t] / expected, kMostOff);
    links_[run.from.index() * n_devices_ + run.to.index()].add(
        {.aa = a * a, .ab = a * b, .bb = b * b, .ay = a * y, .by = b * y});
  }
  ++n_executions_;
}

void SystemModel::write_compute(std::vector<double>& factors) const {
  const std::size_t n_nodes = nominal_->n_nodes();
  Sums whole;
  std::vector<Sums> devices(n_devices_);
  std::vector<Sums> signatures(n_signatures_ * n_devices_);
  const auto add = [](Sums& to, double measured, double expected, double n_runs) {
    to.measured += measured;
    to.expected += expected;
    to.n_runs += n_runs;
  };
  for (std::size_t v = 0; v < n_nodes; ++v) {
    for (std::size_t d = 0; d < n_devices_; ++d) {
      const double n_runs = n_runs_[v * n_devices_ + d];
      if (n_runs == 0) continue;
      const double measured = seconds_[v * n_devices_ + d];
      const double expected = n_runs * nominal_seconds(v, d);
      add(whole, measured, expected, n_runs);
      add(devices[d], measured, expected, n_runs);
      add(signatures[static_cast<std::size_t>(signature_[v]) * n_devices_ + d], measured, expected,
          n_runs);
    }
  }
  const double of_system = whole.factor(1, kDeviceTrust);
  std::vector<double> of_signature(signatures.size());
  for (std::size_t d = 0; d < n_devices_; ++d) {
    const double of_device = devices[d].factor(of_system, kDeviceTrust);
    for (std::size_t s = 0; s < n_signatures_; ++s) {
      of_signature[s * n_devices_ + d] =
          signatures[s * n_devices_ + d].factor(of_device, kSignatureTrust);
    }
  }
  factors.resize(n_nodes * n_devices_);
  for (std::size_t v = 0; v < n_nodes; ++v) {
    const double* const group = &of_signature[static_cast<std::size_t>(signature_[v]) * n_devices_];
    Sums node;
    for (std::size_t d = 0; d < n_devices_; ++d) {
      const double n_runs = n_runs_[v * n_devices_ + d];
      add(node, seconds_[v * n_devices_ + d], n_runs * nominal_seconds(v, d) * group[d], n_runs);
    }
    const double of_node = node.factor(1, kNodeTrust);
    for (std::size_t d = 0; d < n_devices_; ++d) {
      const double n_runs = n_runs_[v * n_devices_ + d];
      const Sums here{.measured = seconds_[v * n_devices_ + d],
                      .expected = n_runs * nominal_seconds(v, d),
                      .n_runs = n_runs};
      factors[v * n_devices_ + d] = here.factor(group[d] * of_node, kNodeOnDeviceTrust);
    }
  }
}

SystemModel::LinkFactors SystemModel::solve(const LinkSums& sums, const LinkFactors& prior,
                                            double trust) {
  const double aa = sums.aa + trust;
  const double bb = sums.bb + trust;
  const double ay = sums.ay + trust * prior.latency;
  const double by = sums.by + trust * prior.per_byte;
  const double determinant = aa * bb - sums.ab * sums.ab;
  LinkFactors factors = {.latency = (bb * ay - sums.ab * by) / determinant,
                         .per_byte = (aa * by - sums.ab * ay) / determinant};
  factors.latency = std::max(factors.latency, kLeastFactor);
  factors.per_byte = std::max(factors.per_byte, kLeastFactor);
  return factors;
}

void SystemModel::write_links(CostScales& scales) const {
  LinkSums all;
  for (const LinkSums& sums : links_) all.add(sums);
  const LinkFactors of_system = solve(all, {}, kLinkTrust);
  for (const LinkSums& sums : links_) {
    const LinkFactors factors = solve(sums, of_system, kPairTrust);
    scales.latency.push_back(factors.latency);
    scales.bandwidth.push_back(1 / factors.per_byte);
  }
}

CostScales SystemModel::scales() const {
  CostScales scales;
  write_compute(scales.compute);
  write_links(scales);
  // On top of what the task's own cost model scales.
  const CostScales& own = nominal_->task().cost_model.scales();
  for (std::size_t i = 0; i < scales.compute.size() && !own.compute.empty(); ++i) {
    scales.compute[i] *= own.compute[i % own.compute.size()];
  }
  for (std::size_t i = 0; i < scales.latency.size(); ++i) {
    if (!own.latency.empty()) scales.latency[i] *= own.latency[i];
    if (!own.bandwidth.empty()) scales.bandwidth[i] *= own.bandwidth[i];
  }
  return scales;
}

std::shared_ptr<const PlacementModel> SystemModel::corrected() const {
  Task task = nominal_->task();
  task.cost_model = task.cost_model.scaled(scales());
  return std::make_shared<const PlacementModel>(std::move(task));
}

nlohmann::json SystemModel::state() const {
  std::vector<double> links;
  for (const LinkSums& sums : links_) {
    links.insert(links.end(), {sums.aa, sums.ab, sums.bb, sums.ay, sums.by});
  }
  return {{"executions", n_executions_},
          {"seconds", seconds_},
          {"runs", n_runs_},
          {"links", std::move(links)}};
}

void SystemModel::restore(const nlohmann::json& state) {
  n_executions_ = state.at("executions").get<std::int64_t>();
  seconds_ = state.at("seconds").get<std::vector<double>>();
  n_runs_ = state.at("runs").get<std::vector<double>>();
  const auto links = state.at("links").get<std::vector<double>>();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const double* const sums = &links.at(5 * i);
    links_[i] = {.aa = sums[0], .ab = sums[1], .bb = sums[2], .ay = sums[3], .by = sums[4]};
  }
}

}  // namespace doppler
