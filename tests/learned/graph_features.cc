#include "agents/learned/graph_features.h"

#include <cmath>
#include <set>

#include "agents/learned/node_classes.h"
#include "datasets/tasks.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

PlacementModel model_of(const std::string& task) { return PlacementModel(make_task(task)); }

TEST_CASE("standardised columns have mean 0 and deviation 1, equal columns are zeros") {
  std::vector<double> x = {1, 0.1, 4, 0.1, 7, 0.1};
  standardise(x, 2);
  const double deviation = std::sqrt(6.0) + 1e-6;
  CHECK(x[0] == Approx(-3 / deviation).epsilon(1e-12));
  CHECK(x[2] == Approx(0).margin(1e-12));
  CHECK(x[4] == Approx(3 / deviation).epsilon(1e-12));
  for (std::size_t i : {1, 3, 5}) CHECK(std::abs(x[i]) < 1e-9);
}

TEST_CASE("a row of weight three counts as three rows") {
  std::vector<double> weighted = {1, 5};
  standardise(weighted, 1, std::vector<double>{3, 1});
  std::vector<double> repeated = {1, 1, 1, 5};
  standardise(repeated, 1);
  CHECK(weighted[0] == Approx(repeated[0]).epsilon(1e-12));
  CHECK(weighted[1] == Approx(repeated[3]).epsilon(1e-12));
}

TEST_CASE("one row alone is standardised to zeros, not to something without meaning") {
  std::vector<double> x = {3.7, -2};
  standardise(x, 2);
  CHECK(x == std::vector<double>{0, 0});
  std::vector<double> none;
  standardise(none, 2);
}

TEST_CASE("the paper's features of the diamond are those computed by hand") {
  const PlacementModel model(testing::diamond());
  const GraphFeatures features = graph_features(model, NodeFeatures::paper);
  REQUIRE(features.n_columns == 5);
  REQUIRE(features.n_nodes == 4);
  const Graph& graph = model.task().graph;
  for (std::size_t column = 0; column < 5; ++column) {
    std::vector<double> raw;
    for (std::size_t v = 0; v < 4; ++v) {
      const NodeId node{std::int64_t(v)};
      double in = 0;
      double out = 0;
      for (EdgeId e : graph.in_edges(node)) in += model.costs().mean_transfer(graph.edge_bytes(e));
      for (EdgeId e : graph.out_edges(node)) {
        out += model.costs().mean_transfer(graph.edge_bytes(e));
      }
      const double values[] = {model.costs().mean[v], model.levels().b_level[v],
                               model.levels().t_level[v], in, out};
      raw.push_back(values[column] / model.time_scale());
    }
    double mean = 0;
    double squares = 0;
    for (double x : raw) mean += x / 4;
    for (double x : raw) squares += (x - mean) * (x - mean) / 4;
    for (std::size_t v = 0; v < 4; ++v) {
      CHECK(features.nodes[v * 5 + column] ==
            Approx((raw[v] - mean) / (std::sqrt(squares) + 1e-6)).margin(1e-6));
    }
  }
}

TEST_CASE("edges stand both ways and share the distinct values") {
  const PlacementModel model = model_of("published/llama-layer");
  const GraphFeatures features = graph_features(model, NodeFeatures::full);
  const std::size_t n_edges = model.task().graph.n_edges();
  REQUIRE(features.source.size() == 2 * n_edges);
  std::set<double> distinct;
  for (std::size_t e = 0; e < n_edges; ++e) {
    const EdgeId id{std::int64_t(e)};
    CHECK(features.source[e] == model.task().graph.edge(id).producer.value);
    CHECK(features.target[e] == model.task().graph.edge(id).reader.value);
    CHECK(features.source[n_edges + e] == features.target[e]);
    CHECK(features.target[n_edges + e] == features.source[e]);
    CHECK(features.value[n_edges + e] == features.value[e]);
    distinct.insert(model.costs().mean_transfer(model.task().graph.edge_bytes(id)));
  }
  CHECK(features.values.size() == distinct.size());
  CHECK(features.nodes.size() == features.n_nodes * features.n_columns);
  CHECK(node_feature_names(NodeFeatures::full).size() == features.n_columns);
  for (float x : features.nodes) CHECK(std::isfinite(x));
}

TEST_CASE("features are finite and alike when every cost is a million times larger") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto drawn = testing::random_case(seed);
    const PlacementModel model(
        {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none});
    const GraphFeatures features = graph_features(model, NodeFeatures::full);
    for (float x : features.nodes) REQUIRE(std::isfinite(x));
    for (float x : features.values) REQUIRE(std::isfinite(x));
  }
}

TEST_CASE("classes of the published graphs are few, and their members look alike") {
  for (const char* name : {"chainmm", "ffnn", "llama-block", "llama-layer", "llama-layer-8"}) {
    const PlacementModel model = model_of(std::string("published/") + name);
    const GraphFeatures features = graph_features(model, NodeFeatures::paper);
    const MessagePlan plan = message_plan(features, 6);
    INFO(name << ": " << plan.n_classes << " classes of " << features.n_nodes << " nodes, "
              << plan.message_source.size() << " messages of " << features.source.size()
              << " edges, " << features.values.size() << " values");
    CHECK(plan.n_classes < features.n_nodes * 2 / 3);
    std::size_t n_members = 0;
    for (std::int32_t size : plan.class_size) n_members += static_cast<std::size_t>(size);
    CHECK(n_members == features.n_nodes);
    for (std::size_t v = 0; v < features.n_nodes; ++v) {
      const auto first = static_cast<std::size_t>(
          plan.representative[static_cast<std::size_t>(plan.node_class[v])]);
      for (std::size_t c = 0; c < 5; ++c) {
        CHECK(features.nodes[v * 5 + c] == features.nodes[first * 5 + c]);
      }
    }
  }
}

}  // namespace
}  // namespace doppler
