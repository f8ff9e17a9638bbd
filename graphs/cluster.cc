#include "graphs/cluster.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "graphs/cluster_routes.h"
#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/parse_error.h"
#include "graphs/topology.h"

namespace doppler {
namespace {

// Beyond this, the table of all routes of a cluster without a default link (24 bytes a pair) does
// not fit into memory.
constexpr std::size_t kMaxRoutedDevices = 4096;
// Up to this, a table is kept for a cluster with a default link too.
constexpr std::size_t kSmall = 64;

std::string pair_text(DeviceId from, DeviceId to) {
  return std::to_string(from.value) + "->" + std::to_string(to.value);
}

std::uint64_t pair_key(DeviceId from, DeviceId to) {
  return (std::uint64_t{static_cast<std::uint32_t>(from.value)} << 32) |
         static_cast<std::uint32_t>(to.value);
}

// Collects the faults of one cluster; tells the first of them in full.
class Faults {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    if (++n_faults_ > kShown) return;
    text_ << "\n  ";
    (text_ << ... << parts);
  }
  void throw_if_any(const std::string& cluster) const {
    if (n_faults_ == 0) return;
    std::string message = "cluster " + doppler::quoted(cluster) + " is refused:" + text_.str();
    if (n_faults_ > kShown) {
      message += "\n  and " + std::to_string(n_faults_ - kShown) + " more";
    }
    throw InvalidError(message);
  }

