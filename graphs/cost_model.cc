#include "graphs/cost_model.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>
#include <tuple>
#include <utility>

#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/number_text.h"
#include "graphs/parse_error.h"

namespace doppler {
namespace {

double analytical_seconds(const Graph& graph, NodeId node, const Device& device) {
  const double arithmetic = graph.flops(node) / device.flops_for(graph.dtype(node));
  const double memory = (graph.bytes_read(node) + graph.bytes_written(node)) / device.bandwidth;
  return device.launch_overhead + std::max(arithmetic, memory);
}

// Without scales. `signature` is that of the node; only a profile looks at it.
double seconds_of(const CostModel& model, const Graph& graph, NodeId node, const Cluster& cluster,
                  DeviceId device, const std::string& signature) {
  if (model.kind() == CostModel::Kind::raw) {
    const std::size_t n = graph.raw_devices();
    return graph.raw_compute()[n == 1 ? node.index() : node.index() * n + device.index()];
  }
  const Device& where = cluster.device(device);
  if (model.kind() == CostModel::Kind::profile) {
    const auto& compute = model.profile().compute;
    const auto kind = compute.find(where.kind);
    if (kind != compute.end()) {
      const auto found = kind->second.find(signature);
      if (found != kind->second.end()) return found->second;
    }
  }
  return analytical_seconds(graph, node, where);
}

// Whether the model gives every node the same time on both devices.
bool price_alike(const CostModel& model, const Graph& graph, const Cluster& cluster, DeviceId first,
                 DeviceId second) {
  const std::vector<double>& scales = model.scales().compute;
  if (!scales.empty() &&
      (scales.size() != cluster.n_devices() || scales[first.index()] != scales[second.index()])) {
    return false;
  }
  if (model.kind() == CostModel::Kind::raw) return graph.raw_devices() <= 1;
  const Device& a = cluster.device(first);
  const Device& b = cluster.device(second);
  if (model.kind() == CostModel::Kind::profile && a.kind != b.kind) return false;
  return a.flops == b.flops && a.bandwidth == b.bandwidth && a.launch_overhead == b.launch_overhead;
}

void check_scales(const CostScales& scales, const Graph& graph, const Cluster& cluster) {
  const std::size_t n_devices = cluster.n_devices();
  const auto refuse = [&](const char* what, std::size_t size, const std::string& wanted) {
    throw InvalidError("the cost scales have " + std::to_string(size) + " factors of " + what +
                       ", but graph " + doppler::quoted(graph.name()) + " on cluster " +
                       doppler::quoted(cluster.name()) + " needs " + wanted);
  };
  if (!scales.compute.empty() && scales.compute.size() != n_devices &&
      scales.compute.size() != n_devices * graph.n_nodes()) {
    refuse("compute", scales.compute.size(),
           std::to_string(n_devices) + " or " + std::to_string(n_devices * graph.n_nodes()));
  }
  for (const auto& [name, factors] :
       {std::pair("latency", &scales.latency), std::pair("bandwidth", &scales.bandwidth)}) {
    if (!factors->empty() && factors->size() != n_devices * n_devices) {
      refuse(name, factors->size(), std::to_string(n_devices * n_devices));
    }
  }
}

// Everything that can be told without pricing the nodes.
void check_fit(const CostModel& model, const Graph& graph, const Cluster& cluster) {
  const std::size_t n_devices = cluster.n_devices();
  check_scales(model.scales(), graph, cluster);
  if (model.kind() == CostModel::Kind::raw) {
    const std::size_t n = graph.raw_devices();
    if (n == 0 && graph.n_nodes() > 0) {
      throw InvalidError("graph " + doppler::quoted(graph.name()) +
                         " has no raw costs; give it some, or use the analytical cost model");
    }
    if (n > 1 && n != n_devices) {
      throw InvalidError("graph " + doppler::quoted(graph.name()) + " has raw costs for " +
                         std::to_string(n) + " devices, but cluster " +
                         doppler::quoted(cluster.name()) + " has " + std::to_string(n_devices) +
                         "; use a cluster of " + std::to_string(n));
    }
  }
  for (const auto& [pair, time] : model.profile().links) {
    if (pair.first.index() >= n_devices || pair.second.index() >= n_devices) {
      throw InvalidError("the profile measures a link from device " +
                         std::to_string(pair.first.value) + " to " +
                         std::to_string(pair.second.value) + ", but cluster " +
                         doppler::quoted(cluster.name()) + " has " + std::to_string(n_devices) +
                         " devices; use the cluster on which the profile was made");
    }
  }
}

// An upper bound of the seconds of all transfers: every tensor and input sent to every device, over
// as many of the worst links as a path can have.
double most_transfer_seconds(const CostModel& model, const Graph& graph, const Cluster& cluster) {
  double latency = 0;
  double seconds_per_byte = 0;
  const auto take = [&](double link_latency, double bandwidth) {
    latency = std::max(latency, link_latency);
    seconds_per_byte = std::max(seconds_per_byte, 1 / bandwidth);
  };
  const ClusterParts& parts = cluster.parts();
  for (const Link& link : parts.links) take(link.latency, link.bandwidth);
  if (parts.default_link) take(parts.default_link->latency, parts.default_link->bandwidth);
  for (const auto& [pair, time] : model.profile().links) take(time.latency, time.bandwidth);
  const CostScales& scales = model.scales();
  if (!scales.latency.empty()) {
    latency *= *std::max_element(scales.latency.begin(), scales.latency.end());
  }
  if (!scales.bandwidth.empty()) {
    seconds_per_byte /= *std::min_element(scales.bandwidth.begin(), scales.bandwidth.end());
  }
  double bytes = 0;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    bytes += graph.tensor_bytes(TensorId{static_cast<std::int64_t>(t)});
  }
  for (const GraphInput& input : graph.inputs()) bytes += input.tensor.bytes;
  const double n_devices = static_cast<double>(cluster.n_devices());
  const double n_sent = static_cast<double>(graph.n_tensors() + graph.n_inputs()) * n_devices;
  return n_sent * n_devices * latency + bytes * n_devices * seconds_per_byte;
}

// Means over the ordered pairs of different devices, as the model sees them.
std::pair<double, double> mean_link(const CostModel& model, const Cluster& cluster) {
  const auto& measured = model.profile().links;
  const CostScales& scales = model.scales();
  const bool scaled = !scales.latency.empty() || !scales.bandwidth.empty();
  if (measured.empty() && !scaled) return {cluster.mean_latency(), cluster.mean_seconds_per_byte()};
  const auto n_devices = static_cast<std::int64_t>(cluster.n_devices());
  double latency = 0;
  double seconds_per_byte = 0;
  auto next = measured.begin();  // measured pairs come in the order of the loops
  for (std::int64_t from = 0; from < n_devices; ++from) {
    for (std::int64_t to = 0; to < n_devices; ++to) {
      if (from == to) continue;
      if (!scaled && next != measured.end() &&
          next->first == std::pair(DeviceId{from}, DeviceId{to})) {
        latency += next->second.latency;
        seconds_per_byte += 1 / next->second.bandwidth;
        ++next;
      } else {
        const Route route = model.route(cluster, DeviceId{from}, DeviceId{to});
        latency += route.latency;
        seconds_per_byte += 1 / route.bandwidth;
      }
    }
  }
  const double n_pairs = static_cast<double>(n_devices) * static_cast<double>(n_devices - 1);
  return {latency / n_pairs, seconds_per_byte / n_pairs};
}

std::string_view to_string(CostModel::Kind kind) {
  switch (kind) {
    case CostModel::Kind::analytical:
      return "analytical";
    case CostModel::Kind::profile:
      return "profile";
    case CostModel::Kind::raw:
      return "raw";
  }
  return "";
}

}  // namespace

