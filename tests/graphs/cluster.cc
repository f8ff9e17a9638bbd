// Clusters: the checks, and routes against the enumeration of every simple path.
#include "graphs/cluster.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <tuple>

#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

DeviceId device(std::int64_t index) { return DeviceId{index}; }

ClusterParts parts_of(std::size_t n_devices) {
  ClusterParts parts;
  parts.name = "test";
  parts.devices.assign(n_devices, Device{.kind = "unit"});
  return parts;
}

// A link with a channel of its own.
void add(ClusterParts& parts, std::int64_t from, std::int64_t to, double latency,
         double bandwidth) {
  const ChannelId channel{static_cast<std::int64_t>(parts.channels.size())};
  parts.links.push_back({device(from), device(to), latency, bandwidth, channel});
  parts.channels.push_back({std::to_string(from) + ">" + std::to_string(to), bandwidth});
}

std::string fault_of(const ClusterParts& parts) {
  try {
    Cluster cluster(parts);
  } catch (const InvalidError& error) {
    return error.what();
  }
  return "no fault";
}

void check_contains(const std::string& text, const std::string& part) {
  INFO(text << "\nlacks: " << part);
  CHECK(text.find(part) != std::string::npos);
}

// The definition, taken literally: every simple path, compared by hops, latency, bandwidth, ids.
class AllPaths {
 public:
  AllPaths(const ClusterParts& parts, DeviceId from, DeviceId to) : parts_(parts), to_(to) {
    ids_ = {from};
    extend();
  }
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const Route& best() const { return best_; }

 private:
  void extend() {
    if (ids_.back() == to_) {
      judge();
      return;
    }
    for (const Link& link : parts_.links) {
      if (link.from != ids_.back()) continue;
      if (std::find(ids_.begin(), ids_.end(), link.to) != ids_.end()) continue;
      ids_.push_back(link.to);
      links_.push_back(link);
      extend();
      ids_.pop_back();
      links_.pop_back();
    }
  }
  void judge() {
    Route route;
    route.n_hops = static_cast<std::int32_t>(links_.size());
    for (const Link& link : links_) {
      route.latency += link.latency;
      route.bandwidth = std::min(route.bandwidth, link.bandwidth);
    }
    for (const Link& link : links_) {
      if (link.bandwidth != route.bandwidth) continue;
      route.channel = link.channel;
      break;
    }
    const auto key = std::tuple(route.n_hops, route.latency, -route.bandwidth, ids_);
    if (found_ && best_key_ <= key) return;
    found_ = true;
    best_ = route;
    best_key_ = key;
  }

  const ClusterParts& parts_;
  DeviceId to_;
  std::vector<DeviceId> ids_;
  std::vector<Link> links_;
  bool found_ = false;
  Route best_;
  std::tuple<std::int32_t, double, double, std::vector<DeviceId>> best_key_;
};

TEST_CASE("routes are the best of all simple paths on small random clusters") {
  std::mt19937 random(7);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int n_checked = 0;
  int n_long = 0;
  for (int round = 0; round < 1500; ++round) {
    const int n = 2 + draw(6);
    const int percent = 25 + draw(60);
    const int n_values = 1 + draw(3);  // few values: many ties
    ClusterParts parts = parts_of(static_cast<std::size_t>(n));
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b || draw(100) >= percent) continue;
        const double bandwidth = draw(8) == 0 ? kUnlimited : 1 + draw(n_values);
        add(parts, a, b, draw(n_values) * 0.25, bandwidth);
      }
    }
    std::shuffle(parts.links.begin(), parts.links.end(), random);
    bool connected = true;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a != b) connected = connected && AllPaths(parts, device(a), device(b)).found();
      }
    }
    if (!connected) {
      check_contains(fault_of(parts), "cannot be reached");
      continue;
    }
    const Cluster cluster(parts);
    double latency = 0;
    double seconds_per_byte = 0;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b) continue;
        const Route expected = AllPaths(parts, device(a), device(b)).best();
        const Route route = cluster.route(device(a), device(b));
        INFO("round " << round << " pair " << a << "->" << b);
        REQUIRE(route == expected);
        latency += expected.latency;
        seconds_per_byte += 1 / expected.bandwidth;
        ++n_checked;
        if (route.n_hops > 2) ++n_long;
      }
    }
    const double n_pairs = n * (n - 1);
    CHECK(cluster.mean_latency() == Approx(latency / n_pairs));
    CHECK(cluster.mean_seconds_per_byte() == Approx(seconds_per_byte / n_pairs));
  }
  CHECK(n_checked > 2000);
  CHECK(n_long > 50);
}