 private:
  static constexpr std::size_t kShown = 15;
  std::size_t n_faults_ = 0;
  std::ostringstream text_;
};

void check_positive(Faults& faults, const std::string& where, std::string_view what, double x) {
  if (!(x > 0)) faults.add(where, ": ", what, " is ", x, "; give a number above 0");
}

// A bandwidth so small that a byte takes for ever would turn times into infinities.
void check_bandwidth(Faults& faults, const std::string& where, std::string_view what, double x) {
  check_positive(faults, where, what, x);
  if (x > 0 && !std::isfinite(1 / x)) faults.add(where, ": ", what, " ", x, " is too small");
}

void check_latency(Faults& faults, const std::string& where, double x) {
  if (!(x >= 0) || !std::isfinite(x)) {
    faults.add(where, ": latency is ", x, "; give seconds of 0 or more");
  }
}

void check_device(Faults& faults, std::size_t index, const Device& device) {
  const std::string where =
      "device " + std::to_string(index) +
      (device.kind.empty() ? "" : " (" + doppler::quoted(device.kind, 20) + ")");
  if (!device.flops.contains(DType::float32)) {
    faults.add(where, ": no FLOP/s for float32; give it, other dtypes without a rate use it");
  }
  for (const auto& [dtype, rate] : device.flops) {
    check_bandwidth(faults, where, "flops of " + std::string(to_string(dtype)), rate);
  }
  for (const auto& [dtype, rate] : device.peak_flops) {
    check_positive(faults, where, "peak_flops of " + std::string(to_string(dtype)), rate);
  }
  check_bandwidth(faults, where, "bandwidth", device.bandwidth);
  check_positive(faults, where, "peak_bandwidth", device.peak_bandwidth);
  if (!(device.launch_overhead >= 0) || !std::isfinite(device.launch_overhead)) {
    faults.add(where, ": launch_overhead is ", device.launch_overhead,
               "; give seconds of 0 or more");
  }
  if (!(device.memory >= 0)) {
    faults.add(where, ": memory is ", device.memory, "; give bytes of 0 or more");
  }
  if (device.streams < 1 || device.streams > kMaxStreams) {
    faults.add(where, ": streams is ", device.streams, "; give 1 to ", kMaxStreams);
  }
}

void check_links(Faults& faults, const ClusterParts& parts) {
  const std::size_t n_devices = parts.devices.size();
  std::unordered_map<std::uint64_t, std::size_t> seen;
  seen.reserve(parts.links.size());
  for (std::size_t i = 0; i < parts.links.size(); ++i) {
    const Link& link = parts.links[i];
    const std::string where =
        "link " + std::to_string(i) + " (" + pair_text(link.from, link.to) + ")";
    bool in_range = true;
    for (DeviceId end : {link.from, link.to}) {
      if (end.value < 0 || end.index() >= n_devices) {
        faults.add(where, ": there is no device ", end, "; there are ", n_devices);
        in_range = false;
      }
    }
    if (in_range && link.from == link.to) {
      faults.add(where, ": joins a device to itself; leave it out, local tensors do not move");
    }
    const auto [earlier, is_new] = seen.emplace(pair_key(link.from, link.to), i);
    if (!is_new) {
      faults.add(where, ": link ", earlier->second, " joins the same pair; give one link a pair");
    }
    if (link.channel.value < 0 || link.channel.index() >= parts.channels.size()) {
      faults.add(where, ": there is no channel ", link.channel, "; there are ",
                 parts.channels.size());
    }
    check_latency(faults, where, link.latency);
    check_bandwidth(faults, where, "bandwidth", link.bandwidth);
  }
}

// Everything but whether each pair can be reached.
void check(Faults& faults, const ClusterParts& parts) {
  const std::size_t n_devices = parts.devices.size();
  if (n_devices == 0) faults.add("no devices; give at least one");
  const std::size_t most = parts.default_link ? kMaxDevices : kMaxRoutedDevices;
  if (n_devices > most) {
    faults.add(n_devices, " devices; at most ", most,
               parts.default_link ? " are held" : " are held without a default link");
  }
  for (std::size_t d = 0; d < n_devices; ++d) check_device(faults, d, parts.devices[d]);
  for (std::size_t c = 0; c < parts.channels.size(); ++c) {
    const std::string where =
        "channel " + std::to_string(c) +
        (parts.channels[c].name.empty() ? ""
                                        : " (" + doppler::quoted(parts.channels[c].name, 20) + ")");
    check_bandwidth(faults, where, "capacity", parts.channels[c].capacity);
  }
  check_links(faults, parts);
  if (parts.default_link) {
    check_latency(faults, "default link", parts.default_link->latency);
    check_bandwidth(faults, "default link", "bandwidth", parts.default_link->bandwidth);
    check_bandwidth(faults, "default link", "capacity", parts.default_link->capacity);
  }
  for (std::size_t i = 0; i < parts.sources.size(); ++i) {
    if (parts.sources[i].figure.empty() || parts.sources[i].source.empty()) {
      faults.add("source ", i, ": name the figure and where it comes from");
    }
  }
}

// The ids of the default link's channels follow those of `channels`: `egress` has one a source
// device, in their order; `own` has n - 1 a source device, in the order of the other devices.
struct DefaultChannels {
  explicit DefaultChannels(const ClusterParts& parts)
      : first(parts.channels.size()),
        n_devices(parts.devices.size()),
        own(parts.default_link && parts.default_link->channels == DefaultLink::Channels::own) {
    if (parts.default_link) count = own ? n_devices * (n_devices - 1) : n_devices;
  }
  [[nodiscard]] ChannelId of(DeviceId from, DeviceId to) const {
    if (!own) return ChannelId{static_cast<std::int64_t>(first + from.index())};
    const std::size_t offset = to.index() - (to > from ? 1 : 0);
    return ChannelId{static_cast<std::int64_t>(first + from.index() * (n_devices - 1) + offset)};
  }
  [[nodiscard]] std::string name(ChannelId channel) const {
    const std::size_t k = channel.index() - first;
    if (!own) return "egress " + std::to_string(k);
    const std::size_t from = k / (n_devices - 1);
    const std::size_t offset = k % (n_devices - 1);
    return std::to_string(from) + "->" + std::to_string(offset + (offset >= from ? 1 : 0));
  }
  std::size_t first;
  std::size_t n_devices;
  bool own;
  std::size_t count = 0;
};

void hash_rates(Hasher& hasher, const std::map<DType, double>& rates) {
  hasher.add(std::uint64_t{rates.size()});
  for (const auto& [dtype, rate] : rates) hasher.add(to_string(dtype)).add(rate);
}

std::uint64_t hash_of(const ClusterParts& parts) {
  Hasher hasher;
  hasher.add(std::uint64_t{parts.devices.size()});
  for (const Device& device : parts.devices) {
    hasher.add(device.kind);
    hash_rates(hasher, device.flops);
    hasher.add(device.bandwidth).add(device.launch_overhead).add(device.memory);
    hasher.add(static_cast<std::uint64_t>(device.streams));
  }
  hasher.add(std::uint64_t{parts.channels.size()});
  for (const Channel& channel : parts.channels) hasher.add(channel.capacity);
  hasher.add(std::uint64_t{parts.links.size()});
  for (const Link& link : parts.links) {
    hasher.add(pair_key(link.from, link.to)).add(link.latency).add(link.bandwidth);
    hasher.add(static_cast<std::uint64_t>(link.channel.value));
  }
  hasher.add(std::uint64_t{parts.default_link.has_value()});
  if (parts.default_link) {
    hasher.add(parts.default_link->latency).add(parts.default_link->bandwidth);
    hasher.add(static_cast<std::uint64_t>(parts.default_link->channels));
    hasher.add(parts.default_link->capacity);
  }
  return hasher.add(std::uint64_t{parts.enforce_memory}).digest();
}

ClusterParts unit_parts(std::string_view topology, std::int64_t n) {
  if (n < 1 || n > static_cast<std::int64_t>(kMaxRoutedDevices)) {
    throw UsageError(std::string(topology) + ": n is " + std::to_string(n) + "; give 1 to " +
                     std::to_string(kMaxRoutedDevices));
  }
  ClusterParts parts;
  parts.name = std::string(topology) + "(" + std::to_string(n) + ")";
  parts.sources = {{"devices", "by definition: unit figures"},
                   {"links", "by definition: unit figures"},
                   {"default_link", "by definition: unit figures"}};
  parts.devices.assign(static_cast<std::size_t>(n), Device{.kind = "uniform"});
  return parts;
}

// Links of bandwidth 1 both ways between each pair.
Cluster joined(ClusterParts parts, const std::vector<DevicePair>& pairs) {
  for (const auto& [a, b] : pairs) {
    add_own_link(parts, a, b, 0, 1);
    add_own_link(parts, b, a, 0, 1);
  }
  return Cluster(std::move(parts));
}

}  // namespace

