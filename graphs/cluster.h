// Devices and the links between them.
//
// A Cluster is an immutable regular value (copies share storage). Links are given one by one, by a
// default for every ordered pair that has none, or both, so that 1024 devices need no 10^6 rows.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/graph.h"
#include "graphs/ids.h"

namespace doppler {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
inline constexpr std::size_t kMaxDevices = 32768;  // of a cluster; 4096 without a default link
inline constexpr std::int32_t kMaxStreams = 4096;  // of a device

// One processor. Effective rates are what real kernels reach and what costs are made of; peak rates
// are the vendor's, for information.
struct Device {
  std::string kind = {};                                  // "p100", "uniform"
  std::map<DType, double> flops = {{DType::float32, 1}};  // effective FLOP/s by dtype; > 0
  double bandwidth = kUnlimited;                          // effective memory bytes/s; > 0
  double launch_overhead = 0;                             // seconds before every node; >= 0
  double memory = kUnlimited;                             // bytes
  std::int32_t streams = 1;                               // compute slots; >= 1
  std::map<DType, double> peak_flops = {};                // FLOP/s; empty: unknown
  double peak_bandwidth = kUnlimited;                     // bytes/s; kUnlimited: unknown

  // Effective FLOP/s for a dtype; that of float32 if the dtype has none of its own.
  [[nodiscard]] double flops_for(DType dtype) const;
  friend bool operator==(const Device&, const Device&) = default;
};

// What transfers contend for: an egress port, one direction of a cable.
struct Channel {
  std::string name = {};
  double capacity = kUnlimited;  // bytes/s that `fair` shares; > 0
  friend bool operator==(const Channel&, const Channel&) = default;
};

// A directed connection. It has exactly one channel.
struct Link {
  DeviceId from = {};
  DeviceId to = {};
  double latency = 0;             // seconds; >= 0
  double bandwidth = kUnlimited;  // bytes/s; > 0
  ChannelId channel = {};
  friend bool operator==(const Link&, const Link&) = default;
};

// A link for every ordered pair of different devices that no Link names.
struct DefaultLink {
  enum class Channels : std::uint8_t {
    own,    // a channel for each ordered pair
    egress  // a channel for each source device, shared by all its default links
  };
  double latency = 0;
  double bandwidth = kUnlimited;
  Channels channels = Channels::own;
  double capacity = kUnlimited;  // of each of these channels; kUnlimited stands for `bandwidth`
  friend bool operator==(const DefaultLink&, const DefaultLink&) = default;
};

// What a transfer between two devices meets: a link, or a path of links of which the slowest one's
// channel is held.
struct Route {
  double latency = 0;             // seconds; summed over the path from its source on
  double bandwidth = kUnlimited;  // bytes/s; the smallest on the path
  ChannelId channel = {};
  std::int32_t n_hops = 1;
  friend bool operator==(const Route&, const Route&) = default;
};

// Where a figure of a cluster comes from: a data sheet or measurement, or "assumption: why". A
// figure is named "devices.KIND.FIELD", "links.FIELD" or "default_link.FIELD"; a shorter name
// stands for all figures that begin with it.
struct Source {
  std::string figure = {};  // e.g. "devices.p100.bandwidth"
  std::string source = {};
  friend bool operator==(const Source&, const Source&) = default;
};

// The parts of a cluster, to be checked by Cluster's constructor.
struct ClusterParts {
  std::string name = {};
  std::vector<Device> devices = {};
  std::vector<Channel> channels = {};  // of `links`; those of the default link follow them
  std::vector<Link> links = {};
  std::optional<DefaultLink> default_link = std::nullopt;
  std::vector<Source> sources = {};
  bool enforce_memory = false;  // what RunOptions::enforce_memory is for tasks on this cluster
  friend bool operator==(const ClusterParts&, const ClusterParts&) = default;
};

class Cluster {
 public:
  Cluster();  // one device of rate 1
  // Copies share storage. There is no move: what was moved from is still the same cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;

  // Checks the parts as a whole and finds a route for each pair: the link if there is one, else a
  // path: fewest hops, then least latency, then larger bandwidth, then smaller device ids along it.
  // Throws InvalidError that lists every fault: no devices, rates or bandwidths that are not
  // positive, negative latencies, NaN, fewer than one stream, a link to itself, two links for one
  // pair, ids out of range, too many devices, a pair that cannot be reached. O(links) with a
  // default link; without one as find_routes() (cluster_routes.h), and memory O(devices^2).
  explicit Cluster(ClusterParts parts);

  // `n` devices of rate 1 without latency, bandwidth 1, an own channel for each directed pair.
  // These three throw UsageError unless n is 1 to 4096.
  static Cluster uniform(std::int64_t n);
  // The same devices, linked to both neighbours on a ring (n = 2: one link each way).
  static Cluster ring(std::int64_t n);
  // The same devices on a two-dimensional grid with links both ways; rows = largest divisor of n up
  // to sqrt(n); device = row * columns + column.
  static Cluster mesh(std::int64_t n);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::size_t n_devices() const;
  [[nodiscard]] std::size_t n_channels() const;
  [[nodiscard]] std::size_t total_slots() const;  // sum of streams
  [[nodiscard]] const Device& device(DeviceId device) const;
  [[nodiscard]] const ClusterParts& parts() const;

  // Requires from != to; O(1); thread safe.
  [[nodiscard]] Route route(DeviceId from, DeviceId to) const;
  // Channels of `parts().channels` come first; then those of the default link: for `egress` one a
  // source device, for `own` n_devices - 1 a source device, in the order of the other devices.
  [[nodiscard]] double channel_capacity(ChannelId channel) const;
  [[nodiscard]] std::string channel_name(ChannelId channel) const;

  // Means over the ordered pairs of different devices, 0 with one device: the mean time to send x
  // bytes is mean_latency() + x * mean_seconds_per_byte().
  [[nodiscard]] double mean_latency() const;
  [[nodiscard]] double mean_seconds_per_byte() const;

  // Equal for equal clusters, on every machine: of what can change a result, so not of names,
  // sources and peak figures.
  [[nodiscard]] std::uint64_t hash() const;

  friend bool operator==(const Cluster& a, const Cluster& b);
  friend std::ostream& operator<<(std::ostream& out, const Cluster& cluster);

 private:
  struct Storage;
  std::shared_ptr<const Storage> storage_;
};

}  // namespace doppler