TEST_CASE("a path is chosen as a whole, not by its best prefix") {
  // To 3 both 0-1-3 and 0-2-3 have bottleneck 1, so the smaller ids win, although 2 is reached
  // wider.
  ClusterParts parts = parts_of(4);
  add(parts, 0, 1, 1, 1);
  add(parts, 0, 2, 1, 5);
  add(parts, 1, 3, 1, 5);
  add(parts, 2, 3, 1, 1);
  add(parts, 3, 0, 0, 9);
  const Cluster cluster(parts);
  const Route route = cluster.route(device(0), device(3));
  CHECK(route == Route{.latency = 2, .bandwidth = 1, .channel = ChannelId{0}, .n_hops = 2});
  // 1-3-0-2 holds the channel of its slowest link, 0-2 with 5; the first such is 1-3.
  CHECK(cluster.route(device(1), device(2)) ==
        Route{.latency = 2, .bandwidth = 5, .channel = ChannelId{2}, .n_hops = 3});
}

TEST_CASE("the default link stands for every pair without a link of its own") {
  for (const std::size_t n : {std::size_t{3}, std::size_t{100}}) {
    ClusterParts parts = parts_of(n);
    add(parts, 0, 1, 0.5, 4);
    parts.default_link = DefaultLink{2, 8, DefaultLink::Channels::own, kUnlimited};
    const Cluster own(parts);
    CHECK(own.n_channels() == 1 + n * (n - 1));
    CHECK(own.route(device(0), device(1)) == Route{0.5, 4, ChannelId{0}, 1});
    std::vector<bool> used(own.n_channels(), false);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b) continue;
        const DeviceId from = device(static_cast<std::int64_t>(a));
        const DeviceId to = device(static_cast<std::int64_t>(b));
        const Route route = own.route(from, to);
        REQUIRE(route.channel.index() < own.n_channels());
        REQUIRE_FALSE(used[route.channel.index()]);
        used[route.channel.index()] = true;
        if (a == 0 && b == 1) continue;
        REQUIRE(route.latency == 2);
        REQUIRE(route.bandwidth == 8);
        REQUIRE(own.channel_capacity(route.channel) == 8);
        REQUIRE(own.channel_name(route.channel) == std::to_string(a) + "->" + std::to_string(b));
      }
    }
    const double n_pairs = static_cast<double>(n * (n - 1));
    CHECK(own.mean_latency() == Approx((2 * (n_pairs - 1) + 0.5) / n_pairs));
    CHECK(own.mean_seconds_per_byte() == Approx(((n_pairs - 1) / 8 + 0.25) / n_pairs));

    parts.default_link = DefaultLink{2, 8, DefaultLink::Channels::egress, 3};
    const Cluster egress(parts);
    CHECK(egress.n_channels() == 1 + n);
    CHECK(egress.route(device(2), device(0)).channel == ChannelId{3});
    CHECK(egress.route(device(2), device(1)).channel == ChannelId{3});
    CHECK(egress.channel_capacity(ChannelId{3}) == 3);
    CHECK(egress.channel_name(ChannelId{3}) == "egress 2");
  }
}