std::string Profile::signature(const Graph& graph, NodeId node) {
  std::string text(graph.kind(node));
  text += ' ';
  text += doppler::to_string(graph.dtype(node));
  text += " flops=" + number_text(graph.flops(node));
  text += " read=" + number_text(graph.bytes_read(node));
  text += " written=" + number_text(graph.bytes_written(node));
  text += " shape=";
  if (graph.n_outputs(node) > 0) {
    const char* separator = "";
    for (std::int64_t size : graph.tensor_shape(graph.first_tensor(node))) {
      text += separator + std::to_string(size);
      separator = "x";
    }
  }
  return text;
}

CostModel CostModel::raw() {
  CostModel model;
  model.kind_ = Kind::raw;
  return model;
}

CostModel CostModel::measured(Profile profile) {
  for (const auto& [kind, times] : profile.compute) {
    for (const auto& [signature, seconds] : times) {
      if (!(seconds >= 0) || !std::isfinite(seconds)) {
        throw InvalidError("profile: " + doppler::quoted(signature) + " on " +
                           doppler::quoted(kind) + " takes " + number_text(seconds) +
                           " seconds; give a finite number of 0 or more");
      }
    }
  }
  for (const auto& [pair, time] : profile.links) {
    const std::string where = "profile: link from device " + std::to_string(pair.first.value) +
                              " to " + std::to_string(pair.second.value);
    if (pair.first == pair.second || pair.first.value < 0 || pair.second.value < 0) {
      throw InvalidError(where + " does not join two devices");
    }
    if (!(time.latency >= 0) || !std::isfinite(time.latency)) {
      throw InvalidError(where + " has latency " + number_text(time.latency) +
                         "; give finite seconds of 0 or more");
    }
    if (!(time.bandwidth > 0) || !std::isfinite(1 / time.bandwidth)) {
      throw InvalidError(where + " has bandwidth " + number_text(time.bandwidth) +
                         "; give bytes/s above 0");
    }
  }
  CostModel model;
  model.kind_ = Kind::profile;
  model.profile_ = std::move(profile);
  return model;
}

