// Every registered cluster, and the presets against the topologies that their sources describe.
#include "datasets/clusters.h"

#include <filesystem>
#include <map>

#include "graphs/cluster_format.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

// Whether a source stands for the figure: it names it or the beginning of it.
bool has_source(const ClusterParts& parts, const std::string& figure) {
  for (const Source& source : parts.sources) {
    if (figure == source.figure || figure.starts_with(source.figure + ".")) return true;
  }
  return false;
}

void check_sources(const Cluster& cluster) {
  const ClusterParts& parts = cluster.parts();
  std::vector<std::string> figures;
  for (const Device& device : parts.devices) {
    const std::string prefix = "devices." + device.kind + ".";
    for (const char* field : {"bandwidth", "launch_overhead", "memory", "streams"}) {
      figures.push_back(prefix + field);
    }
    for (const auto& [dtype, rate] : device.flops) {
      figures.push_back(prefix + "flops." + std::string(to_string(dtype)));
    }
    for (const auto& [dtype, rate] : device.peak_flops) {
      figures.push_back(prefix + "peak_flops." + std::string(to_string(dtype)));
    }
    if (device.peak_bandwidth != kUnlimited) figures.push_back(prefix + "peak_bandwidth");
  }
  if (!parts.links.empty()) {
    for (const char* field : {"latency", "bandwidth", "channels"}) {
      figures.push_back("links." + std::string(field));
    }
  }
  if (parts.default_link) {
    for (const char* field : {"latency", "bandwidth", "channels", "capacity"}) {
      figures.push_back("default_link." + std::string(field));
    }
  }
  for (const std::string& figure : figures) {
    INFO(figure << " has no source");
    CHECK(has_source(parts, figure));
  }
  for (const Source& source : parts.sources) {
    INFO(source.figure << ": " << source.source);
    const bool is_marked = source.source.starts_with("assumption: ") ||
                           source.source.starts_with("by definition: ") ||
                           source.source.starts_with("measured: ") ||
                           source.source.find("NVIDIA") != std::string::npos ||
                           source.source.find("https://") != std::string::npos;
    CHECK(is_marked);
  }
}

TEST_CASE("every registered cluster is whole, sourced, and survives a file") {
  CHECK(clusters().size() == 11);
  for (const auto& [name, entry] : clusters()) {
    INFO(name);
    CHECK_FALSE(entry.summary.empty());
    CHECK_FALSE(entry.source.empty());
    const Cluster cluster = make_cluster(name);
    if (entry.parameters.empty()) CHECK(cluster.name() == name);
    const auto n = static_cast<std::int64_t>(cluster.n_devices());
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = 0; b < n; ++b) {
        if (a == b) continue;
        const Route route = cluster.route(DeviceId{a}, DeviceId{b});
        CHECK(route.bandwidth > 0);
        CHECK(route.n_hops >= 1);
        REQUIRE(route.channel.index() < cluster.n_channels());
        CHECK(cluster.channel_capacity(route.channel) > 0);
        CHECK_FALSE(cluster.channel_name(route.channel).empty());
      }
    }
    for (const Device& device : cluster.parts().devices) {
      for (const auto& [dtype, peak] : device.peak_flops) {
        CHECK(device.flops_for(dtype) < peak);
        CHECK(device.flops.contains(dtype));
      }
      CHECK((device.peak_bandwidth == kUnlimited || device.bandwidth < device.peak_bandwidth));
    }
    check_sources(cluster);
    const Cluster again = parse_cluster(to_json(cluster), name);
    CHECK(again == cluster);
    CHECK(again.hash() == cluster.hash());
    const bool is_unit = !entry.parameters.empty();
    CHECK(cluster.parts().enforce_memory == !is_unit);
  }
}

TEST_CASE("p100 clusters send over one egress channel a device") {
  for (const auto& [name, n] : {std::pair("p100x4", 4), std::pair("p100x8", 8)}) {
    const Cluster cluster = make_cluster(name);
    REQUIRE(cluster.n_devices() == static_cast<std::size_t>(n));
    CHECK(cluster.n_channels() == cluster.n_devices());
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a != b) CHECK(cluster.route(DeviceId{a}, DeviceId{b}).channel == ChannelId{a});
      }
    }
    CHECK(cluster.device(DeviceId{0}).peak_flops.at(DType::float32) == 9.3e12);
    CHECK(cluster.device(DeviceId{0}).peak_bandwidth == 732e9);
    CHECK(cluster.device(DeviceId{0}).memory == 16e9);
  }
}