TEST_CASE("uniform, ring and mesh have the links that they promise") {
  const Cluster uniform = Cluster::uniform(4);
  CHECK(uniform.n_devices() == 4);
  CHECK(uniform.total_slots() == 4);
  CHECK(uniform.n_channels() == 12);
  CHECK(uniform.mean_latency() == 0);
  CHECK(uniform.mean_seconds_per_byte() == 1);
  CHECK(uniform.device(device(3)).flops_for(DType::float16) == 1);
  CHECK(uniform.device(device(3)).memory == kUnlimited);
  CHECK_FALSE(uniform.parts().enforce_memory);
  CHECK(Cluster() == Cluster::uniform(1));
  CHECK(Cluster().mean_seconds_per_byte() == 0);

  const Cluster ring = Cluster::ring(7);
  CHECK(ring.parts().links.size() == 14);
  for (int a = 0; a < 7; ++a) {
    for (int b = 0; b < 7; ++b) {
      if (a == b) continue;
      const int around = std::abs(a - b);
      CHECK(ring.route(device(a), device(b)).n_hops == std::min(around, 7 - around));
    }
  }
  CHECK(Cluster::ring(2).parts().links.size() == 2);
  CHECK(Cluster::ring(1).parts().links.empty());

  const Cluster mesh = Cluster::mesh(12);  // 3 rows of 4
  CHECK(mesh.parts().links.size() == 2 * (3 * 3 + 2 * 4));
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < 12; ++b) {
      if (a == b) continue;
      const int hops = std::abs(a / 4 - b / 4) + std::abs(a % 4 - b % 4);
      CHECK(mesh.route(device(a), device(b)).n_hops == hops);
    }
  }
  CHECK(Cluster::mesh(7).parts().links.size() == 12);  // a prime is one row
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{4097}}) {
    CHECK_THROWS_AS(Cluster::uniform(n), UsageError);
    CHECK_THROWS_AS(Cluster::ring(n), UsageError);
    CHECK_THROWS_AS(Cluster::mesh(n), UsageError);
  }
}

TEST_CASE("a thousand devices need no million rows") {
  const Cluster cluster = Cluster::uniform(1024);
  CHECK(cluster.n_channels() == 1024 * 1023);
  CHECK(cluster.parts().links.empty());
  CHECK(cluster.route(device(1023), device(1022)).channel == ChannelId{1024 * 1023 - 1});
  CHECK(cluster.channel_name(ChannelId{1024 * 1023 - 1}) == "1023->1022");
  CHECK(Cluster::mesh(256).route(device(0), device(255)).n_hops == 30);
}

TEST_CASE("every fault of a cluster is told at once") {
  ClusterParts parts = parts_of(3);
  parts.devices[0].flops = {{DType::float16, 1}};
  parts.devices[1].bandwidth = -1;
  parts.devices[1].launch_overhead = std::nan("");
  parts.devices[2].streams = 0;
  parts.devices[2].memory = -5;
  add(parts, 0, 0, 0, 1);
  add(parts, 0, 1, -1, 0);
  add(parts, 0, 1, 0, 1);
  add(parts, 0, 7, 0, std::nan(""));
  parts.links.back().channel = ChannelId{9};
  const std::string fault = fault_of(parts);
  for (const char* part : {
           "device 0 ('unit'): no FLOP/s for float32",
           "device 1 ('unit'): bandwidth is -1",
           "device 1 ('unit'): launch_overhead is nan",
           "device 2 ('unit'): streams is 0",
           "device 2 ('unit'): memory is -5",
           "link 0 (0->0): joins a device to itself",
           "link 1 (0->1): latency is -1",
           "link 1 (0->1): bandwidth is 0",
           "link 2 (0->1): link 1 joins the same pair",
           "link 3 (0->7): there is no device 7",
       }) {
    check_contains(fault, part);
  }
  check_contains(fault_of(ClusterParts{.name = "none"}), "no devices");
}

TEST_CASE("what cannot be reached, held or added up is refused") {
  ClusterParts parts = parts_of(3);
  add(parts, 0, 1, 0, 1);
  add(parts, 1, 2, 0, 1);
  add(parts, 2, 1, 0, 1);
  check_contains(fault_of(parts), "device 0 cannot be reached from device 1");
  CHECK(fault_of(parts).find("device 2 cannot be reached") == std::string::npos);

  ClusterParts many = parts_of(4097);
  check_contains(fault_of(many), "4097 devices; at most 4096");
  many.default_link = DefaultLink{};
  CHECK(fault_of(many) == "no fault");

  ClusterParts slow = parts_of(3);
  add(slow, 0, 1, 1e308, 1);
  add(slow, 1, 2, 1e308, 1);
  add(slow, 2, 0, 0, 1);
  check_contains(fault_of(slow), "overflows");
  slow.links[0].bandwidth = 1e-320;
  check_contains(fault_of(slow), "too small");

  ClusterParts lonely = parts_of(40);
  const std::string fault = fault_of(lonely);
  check_contains(fault, "and 1545 more");  // of 40 x 39 pairs
}

