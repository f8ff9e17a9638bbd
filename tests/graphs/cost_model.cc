// Cost models against closed formulas.
#include "graphs/cost_model.h"

#include <cmath>
#include <sstream>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

constexpr NodeId kProduct{0};
constexpr NodeId kCopy{1};
constexpr NodeId kNothing{2};

// A product in float16, a copy bound by memory, and a node without cost.
Graph graph() {
  GraphBuilder builder("three");
  builder.add_node({.name = "product",
                    .kind = "einsum",
                    .flops = 800,
                    .bytes_read = 20,
                    .bytes_written = 10,
                    .outputs = {{.bytes = 10, .shape = {5, 1}, .dtype = DType::float16}}});
  builder.add_node({.name = "copy",
                    .kind = "copy",
                    .flops = 8,
                    .bytes_read = 60,
                    .bytes_written = 40,
                    .outputs = {{.bytes = 40, .shape = {10}}}});
  builder.add_node({.name = "nothing"});
  builder.add_edge(kProduct, kCopy);
  builder.add_edge(kCopy, kNothing);
  return builder.build();
}

Graph raw_graph(std::vector<double> seconds, std::size_t n_devices) {
  GraphBuilder builder("raw");
  for (int i = 0; i < 3; ++i) {
    builder.add_node({.name = std::to_string(i), .outputs = {{.bytes = 4}}});
  }
  builder.set_raw_compute(std::move(seconds), n_devices);
  return builder.build();
}

// Devices 0 and 2 are alike, 1 is faster with another rate for float16.
Cluster cluster() {
  ClusterParts parts;
  parts.name = "pair";
  const Device slow = {
      .kind = "slow", .flops = {{DType::float32, 8}}, .bandwidth = 4, .launch_overhead = 0.5};
  const Device fast = {
      .kind = "fast", .flops = {{DType::float32, 16}, {DType::float16, 400}}, .bandwidth = 20};
  parts.devices = {slow, fast, slow};
  parts.default_link = DefaultLink{0.25, 2, DefaultLink::Channels::egress, kUnlimited};
  return Cluster(parts);
}

TEST_CASE("analytical costs are a roofline by dtype plus the launch overhead") {
  const Graph g = graph();
  const Cluster c = cluster();
  const CostModel model;
  CHECK(model.kind() == CostModel::Kind::analytical);
  CHECK(model.compute(g, kProduct, c, DeviceId{0}) == 0.5 + 800.0 / 8);  // float16 as float32
  CHECK(model.compute(g, kProduct, c, DeviceId{1}) == 2);                // 800 / 400 > 30 / 20
  CHECK(model.compute(g, kCopy, c, DeviceId{0}) == 0.5 + 100.0 / 4);
  CHECK(model.compute(g, kCopy, c, DeviceId{1}) == 5);
  CHECK(model.compute(g, kNothing, c, DeviceId{0}) == 0.5);
  CHECK(model.compute(g, kNothing, c, DeviceId{1}) == 0);
  CHECK(model.route(c, DeviceId{0}, DeviceId{1}) == c.route(DeviceId{0}, DeviceId{1}));
  CHECK_NOTHROW(model.check(g, c));
}

TEST_CASE("a cost table holds a column for devices that price alike") {
  const Graph g = graph();
  const Cluster c = cluster();
  const CostTable table(g, c, CostModel());
  CHECK(table.n_columns == 2);
  CHECK(table.column == std::vector<std::uint32_t>{0, 1, 0});
  REQUIRE(table.seconds.size() == 6);
  for (std::int64_t v = 0; v < 3; ++v) {
    double sum = 0;
    double least = kUnlimited;
    for (std::int64_t d = 0; d < 3; ++d) {
      const double seconds = CostModel().compute(g, NodeId{v}, c, DeviceId{d});
      CHECK(table.compute(NodeId{v}, DeviceId{d}) == seconds);
      sum += seconds;
      least = std::min(least, seconds);
    }
    CHECK(table.mean[NodeId{v}.index()] == Approx(sum / 3));
    CHECK(table.least[NodeId{v}.index()] == least);
  }
  CHECK(table.mean_latency == 0.25);
  CHECK(table.mean_seconds_per_byte == 0.5);
  CHECK(table.mean_transfer(6) == 3.25);
}