double Device::flops_for(DType dtype) const {
  const auto found = flops.find(dtype);
  return found != flops.end() ? found->second : flops.at(DType::float32);
}

struct Cluster::Storage {
  explicit Storage(ClusterParts given);

  [[nodiscard]] Route route(DeviceId from, DeviceId to) const {
    if (!table.empty()) return table[from.index() * parts.devices.size() + to.index()];
    if (!explicit_links.empty()) {
      const auto found = explicit_links.find(pair_key(from, to));
      if (found != explicit_links.end()) {
        const Link& link = parts.links[found->second];
        return {link.latency, link.bandwidth, link.channel, 1};
      }
    }
    return {parts.default_link->latency, parts.default_link->bandwidth,
            default_channels.of(from, to), 1};
  }
  void make_routes(Faults& faults);
  void make_means(Faults& faults);

  ClusterParts parts;
  DefaultChannels default_channels;
  std::vector<Route> table;  // [n_devices, n_devices], or empty: explicit_links and default link
  std::unordered_map<std::uint64_t, std::size_t> explicit_links;  // pair to index into parts.links
  std::size_t total_slots = 0;
  double mean_latency = 0;
  double mean_seconds_per_byte = 0;
  std::uint64_t hash = 0;
};

Cluster::Storage::Storage(ClusterParts given) : parts(std::move(given)), default_channels(parts) {
  Faults faults;
  check(faults, parts);
  if (parts.channels.size() + default_channels.count >
      static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    faults.add("more than 2^31 - 1 channels; let the default link's channels be `egress`");
  }
  faults.throw_if_any(parts.name);
  make_routes(faults);
  faults.throw_if_any(parts.name);
  make_means(faults);
  faults.throw_if_any(parts.name);
  for (const Device& device : parts.devices) {
    total_slots += static_cast<std::size_t>(device.streams);
  }
  hash = hash_of(parts);
}

void Cluster::Storage::make_routes(Faults& faults) {
  const std::size_t n_devices = parts.devices.size();
  if (!parts.default_link) {
    table = find_routes(n_devices, parts.links);
    for (std::size_t from = 0; from < n_devices; ++from) {
      for (std::size_t to = 0; to < n_devices; ++to) {
        const Route& route = table[from * n_devices + to];
        if (from == to) continue;
        if (route.n_hops == 0) {
          faults.add("device ", to, " cannot be reached from device ", from,
                     "; add a link, a path of links, or a default link");
        } else if (!std::isfinite(route.latency)) {
          faults.add("the latency from device ", from, " to device ", to, " overflows");
        }
      }
    }
  } else if (n_devices > kSmall) {
    explicit_links.reserve(parts.links.size());
    for (std::size_t i = 0; i < parts.links.size(); ++i) {
      explicit_links.emplace(pair_key(parts.links[i].from, parts.links[i].to), i);
    }
  } else {
    std::vector<Route> routes(n_devices * n_devices);
    for (std::size_t from = 0; from < n_devices; ++from) {
      for (std::size_t to = 0; to < n_devices; ++to) {
        if (from == to) continue;
        const DeviceId a{static_cast<std::int64_t>(from)};
        const DeviceId b{static_cast<std::int64_t>(to)};
        routes[from * n_devices + to] = route(a, b);
      }
    }
    for (const Link& link : parts.links) {
      routes[link.from.index() * n_devices + link.to.index()] = {link.latency, link.bandwidth,
                                                                 link.channel, 1};
    }
    table = std::move(routes);
  }
}