CostModel CostModel::scaled(CostScales scales) const {
  for (const auto& [name, factors] :
       {std::pair("compute", &scales.compute), std::pair("latency", &scales.latency),
        std::pair("bandwidth", &scales.bandwidth)}) {
    for (double factor : *factors) {
      if (factor > 0 && std::isfinite(factor)) continue;
      throw InvalidError(std::string("cost scales: a factor of ") + name + " is " +
                         number_text(factor) + "; give a finite number above 0");
    }
  }
  CostModel model = *this;
  model.scales_ = std::move(scales);
  return model;
}

CostModel CostModel::of(const Graph& graph) {
  return graph.raw_devices() > 0 ? raw() : analytical();
}

double CostModel::compute(const Graph& graph, NodeId node, const Cluster& cluster,
                          DeviceId device) const {
  const bool by_signature = kind_ == Kind::profile;
  return scales_.of(node, device, cluster.n_devices()) *
         seconds_of(*this, graph, node, cluster, device,
                    by_signature ? Profile::signature(graph, node) : std::string());
}

Route CostModel::route(const Cluster& cluster, DeviceId from, DeviceId to) const {
  Route route = cluster.route(from, to);
  if (!profile_.links.empty()) {
    const auto found = profile_.links.find({from, to});
    if (found != profile_.links.end()) {
      route.latency = found->second.latency;
      route.bandwidth = found->second.bandwidth;
    }
  }
  const std::size_t pair = from.index() * cluster.n_devices() + to.index();
  if (!scales_.latency.empty()) route.latency *= scales_.latency[pair];
  if (!scales_.bandwidth.empty()) route.bandwidth *= scales_.bandwidth[pair];
  return route;
}

void CostModel::check(const Graph& graph, const Cluster& cluster) const {
  const CostTable table(graph, cluster, *this);
  double total = most_transfer_seconds(*this, graph, cluster);
  for (std::size_t node = 0; node < graph.n_nodes(); ++node) {
    const auto row = table.seconds.begin() + static_cast<std::ptrdiff_t>(node * table.n_columns);
    total += *std::max_element(row, row + static_cast<std::ptrdiff_t>(table.n_columns));
  }
  if (!std::isfinite(total)) {
    throw InvalidError("the times of graph " + doppler::quoted(graph.name()) + " on cluster " +
                       doppler::quoted(cluster.name()) +
                       " overflow when they are added up; use smaller costs or faster devices "
                       "and links");
  }
}