TEST_CASE("raw costs are one a node or one a node and device") {
  const Cluster three = Cluster::uniform(3);
  const Graph same = raw_graph({1, 2, 3}, 1);
  CHECK(CostModel::of(same) == CostModel::raw());
  CHECK(CostModel::of(graph()) == CostModel::analytical());
  const CostTable one(same, three, CostModel::raw());
  CHECK(one.n_columns == 1);
  CHECK(one.compute(NodeId{2}, DeviceId{2}) == 3);
  CHECK(one.mean == std::vector<double>{1, 2, 3});

  const Graph each = raw_graph({1, 2, 3, 4, 5, 6, 7, 8, 0}, 3);
  const CostTable table(each, three, CostModel::raw());
  CHECK(table.n_columns == 3);
  CHECK(table.compute(NodeId{0}, DeviceId{1}) == 2);
  CHECK(table.compute(NodeId{1}, DeviceId{0}) == 4);
  CHECK(CostModel::raw().compute(each, NodeId{2}, three, DeviceId{1}) == 8);
  CHECK(table.mean == std::vector<double>{2, 5, 5});
  CHECK(table.least == std::vector<double>{1, 4, 0});
  CHECK_THROWS_AS(CostModel::raw().check(each, Cluster::uniform(2)), InvalidError);
  CHECK_THROWS_AS(CostModel::raw().check(graph(), three), InvalidError);
  CHECK_THROWS_AS(CostTable(graph(), three, CostModel::raw()), InvalidError);
}

TEST_CASE("a profile is used where it measured and falls back elsewhere") {
  const Graph g = graph();
  const Cluster c = cluster();
  const std::string signature = Profile::signature(g, kProduct);
  CHECK(signature == "einsum float16 flops=800 read=20 written=10 shape=5x1");
  CHECK(Profile::signature(g, kNothing) == " float32 flops=0 read=0 written=0 shape=");
  Profile profile;
  profile.compute["slow"][signature] = 7;
  profile.links[{DeviceId{0}, DeviceId{1}}] = {.latency = 1, .bandwidth = 4};
  profile.links[{DeviceId{2}, DeviceId{1}}] = {.latency = 2};
  const CostModel model = CostModel::measured(profile);
  CHECK(model.compute(g, kProduct, c, DeviceId{0}) == 7);
  CHECK(model.compute(g, kProduct, c, DeviceId{1}) == 2);
  CHECK(model.compute(g, kCopy, c, DeviceId{2}) == 25.5);
  CHECK(model.route(c, DeviceId{0}, DeviceId{1}) == Route{1, 4, ChannelId{0}, 1});
  CHECK(model.route(c, DeviceId{1}, DeviceId{0}) == Route{0.25, 2, ChannelId{1}, 1});
  CHECK(model.route(c, DeviceId{2}, DeviceId{1}) == Route{2, kUnlimited, ChannelId{2}, 1});
  const CostTable table(g, c, model);
  CHECK(table.n_columns == 2);
  CHECK(table.compute(kProduct, DeviceId{2}) == 7);
  CHECK(table.mean_latency == Approx((1 + 2 + 4 * 0.25) / 6));
  CHECK(table.mean_seconds_per_byte == Approx((0.25 + 0 + 4 * 0.5) / 6));

  profile.links[{DeviceId{3}, DeviceId{1}}] = {};
  CHECK_THROWS_AS(CostModel::measured(profile).check(g, c), InvalidError);
}

TEST_CASE("devices of one rate but another kind have a column each in a profile") {
  ClusterParts parts = Cluster::uniform(2).parts();
  parts.devices[1].kind = "other";
  const Graph g = graph();
  CHECK(CostTable(g, Cluster(parts), CostModel()).n_columns == 1);
  CHECK(CostTable(g, Cluster(parts), CostModel::measured({})).n_columns == 2);
}

TEST_CASE("a profile that no clock can have measured is refused") {
  Profile profile;
  profile.compute["slow"]["x"] = -1;
  CHECK_THROWS_AS(CostModel::measured(profile), InvalidError);
  profile.compute["slow"]["x"] = std::nan("");
  CHECK_THROWS_AS(CostModel::measured(profile), InvalidError);
  profile.compute["slow"]["x"] = 0;
  CHECK_NOTHROW(CostModel::measured(profile));
  profile.links[{DeviceId{1}, DeviceId{1}}] = {};
  CHECK_THROWS_AS(CostModel::measured(profile), InvalidError);
  profile.links.clear();
  profile.links[{DeviceId{0}, DeviceId{1}}] = {.bandwidth = 0};
  CHECK_THROWS_AS(CostModel::measured(profile), InvalidError);
  profile.links[{DeviceId{0}, DeviceId{1}}] = {.latency = kUnlimited};
  CHECK_THROWS_AS(CostModel::measured(profile), InvalidError);
}

TEST_CASE("times that overflow are refused") {
  ClusterParts parts = Cluster::uniform(2).parts();
  parts.devices[1].flops[DType::float32] = 1e-300;
  GraphBuilder builder;
  builder.add_node({.name = "large", .flops = 1e20});
  const Graph g = builder.build();
  CHECK_THROWS_AS(CostModel().check(g, Cluster(parts)), InvalidError);
  CHECK_NOTHROW(CostModel().check(g, Cluster::uniform(2)));

  const Graph raw = raw_graph({1e308, 1e307, 1}, 1);
  CHECK_NOTHROW(CostModel::raw().check(raw, Cluster::uniform(2)));
  parts = Cluster::uniform(2).parts();
  parts.default_link->bandwidth = 1e-307;
  CHECK_THROWS_AS(CostModel::raw().check(raw, Cluster(parts)), InvalidError);
}

