// Cluster and profile files: round trips, and refusals that name the place.
#include "graphs/cluster_format.h"

#include <cstdio>
#include <filesystem>
#include <random>

#include "graphs/error.h"
#include "graphs/file.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Cluster parse(const std::string& content) { return parse_cluster(content, "c.json"); }

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const ParseError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::string& content) {
  return refusal([&] { parse(content); });
}

std::string refusal_of_profile(const std::string& content) {
  return refusal([&] { parse_profile(content, "p.json"); });
}

// A document of two devices with these further fields.
std::string with(const std::string& fields, const std::string& device_fields = "") {
  return R"({"format": "doppler-cluster", "version": 1, "name": "two", "devices": [{"count": 2,
    "kind": "k", "flops": {"float32": 10}, "bandwidth": "unlimited")" +
         device_fields + "}]" + fields + "}";
}

const std::string kDefault =
    R"(, "default_link": {"latency": 0, "bandwidth": 1, "channels": "own"})";

void check_contains(const std::string& text, const std::string& part) {
  INFO(text << "\nlacks: " << part);
  CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("a cluster reads back as it was written, to the last bit") {
  std::mt19937_64 random(3);
  const auto real = [&] { return std::ldexp(static_cast<double>(random() >> 11) + 1, -40); };
  for (int round = 0; round < 200; ++round) {
    ClusterParts parts;
    parts.name = "random \"\\\n \xc3\xa9";
    parts.enforce_memory = random() % 2 == 0;
    const auto n = static_cast<std::int64_t>(1 + random() % 5);
    for (std::int64_t d = 0; d < n; ++d) {
      Device device = {.kind = "a", .flops = {{DType::float32, real()}}};
      if (random() % 2 == 0) {
        device.flops[DType::bfloat16] = kUnlimited;
        device.bandwidth = real();
        device.launch_overhead = real();
        device.memory = random() % 3 == 0 ? 0 : real();
        device.streams = static_cast<std::int32_t>(1 + random() % 4);
        device.peak_flops = {{DType::int8, real()}};
        device.peak_bandwidth = real();
      }
      parts.devices.push_back(device);
    }
    parts.channels = {{"shared", kUnlimited}, {"", real()}};
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = 0; b < n; ++b) {
        if (a == b || random() % 2 == 0) continue;
        parts.links.push_back({DeviceId{a}, DeviceId{b}, real(),
                               random() % 4 == 0 ? kUnlimited : real(),
                               ChannelId{static_cast<std::int64_t>(random() % 2)}});
      }
    }
    parts.default_link = DefaultLink{real(), real(), DefaultLink::Channels(random() % 2),
                                     random() % 2 == 0 ? kUnlimited : real()};
    parts.sources = {{"devices", "assumption: random"}};
    const Cluster cluster(parts);
    const Cluster again = parse(to_json(cluster));
    REQUIRE(again == cluster);
    REQUIRE(again.hash() == cluster.hash());
  }
}

TEST_CASE("links can be given one by one, both ways, by topology and by default") {
  const Cluster both = parse(with(
      R"(, "links": [{"from": 0, "to": 1, "latency": 3, "bandwidth": 4, "both_ways": true}])"));
  REQUIRE(both.parts().links.size() == 2);
  CHECK(both.route(DeviceId{1}, DeviceId{0}) == Route{3, 4, ChannelId{1}, 1});
  CHECK(both.channel_name(ChannelId{1}) == "1->0");
  CHECK(both.channel_capacity(ChannelId{1}) == 4);

  const Cluster shared = parse(with(
      R"(, "links": [{"from": 0, "to": 1, "latency": 3, "bandwidth": 4, "channel": 0},
                     {"from": 1, "to": 0, "latency": 3, "bandwidth": 4, "channel": 0}],
           "channels": [{"name": "bus", "capacity": "unlimited"}])"));
  CHECK(shared.route(DeviceId{1}, DeviceId{0}).channel == ChannelId{0});
  CHECK(shared.n_channels() == 1);

  const std::string unit = R"({"format": "doppler-cluster", "version": 1, "name": "n", "devices": [
    {"count": 12, "kind": "uniform", "flops": {"float32": 1}, "bandwidth": "unlimited"}],
    "topology": )";
  const auto links_of = [&](const std::string& topology) {
    return parse(unit + topology + "}").parts().links;
  };
  CHECK(links_of(R"({"kind": "ring", "latency": 0, "bandwidth": 1})") ==
        Cluster::ring(12).parts().links);
  CHECK(links_of(R"({"kind": "mesh", "latency": 0, "bandwidth": 1})") ==
        Cluster::mesh(12).parts().links);
  CHECK(links_of(R"({"kind": "mesh", "rows": 2, "latency": 0, "bandwidth": 1})").size() ==
        2 * (2 * 5 + 6));
  check_contains(refusal_of(unit + R"({"kind": "mesh", "rows": 5, "latency": 0, "bandwidth": 1}})"),
                 "/topology/rows: 5 rows do not divide 12 devices");
  check_contains(refusal_of(unit + R"({"kind": "star", "latency": 0, "bandwidth": 1}})"),
                 "/topology/kind: unknown topology 'star'");
}

