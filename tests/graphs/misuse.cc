// Values and builders in the hands of a careless program.
#include <cstdint>
#include <limits>
#include <utility>

#include "graphs/cluster.h"
#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

GraphBuilder pair_builder() {
  GraphBuilder builder("pair");
  builder.add_node({.name = "a", .outputs = {{.bytes = 1}}});
  builder.add_node({.name = "b"});
  return builder;
}

TEST_CASE("A graph or cluster that was moved from is still itself") {
  Graph graph = pair_builder().build();
  const Graph kept = graph;
  Graph other = std::move(graph);
  CHECK(graph == kept);  // NOLINT(bugprone-use-after-move): what this test is about
  other = std::move(graph);
  CHECK(graph.n_nodes() == 2);  // NOLINT(bugprone-use-after-move)
  CHECK(other == kept);

  Cluster cluster = Cluster::ring(3);
  Cluster moved = std::move(cluster);
  CHECK(cluster == moved);  // NOLINT(bugprone-use-after-move)
  moved = std::move(cluster);
  CHECK(cluster.n_devices() == 3);  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("An index that an id cannot hold names nothing, rather than something else") {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 32;
  CHECK(NodeId{kBeyond}.value == -1);
  CHECK(NodeId{kBeyond + 1}.value == -1);
  CHECK(DeviceId{-kBeyond}.value == -1);
  CHECK(DeviceId{std::numeric_limits<std::int64_t>::min()}.value == -1);
  CHECK(EdgeId{std::numeric_limits<std::int32_t>::max()}.value ==
        std::numeric_limits<std::int32_t>::max());
  CHECK(EdgeId{std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1}.value == -1);

  GraphBuilder builder = pair_builder();
  builder.add_edge(NodeId{kBeyond}, NodeId{kBeyond + 1});
  CHECK_THROWS_AS(builder.build(), InvalidError);
}

TEST_CASE("Raw costs for so many devices that the numbers overflow are refused") {
  for (const std::size_t n_devices : {std::size_t{1} << 63, (std::size_t{1} << 63) + 1}) {
    for (const std::size_t n_costs : {0, 1, 2}) {
      GraphBuilder builder = pair_builder();
      builder.set_raw_compute(std::vector<double>(n_costs, 1), n_devices);
      CHECK_THROWS_AS(builder.build(), InvalidError);
    }
  }
}

TEST_CASE("A builder starts anew after a graph, and after a refusal") {
  GraphBuilder builder = pair_builder();
  builder.add_edge(NodeId{0}, NodeId{7});
  CHECK_THROWS_AS(builder.build(), InvalidError);
  for (int round = 0; round < 2; ++round) {
    builder.add_node({.name = "c"});
    const Graph graph = builder.build();
    CHECK(graph.n_nodes() == 1);
    CHECK(graph.n_edges() == 0);
    CHECK(graph.name(NodeId{0}) == "c");
  }
}

}  // namespace
}  // namespace doppler
