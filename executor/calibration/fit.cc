#include "executor/calibration/fit.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graphs/error.h"

namespace doppler {
namespace {

// Of one or more values; the mean of the two in the middle.
double median(std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::vector<double> occupied_slot_seconds(const Execution& execution) {
  std::vector<std::size_t> order(execution.nodes.size());
  for (std::size_t v = 0; v < order.size(); ++v) order[v] = v;
  const auto key = [&](std::size_t v) {
    const NodeRun& run = execution.nodes[v];
    return std::tuple(run.device, run.slot, run.start, run.end, v);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<double> seconds(order.size());
  const NodeRun* before = nullptr;
  for (const std::size_t v : order) {
    const NodeRun& run = execution.nodes[v];
    double begin = run.ready;
    if (before != nullptr && before->device == run.device && before->slot == run.slot) {
      begin = std::max(begin, before->end);
    }
    // With lookahead a node may be waiting at the device before its inputs are known to be there.
    seconds[v] = run.end - std::min(begin, run.start);
    before = &run;
  }
  return seconds;
}

std::vector<double> occupied_channel_seconds(const Execution& execution) {
  std::vector<std::size_t> order(execution.transfers.size());
  for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const TransferRun& x = execution.transfers[a];
    const TransferRun& y = execution.transfers[b];
    return std::tuple(x.channel, x.start, a) < std::tuple(y.channel, y.start, b);
  });
  std::vector<double> seconds(order.size());
  const TransferRun* before = nullptr;
  for (const std::size_t t : order) {
    const TransferRun& run = execution.transfers[t];
    double begin = run.requested;
    if (before != nullptr && before->channel == run.channel) begin = std::max(begin, before->end);
    seconds[t] = run.end - std::min(begin, run.start);
    before = &run;
  }
  return seconds;
}

Profile::LinkTime fit_link(std::span<const TransferTime> transfers) {
  std::map<double, std::vector<double>> by_size;
  for (const TransferTime& transfer : transfers) {
    by_size[transfer.bytes].push_back(transfer.seconds);
  }
  // Sums of w, w x, w x^2, w y, w x y over (bytes x, seconds y) with w = 1 / y^2.
  double w_sum = 0;
  double wx = 0;
  double wxx = 0;
  double wy = 0;
  double wxy = 0;
  for (auto& [x, times] : by_size) {
    const double y = median(times);
    if (!(y > 0)) continue;
    const double w = 1 / (y * y);
    w_sum += w;
    wx += w * x;
    wxx += w * x * x;
    wy += w * y;
    wxy += w * x * y;
  }
  if (w_sum == 0) return {};
  const double determinant = w_sum * wxx - wx * wx;
  // One size alone says nothing of a latency; rounding can leave a little of the determinant.
  double latency = 0;
  double per_byte = wxx > 0 ? wxy / wxx : 0;
  if (determinant > 1e-9 * w_sum * wxx || wxx == 0) {
    latency = wxx == 0 ? wy / w_sum : (wxx * wy - wx * wxy) / determinant;
    per_byte = wxx == 0 ? 0 : (w_sum * wxy - wx * wy) / determinant;
    if (latency < 0) {
      latency = 0;
      per_byte = wxy / wxx;
    } else if (per_byte < 0) {
      latency = wy / w_sum;
      per_byte = 0;
    }
  }
  return {.latency = latency, .bandwidth = per_byte > 0 ? 1 / per_byte : kUnlimited};
}

Profile fit_profile(const Graph& graph, const Cluster& cluster,
                    std::span<const Execution> executions) {
  std::vector<std::string> signatures;
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    signatures.push_back(Profile::signature(graph, NodeId(static_cast<std::int64_t>(v))));
  }
  std::map<std::pair<std::string, std::string>, std::vector<double>> nodes;  // by kind, signature
  std::map<std::pair<DeviceId, DeviceId>, std::vector<TransferTime>> links;
  std::vector<TransferTime> all_links;
  for (const Execution& execution : executions) {
    if (execution.nodes.size() != graph.n_nodes()) {
      throw InvalidError("an execution without the timeline of its " +
                         std::to_string(graph.n_nodes()) + " nodes; record it");
    }
    const std::vector<double> seconds = occupied_slot_seconds(execution);
    for (std::size_t v = 0; v < seconds.size(); ++v) {
      const std::string& kind = cluster.device(execution.nodes[v].device).kind;
      nodes[{kind, signatures[v]}].push_back(seconds[v]);
    }
    const std::vector<double> sending = occupied_channel_seconds(execution);
    for (std::size_t t = 0; t < sending.size(); ++t) {
      const TransferRun& run = execution.transfers[t];
      links[{run.from, run.to}].push_back({run.bytes, sending[t]});
      all_links.push_back({run.bytes, sending[t]});
    }
  }
  Profile profile;
  for (auto& [place, seconds] : nodes) profile.compute[place.first][place.second] = median(seconds);
  if (all_links.empty()) return profile;
  const Profile::LinkTime any = fit_link(all_links);
  const auto n_devices = static_cast<std::int64_t>(cluster.n_devices());
  for (std::int64_t from = 0; from < n_devices; ++from) {
    for (std::int64_t to = 0; to < n_devices; ++to) {
      if (from == to) continue;
      const std::pair pair(DeviceId{from}, DeviceId{to});
      const auto found = links.find(pair);
      profile.links[pair] = found == links.end() ? any : fit_link(found->second);
    }
  }
  return profile;
}

}  // namespace doppler