TEST_CASE("an empty graph has an empty table in every model") {
  const Graph empty;
  for (const CostModel& model :
       {CostModel::analytical(), CostModel::raw(), CostModel::measured({})}) {
    CHECK_NOTHROW(model.check(empty, Cluster::uniform(3)));
    CHECK(CostTable(empty, Cluster::uniform(3), model).seconds.empty());
  }
}

TEST_CASE("scales multiply every time of every model, and change what is equal") {
  testing::Draws draws(5);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const testing::RandomCase c = testing::random_case(seed);
    const std::size_t n_nodes = c.graph.n_nodes();
    const std::size_t n_devices = c.cluster.n_devices();
    CAPTURE(seed);
    CostScales scales;
    const auto draw = [&](std::size_t n, std::vector<double>& factors) {
      for (std::size_t i = 0; i < n; ++i) factors.push_back(0.25 + draws.real());
    };
    draw(seed % 2 == 0 ? n_devices : n_devices * n_nodes, scales.compute);
    draw(n_devices * n_devices, scales.latency);
    draw(n_devices * n_devices, scales.bandwidth);
    const CostModel scaled = c.cost_model.scaled(scales);
    scaled.check(c.graph, c.cluster);
    const CostTable table(c.graph, c.cluster, scaled);
    for (std::size_t v = 0; v < n_nodes; ++v) {
      const NodeId node(static_cast<std::int64_t>(v));
      double sum = 0;
      for (std::size_t d = 0; d < n_devices; ++d) {
        const DeviceId device(static_cast<std::int64_t>(d));
        const double factor = scales.compute[(seed % 2 == 0 ? 0 : v * n_devices) + d];
        const double seconds = factor * c.cost_model.compute(c.graph, node, c.cluster, device);
        CHECK(scaled.compute(c.graph, node, c.cluster, device) == seconds);
        CHECK(table.compute(node, device) == seconds);
        sum += seconds;
      }
      CHECK(table.mean[v] == Approx(sum / static_cast<double>(n_devices)));
    }
    double latency = 0;
    double per_byte = 0;
    for (std::size_t a = 0; a < n_devices; ++a) {
      for (std::size_t b = 0; b < n_devices; ++b) {
        if (a == b) continue;
        const DeviceId from(static_cast<std::int64_t>(a));
        const DeviceId to(static_cast<std::int64_t>(b));
        const Route before = c.cost_model.route(c.cluster, from, to);
        const Route after = scaled.route(c.cluster, from, to);
        CHECK(after.latency == before.latency * scales.latency[a * n_devices + b]);
        CHECK(after.bandwidth == before.bandwidth * scales.bandwidth[a * n_devices + b]);
        latency += after.latency;
        per_byte += 1 / after.bandwidth;
      }
    }
    const double n_pairs = static_cast<double>(n_devices) * (static_cast<double>(n_devices) - 1);
    if (n_pairs > 0) {
      CHECK(table.mean_latency == Approx(latency / n_pairs));
      CHECK(table.mean_seconds_per_byte == Approx(per_byte / n_pairs));
    }
    CHECK_FALSE(scaled == c.cost_model);
    CHECK(scaled.hash() != c.cost_model.hash());
    CHECK(scaled.scaled({}) == c.cost_model.scaled({}));
    CHECK(scaled.scaled({}).hash() == c.cost_model.scaled({}).hash());
  }
}

TEST_CASE("scales that are no factors, or of another number, are refused") {
  const Cluster cluster = Cluster::uniform(2);
  for (double factor : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_WITH(CostModel().scaled({.bandwidth = {1, factor}}), Catch::Contains("bandwidth"));
  }
  CHECK_THROWS_WITH(CostModel().scaled({.compute = {1, 1, 1}}).check(graph(), cluster),
                    Catch::Contains("needs 2 or 6"));
  CHECK_THROWS_WITH(CostModel().scaled({.latency = {1, 1}}).check(graph(), cluster),
                    Catch::Contains("needs 4"));
}

TEST_CASE("cost models are equal by content, with equal hashes") {
  Profile profile;
  profile.compute["slow"]["x"] = 1;
  const CostModel measured = CostModel::measured(profile);
  CHECK(measured == CostModel::measured(profile));
  CHECK(measured.hash() == CostModel::measured(profile).hash());
  profile.compute["slow"]["x"] = 2;
  CHECK_FALSE(measured == CostModel::measured(profile));
  CHECK(measured.hash() != CostModel::measured(profile).hash());
  CHECK(CostModel::raw().hash() != CostModel::analytical().hash());
  CHECK(CostModel::measured({}).hash() != CostModel::analytical().hash());
  std::ostringstream out;
  out << measured << "; " << CostModel::raw();
  CHECK(out.str() == "profile cost model (1 node times, 0 links); raw cost model");
}

}  // namespace
}  // namespace doppler