TEST_CASE("v100x8 is the hybrid cube mesh: six NVLink bricks a device, else PCIe") {
  const Cluster cluster = make_cluster("v100x8");
  // The hybrid cube mesh by its structure: two fully connected quads 0-3 and 4-7 and the edges
  // between them; each line, doubled bricks.
  const std::map<std::pair<int, int>, int> bricks = {
      {{0, 3}, 2}, {{0, 4}, 2}, {{1, 2}, 2}, {{1, 5}, 2}, {{2, 3}, 2}, {{4, 7}, 2},
      {{5, 6}, 2}, {{6, 7}, 2}, {{0, 1}, 1}, {{0, 2}, 1}, {{1, 3}, 1}, {{2, 6}, 1},
      {{3, 7}, 1}, {{4, 5}, 1}, {{4, 6}, 1}, {{5, 7}, 1}};
  const double brick = cluster.route(DeviceId{0}, DeviceId{1}).bandwidth;
  CHECK(brick == 24e9);
  std::map<ChannelId, int> n_on_channel;
  std::map<int, ChannelId> egress;
  for (int a = 0; a < 8; ++a) {
    int n_bricks = 0;
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      const Route route = cluster.route(DeviceId{a}, DeviceId{b});
      const auto found = bricks.find({std::min(a, b), std::max(a, b)});
      INFO(a << "->" << b);
      CHECK(route.n_hops == 1);
      if (found != bricks.end()) {
        CHECK(route.bandwidth == found->second * brick);
        CHECK(++n_on_channel[route.channel] == 1);
        CHECK(cluster.channel_capacity(route.channel) == route.bandwidth);
        n_bricks += found->second;
      } else {
        CHECK(route.bandwidth == 12e9);
        CHECK(n_on_channel.count(route.channel) == 0);
        if (egress.contains(a)) CHECK(egress[a] == route.channel);
        egress[a] = route.channel;
      }
    }
    CHECK(n_bricks == 6);
    const bool is_low = a < 4;
    for (int b = is_low ? 0 : 4; b < (is_low ? 4 : 8); ++b) {  // its quad is fully connected
      if (a != b) CHECK(bricks.contains({std::min(a, b), std::max(a, b)}));
    }
  }
  CHECK(n_on_channel.size() == 32);
  CHECK(egress.size() == 8);
}

TEST_CASE("switched clusters have an egress channel a device, mixed has two kinds") {
  for (const char* name : {"a100x8", "h100x8", "h200x8"}) {
    const Cluster cluster = make_cluster(name);
    CHECK(cluster.n_devices() == 8);
    CHECK(cluster.n_channels() == 8);
  }
  CHECK(make_cluster("h200x8").device(DeviceId{0}).memory == 141e9);
  const Cluster mixed = make_cluster("mixed");
  CHECK(mixed.device(DeviceId{1}).kind == "v100-pcie");
  CHECK(mixed.device(DeviceId{2}).kind == "p100");
  CHECK(mixed.device(DeviceId{2}) == make_cluster("p100x4").device(DeviceId{0}));
  CHECK(make_cluster("cpu2").n_devices() == 2);
}

TEST_CASE("parametric clusters take their size within bounds") {
  CHECK(make_cluster("uniform(8)") == Cluster::uniform(8));
  CHECK(make_cluster("ring(n=5)") == Cluster::ring(5));
  CHECK(make_cluster("mesh(6)") == Cluster::mesh(6));
  CHECK(make_cluster("uniform") == Cluster::uniform(4));
  CHECK(make_cluster("uniform(4096)").n_devices() == 4096);
  for (const char* bad : {"uniform(0)", "uniform(-1)", "uniform(4097)", "mesh(1000000000000)",
                          "ring(2.5)", "ring(m=3)", "p100x4(2)", "p100x5", "", "uniform("}) {
    INFO(bad);
    CHECK_THROWS_AS(make_cluster(bad), UsageError);
  }
}

TEST_CASE("a cluster is also taken from a file") {
  const auto path = std::filesystem::temp_directory_path() / "doppler_test_own_cluster.json";
  write_file(path.string(), to_json(make_cluster("mixed")));
  CHECK(make_cluster(path.string()) == make_cluster("mixed"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(make_cluster(path.string()), RunError);
  CHECK_THROWS_AS(make_cluster("no_such_file.json"), RunError);
}

}  // namespace
}  // namespace doppler