TEST_CASE("a cluster file that is not understood is refused with its place") {
  CHECK(refusal_of(with(kDefault)) == "accepted");
  const std::pair<std::string, std::string> cases[] = {
      {"", "c.json:1:1: "},
      {"{\n \"format\": }", "c.json:2:12: "},
      {with(kDefault) + "x", "c.json:"},
      {"[]", "expected an object, found []"},
      {"{}", "field \"format\" is missing"},
      {R"({"format": "doppler-graph"})", "/format: this is a 'doppler-graph' file"},
      {R"({"format": "doppler-cluster", "version": 2})", "/version: version 2 is not known"},
      {with(kDefault + R"(, "link": [])"), "/link: unknown field; did you mean links?"},
      {with(kDefault + kDefault), "field 'default_link' is given twice"},
      {with(""), "device 1 cannot be reached from device 0"},
      {with(kDefault, R"(, "flop": 1)"), "/devices/0/flop: unknown field; did you mean flops?"},
      {with(kDefault, R"(, "memory": -1)"), "/devices/0/memory: expected a number of at least 0"},
      {with(kDefault, R"(, "memory": "lots")"), "/devices/0/memory: expected a number"},
      {with(kDefault, R"(, "memory": NaN)"), "c.json:2:"},
      {with(kDefault, R"(, "memory": 1e999)"), "c.json: "},
      {with(kDefault, R"(, "streams": 1.5)"), "/devices/0/streams: expected a whole number"},
      {with(kDefault, R"(, "streams": 0)"), "/devices/0/streams: expected a whole number"},
      {with(kDefault, R"(, "peak_flops": {"float31": 1})"), "/devices/0/peak_flops/float31: "},
      {with(kDefault, R"(, "peak_bandwidth": 0)"), "/devices/0/peak_bandwidth: expected"},
      {with(R"(, "enforce_memory": 1)" + kDefault), "/enforce_memory: expected true or false"},
      {with(R"(, "links": {})"), "/links: expected an array"},
      {with(R"(, "links": [{"from": 0, "to": 2, "latency": 0, "bandwidth": 1}])"),
       "/links/0/to: expected a whole number from 0 to 1, found 2"},
      {with(R"(, "links": [{"from": 0, "to": 1, "latency": 0, "bandwidth": 1, "channel": 0}])"),
       "/links/0/channel: there are no channels"},
      {with(R"(, "links": [{"from": 0, "to": 1, "latency": 0, "bandwidth": 1, "both_ways": true},
                           {"from": 0, "to": 1, "latency": 0, "bandwidth": 1}])"),
       "link 2 (0->1): link 0 joins the same pair"},
      {with(R"(, "default_link": {"latency": 0, "bandwidth": 1, "channels": "ingress"})"),
       "/default_link/channels: unknown channels 'ingress'"},
      {with(kDefault + R"(, "sources": [{"figure": "devices"}])"),
       "/sources/0: field \"source\" is missing"},
  };
  for (const auto& [content, part] : cases) {
    const std::string message = refusal_of(content);
    INFO(content);
    check_contains(message, part);
    CHECK(message.find("c.json") == 0);
    CHECK(message.find("json.exception") == std::string::npos);
  }
}

TEST_CASE("counts that no machine has are refused before anything is allocated") {
  for (const char* count : {"1000000000000", "18446744073709551615", "1e12", "32769", "0", "-1"}) {
    const std::string content = R"({"format": "doppler-cluster", "version": 1, "name": "n",
      "devices": [{"count": )" + std::string(count) +
                                R"(, "kind": "k", "flops": {"float32": 1}, "bandwidth": 1}]})";
    check_contains(refusal_of(content),
                   "/devices/0/count: expected a whole number from 1 to 32768");
  }
  std::string groups;
  for (int i = 0; i < 3; ++i) {
    groups += std::string(i > 0 ? "," : "") +
              R"({"count": 20000, "kind": "k", "flops": {"float32": 1}, "bandwidth": 1})";
  }
  check_contains(
      refusal_of(R"({"format": "doppler-cluster", "version": 1, "name": "n", "devices": [)" +
                 groups + "]" + kDefault + "}"),
      "/devices/1: more than 32768 devices in all");
  check_contains(refusal_of(std::string(100000, '[')), "nested more than 64 deep");
}

TEST_CASE("no truncation or changed byte of a cluster file does more than be refused") {
  const std::string content = to_json(Cluster::ring(3));
  for (std::size_t size = 0; size < content.size() - 2; ++size) {
    CHECK(refusal_of(content.substr(0, size)) != "accepted");
  }
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = content;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    (void)refusal_of(changed);  // any exception but ParseError fails the test
  }
}