TEST_CASE("ids out of range, NaN and small channels are faults") {
  ClusterParts parts = parts_of(2);
  parts.default_link = DefaultLink{-1, 0, DefaultLink::Channels::own, std::nan("")};
  add(parts, 0, 1, 0, std::nan(""));
  parts.links.back().channel = ChannelId{9};
  parts.channels[0] = {"port", 0};
  parts.sources = {{"", "x"}};
  const std::string fault = fault_of(parts);
  for (const char* part :
       {"link 0 (0->1): there is no channel 9", "link 0 (0->1): bandwidth is nan",
        "channel 0 ('port'): capacity is 0", "default link: latency is -1",
        "default link: bandwidth is 0", "default link: capacity is nan", "source 0: name"}) {
    check_contains(fault, part);
  }
  parts.name = std::string(100000, 'n');
  CHECK(fault_of(parts).size() < 2000);
}

TEST_CASE("many different bandwidths on many devices are no burden") {
  // A star: device 0 reaches every other over its own bandwidth.
  ClusterParts parts = parts_of(1024);
  for (int d = 1; d < 1024; ++d) {
    add(parts, 0, d, 1, d);
    add(parts, d, 0, 1, 2000 - d);
  }
  const Cluster cluster(parts);
  CHECK(cluster.route(device(3), device(5)) == Route{2, 5, ChannelId{8}, 2});
  CHECK(cluster.route(device(1020), device(1010)) == Route{2, 980, ChannelId{2039}, 2});
}

TEST_CASE("unlimited bandwidth costs nothing") {
  ClusterParts parts = parts_of(2);
  parts.default_link = DefaultLink{};
  const Cluster cluster(parts);
  CHECK(cluster.mean_seconds_per_byte() == 0);
  CHECK(cluster.channel_capacity(ChannelId{0}) == kUnlimited);
}

TEST_CASE("clusters are equal by content, and what changes results changes the hash") {
  const Cluster base = Cluster::uniform(3);
  CHECK(base == Cluster::uniform(3));
  CHECK(base.hash() == Cluster::uniform(3).hash());
  CHECK_FALSE(base == Cluster::uniform(4));
  ClusterParts renamed = base.parts();
  renamed.name = "other";
  renamed.sources.clear();
  CHECK_FALSE(Cluster(renamed) == base);
  CHECK(Cluster(renamed).hash() == base.hash());
  std::vector<std::uint64_t> hashes = {base.hash(), Cluster::uniform(4).hash(),
                                       Cluster::ring(3).hash(), Cluster::mesh(3).hash()};
  const auto changed = [&](auto change) {
    ClusterParts parts = base.parts();
    change(parts);
    hashes.push_back(Cluster(parts).hash());
  };
  changed([](ClusterParts& p) { p.devices[1].flops[DType::float32] = 2; });
  changed([](ClusterParts& p) { p.devices[2].flops[DType::float32] = 2; });
  changed([](ClusterParts& p) { p.devices[1].flops[DType::int8] = 1; });
  changed([](ClusterParts& p) { p.devices[1].kind = "x"; });
  changed([](ClusterParts& p) { p.devices[1].streams = 2; });
  changed([](ClusterParts& p) { p.devices[1].memory = 2; });
  changed([](ClusterParts& p) { p.devices[1].bandwidth = 2; });
  changed([](ClusterParts& p) { p.devices[1].launch_overhead = 2; });
  changed([](ClusterParts& p) { p.default_link->latency = 2; });
  changed([](ClusterParts& p) { p.default_link->bandwidth = 2; });
  changed([](ClusterParts& p) { p.default_link->capacity = 2; });
  changed([](ClusterParts& p) { p.default_link->channels = DefaultLink::Channels::egress; });
  changed([](ClusterParts& p) { p.enforce_memory = true; });
  changed([](ClusterParts& p) { add(p, 0, 1, 0, 1); });
  changed([](ClusterParts& p) { add(p, 1, 0, 0, 1); });
  std::sort(hashes.begin(), hashes.end());
  CHECK(std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end());
  std::ostringstream out;
  out << base;
  CHECK(out.str() == "cluster uniform(3): 3 x uniform; 0 links and a default, 6 channels");
}

}  // namespace
}  // namespace doppler