void Cluster::Storage::make_means(Faults& faults) {
  const std::size_t n_devices = parts.devices.size();
  if (n_devices == 1) return;
  const double n_pairs = static_cast<double>(n_devices) * static_cast<double>(n_devices - 1);
  if (parts.default_link && parts.links.empty()) {
    mean_latency = parts.default_link->latency;
    mean_seconds_per_byte = 1 / parts.default_link->bandwidth;
    return;
  }
  double latency = 0;
  double seconds_per_byte = 0;
  if (parts.default_link) {
    const double n_default = n_pairs - static_cast<double>(parts.links.size());
    latency = n_default * parts.default_link->latency;
    seconds_per_byte = n_default / parts.default_link->bandwidth;
    for (const Link& link : parts.links) {
      latency += link.latency;
      seconds_per_byte += 1 / link.bandwidth;
    }
  } else {
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (i / n_devices == i % n_devices) continue;
      latency += table[i].latency;
      seconds_per_byte += 1 / table[i].bandwidth;
    }
  }
  mean_latency = latency / n_pairs;
  mean_seconds_per_byte = seconds_per_byte / n_pairs;
  if (!std::isfinite(mean_latency) || !std::isfinite(mean_seconds_per_byte)) {
    faults.add("latencies or seconds per byte overflow when they are added up");
  }
}

Cluster::Cluster() {
  static const Cluster unit = uniform(1);
  *this = unit;
}

Cluster::Cluster(ClusterParts parts) : storage_(std::make_shared<Storage>(std::move(parts))) {}

Cluster Cluster::uniform(std::int64_t n) {
  ClusterParts parts = unit_parts("uniform", n);
  parts.default_link = DefaultLink{0, 1, DefaultLink::Channels::own, kUnlimited};
  return Cluster(std::move(parts));
}

Cluster Cluster::ring(std::int64_t n) {
  ClusterParts parts = unit_parts("ring", n);  // checks n
  return joined(std::move(parts), ring_pairs(n));
}

Cluster Cluster::mesh(std::int64_t n) {
  ClusterParts parts = unit_parts("mesh", n);  // checks n
  return joined(std::move(parts), mesh_pairs(n, mesh_rows(n)));
}

const std::string& Cluster::name() const { return storage_->parts.name; }
std::size_t Cluster::n_devices() const { return storage_->parts.devices.size(); }
std::size_t Cluster::n_channels() const {
  return storage_->parts.channels.size() + storage_->default_channels.count;
}
std::size_t Cluster::total_slots() const { return storage_->total_slots; }
const Device& Cluster::device(DeviceId device) const {
  return storage_->parts.devices[device.index()];
}
const ClusterParts& Cluster::parts() const { return storage_->parts; }

Route Cluster::route(DeviceId from, DeviceId to) const { return storage_->route(from, to); }

double Cluster::channel_capacity(ChannelId channel) const {
  const ClusterParts& parts = storage_->parts;
  if (channel.index() < parts.channels.size()) return parts.channels[channel.index()].capacity;
  const DefaultLink& link = *parts.default_link;
  return link.capacity == kUnlimited ? link.bandwidth : link.capacity;
}

std::string Cluster::channel_name(ChannelId channel) const {
  const ClusterParts& parts = storage_->parts;
  if (channel.index() < parts.channels.size()) return parts.channels[channel.index()].name;
  return storage_->default_channels.name(channel);
}

double Cluster::mean_latency() const { return storage_->mean_latency; }
double Cluster::mean_seconds_per_byte() const { return storage_->mean_seconds_per_byte; }
std::uint64_t Cluster::hash() const { return storage_->hash; }

bool operator==(const Cluster& a, const Cluster& b) {
  return a.storage_ == b.storage_ || a.storage_->parts == b.storage_->parts;
}

std::ostream& operator<<(std::ostream& out, const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  out << "cluster " << (parts.name.empty() ? "(no name)" : parts.name) << ": ";
  std::map<std::string, std::size_t> n_of_kind;
  for (const Device& device : parts.devices) ++n_of_kind[device.kind];
  const char* separator = "";
  for (const auto& [kind, n] : n_of_kind) {
    out << separator << n << " x " << (kind.empty() ? "device" : kind);
    separator = ", ";
  }
  out << "; " << parts.links.size() << " links" << (parts.default_link ? " and a default" : "")
      << ", " << cluster.n_channels() << " channels";
  return out;
}

}  // namespace doppler