TEST_CASE("a refusal stays short however long the text is that it refuses") {
  const std::string text(100000, 'x');
  for (const std::string& content :
       {"\"" + text, "{\"format\": \"" + text + "\"}", with(kDefault + ", \"" + text + "\": 1"),
        with(kDefault, ", \"memory\": \"" + text + "\""),
        with(kDefault, ", \"kind\": \"" + text + "\""),
        with(kDefault, ", \"peak_flops\": {\"" + text + "\": 1}"),
        with(", \"topology\": {\"kind\": \"" + text + "\", \"latency\": 0, \"bandwidth\": 1}")}) {
    const std::string message = refusal_of(content);
    CHECK(message != "accepted");
    CHECK(message.size() < 500);
  }
  check_contains(refusal_of(with(kDefault, R"(, "peak_bandwidth": 1e-320)")), "too small");
}

TEST_CASE("names that JSON cannot hold are refused by the writer") {
  ClusterParts parts = Cluster::uniform(1).parts();
  parts.name = "\xff";
  CHECK_THROWS_AS(to_json(Cluster(parts)), InvalidError);
}

TEST_CASE("clusters and profiles are read from files") {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string path = (folder / "doppler_test_cluster.json").string();
  write_file(path, to_json(Cluster::mesh(6)));
  CHECK(read_cluster(path) == Cluster::mesh(6));
  CHECK_THROWS_AS(read_profile(path), ParseError);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(read_cluster(path), RunError);
}

TEST_CASE("a profile reads back as it was written") {
  Profile profile;
  profile.compute["a"]["einsum float32 flops=1"] = 0.1 + 0.2;
  profile.compute["a"]["copy"] = 0;
  profile.compute["b"] = {};
  profile.links[{DeviceId{0}, DeviceId{1}}] = {.latency = 1e-6 / 3, .bandwidth = 12e9};
  profile.links[{DeviceId{1}, DeviceId{0}}] = {};
  CHECK(parse_profile(to_json(profile), "p.json") == profile);
  CHECK(parse_profile(to_json(Profile{}), "p.json") == Profile{});
  profile.compute["a"]["copy"] = -1;
  CHECK_THROWS_AS(to_json(profile), InvalidError);
}

TEST_CASE("a profile file that is not understood is refused with its place") {
  const std::string head = R"({"format": "doppler-profile", "version": 1, )";
  const std::pair<std::string, std::string> cases[] = {
      {head + R"("links": []})", "p.json: field \"compute\" is missing"},
      {head + R"("compute": {"a": {"x": -1}}})", "p.json: /compute/a/x: expected a number"},
      {head + R"("compute": {"a": {"x": 1, "x": 2}}})", "field 'x' is given twice"},
      {head + R"("compute": {}, "links": [{"from": 1, "to": 1, "latency": 0, "bandwidth": 1}]})",
       "/links/0: joins a device to itself"},
      {head + R"("compute": {}, "links": [{"from": 0, "to": 1, "latency": 0, "bandwidth": 1},
                                          {"from": 0, "to": 1, "latency": 0, "bandwidth": 1}]})",
       "/links/1: this pair is given twice"},
      {head + R"("compute": {}, "links": [{"from": 0, "to": 1000000000000, "latency": 0,
                 "bandwidth": 1}]})",
       "/links/0/to: expected a whole number from 0 to 32767"},
  };
  for (const auto& [content, part] : cases) {
    check_contains(refusal_of_profile(content), part);
  }
}

TEST_CASE("A zero byte anywhere in a cluster or profile is refused with its place") {
  const std::string cluster = to_json(Cluster::uniform(2));
  const std::string profile = to_json(Profile{});
  for (const std::string& tail : {std::string("\0", 1), std::string("\0rubbish", 8)}) {
    CHECK(refusal_of(cluster + tail).find("zero byte") != std::string::npos);
    CHECK(refusal_of_profile(profile + tail).find("zero byte") != std::string::npos);
  }
  CHECK(refusal_of(std::string("\0", 1)).starts_with("c.json:1:1: "));
}

}  // namespace
}  // namespace doppler