std::uint64_t CostModel::hash() const {
  Hasher hasher;
  hasher.add(to_string(kind_));
  hasher.add(std::uint64_t{profile_.compute.size()});
  for (const auto& [kind, times] : profile_.compute) {
    hasher.add(kind).add(std::uint64_t{times.size()});
    for (const auto& [signature, seconds] : times) hasher.add(signature).add(seconds);
  }
  hasher.add(std::uint64_t{profile_.links.size()});
  for (const auto& [pair, time] : profile_.links) {
    hasher.add(std::uint64_t{pair.first.index()}).add(std::uint64_t{pair.second.index()});
    hasher.add(time.latency).add(time.bandwidth);
  }
  if (scales_ == CostScales{}) return hasher.digest();
  for (const std::vector<double>* factors :
       {&scales_.compute, &scales_.latency, &scales_.bandwidth}) {
    hasher.add(std::uint64_t{factors->size()});
    for (double factor : *factors) hasher.add(factor);
  }
  return hasher.digest();
}

std::ostream& operator<<(std::ostream& out, const CostModel& cost_model) {
  out << to_string(cost_model.kind()) << " cost model";
  if (cost_model.kind() == CostModel::Kind::profile) {
    std::size_t n_times = 0;
    for (const auto& [kind, times] : cost_model.profile().compute) n_times += times.size();
    out << " (" << n_times << " node times, " << cost_model.profile().links.size() << " links)";
  }
  if (!(cost_model.scales() == CostScales{})) out << ", scaled";
  return out;
}

CostTable::CostTable(const Graph& graph, const Cluster& cluster, const CostModel& cost_model) {
  check_fit(cost_model, graph, cluster);
  const std::size_t n_devices = cluster.n_devices();

  std::vector<DeviceId> device_of_column;
  std::vector<double> n_alike;
  for (std::size_t d = 0; d < n_devices; ++d) {
    const DeviceId device{static_cast<std::int64_t>(d)};
    const auto same = std::find_if(
        device_of_column.begin(), device_of_column.end(),
        [&](DeviceId other) { return price_alike(cost_model, graph, cluster, device, other); });
    column.push_back(static_cast<std::uint32_t>(same - device_of_column.begin()));
    if (same == device_of_column.end()) {
      device_of_column.push_back(device);
      n_alike.push_back(0);
    }
    ++n_alike[column.back()];
  }
  n_columns = device_of_column.size();

  const std::size_t n_nodes = graph.n_nodes();
  seconds.reserve(n_nodes * n_columns);
  mean.reserve(n_nodes);
  least.reserve(n_nodes);
  const bool by_signature = cost_model.kind() == CostModel::Kind::profile;
  std::string signature;
  for (std::size_t i = 0; i < n_nodes; ++i) {
    const NodeId node{static_cast<std::int64_t>(i)};
    if (by_signature) signature = Profile::signature(graph, node);
    double sum = 0;
    double smallest = kUnlimited;
    for (std::size_t c = 0; c < n_columns; ++c) {
      const double time =
          cost_model.scales().of(node, device_of_column[c], n_devices) *
          seconds_of(cost_model, graph, node, cluster, device_of_column[c], signature);
      if (!std::isfinite(time)) {
        throw InvalidError("node " + doppler::quoted(graph.name(node)) + " of graph " +
                           doppler::quoted(graph.name()) + " takes " + number_text(time) +
                           " seconds on device " + std::to_string(device_of_column[c].value) +
                           " of cluster " + doppler::quoted(cluster.name()) +
                           "; use smaller costs or a faster device");
      }
      seconds.push_back(time);
      sum += n_alike[c] * time;
      smallest = std::min(smallest, time);
    }
    // One column is its own mean, without rounding.
    mean.push_back(n_columns == 1 ? seconds.back() : sum / static_cast<double>(n_devices));
    least.push_back(smallest);
  }
  std::tie(mean_latency, mean_seconds_per_byte) = mean_link(cost_model, cluster);
}

}  // namespace doppler
