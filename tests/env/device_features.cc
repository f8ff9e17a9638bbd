// Both feature sets against their definitions evaluated from nothing.
#include <cmath>
#include <vector>

#include "env/env.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"
#include "tests/support/reference_schedule.h"

namespace doppler {
namespace {

using testing::random_case;
using testing::RandomCase;
using testing::ReferenceSchedule;

// Unequal finite memories, so that what is left differs.
Task task_of(const RandomCase& drawn, testing::Draws& draws) {
  ClusterParts parts = drawn.cluster.parts();
  for (Device& device : parts.devices) device.memory = 1 + 200 * draws.real();
  RunOptions options = drawn.options;
  options.enforce_memory = false;
  return {.name = "drawn",
          .graph = drawn.graph,
          .cluster = Cluster(parts),
          .cost_model = drawn.cost_model,
          .options = options};
}

void require_rows(std::span<const float> rows, const ReferenceSchedule& reference, NodeId node,
                  const Env& env) {
  const std::size_t n_devices = env.task().cluster.n_devices();
  const std::size_t width = env.model().n_device_features();
  REQUIRE(rows.size() == env.model().max_devices() * width);
  for (std::size_t d = 0; d < env.model().max_devices(); ++d) {
    if (d >= n_devices) {
      for (std::size_t i = 0; i < width; ++i) REQUIRE(rows[d * width + i] == 0);
      continue;
    }
    const auto expected =
        reference.device_features(node, DeviceId(static_cast<std::int64_t>(d)), width == 10);
    for (std::size_t i = 0; i < width; ++i) {
      INFO("node " << node << ", device " << d << ", feature " << i);
      // What is left of the memory is a difference: its error is that of the larger part.
      const double margin = i == 9 ? 2e-7 * std::max(1.0, std::abs(1 - expected[i])) : 1e-12;
      REQUIRE(static_cast<double>(rows[d * width + i]) ==
              Approx(expected[i]).epsilon(1e-6).margin(margin));
    }
  }
}

void play(const Task& task, const EnvOptions& options, testing::Draws& draws) {
  Env env(task, options);
  env.reset({.seed = 0});
  ReferenceSchedule reference(task);
  const std::size_t features = env.spec().index("device_features");
  const bool has_pairs = options.mode == "joint" && options.features == Features::full;
  while (env.running()) {
    if (env.node().value >= 0) {
      require_rows(env.observation_as<float>(features), reference, env.node(), env);
    } else {
      for (float x : env.observation_as<float>(features)) REQUIRE(x == 0);
    }
    if (has_pairs) {
      const auto pairs = env.observation_as<float>(env.spec().index("pair_features"));
      const std::size_t block = env.model().max_devices() * 10;
      for (std::size_t v = 0; v < env.model().max_nodes(); ++v) {
        const NodeId node{static_cast<std::int64_t>(v)};
        const auto rows = pairs.subspan(v * block, block);
        if (v < task.graph.n_nodes() && reference.is_candidate(node)) {
          require_rows(rows, reference, node, env);
        } else {
          for (float x : rows) REQUIRE(x == 0);
        }
      }
    }
    const auto legal = env.legal_actions();
    env.step(legal[draws.below(legal.size())]);
    const NodeId last = env.schedule().last_placed();
    if (last.value >= 0 && !reference.placed().contains(last)) {
      reference.place(last, env.schedule().device(last));
    }
  }
}

TEST_CASE("device features are those of their definitions on random tasks in every mode of steps") {
  const char* const modes[] = {"sequential", "place", "refine", "joint"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomCase drawn = random_case(seed);
    if (drawn.graph.n_nodes() == 0) continue;
    INFO(drawn);
    testing::Draws draws(seed);
    const Task task = task_of(drawn, draws);
    EnvOptions options{.mode = modes[seed % 4]};
    if (seed % 3 == 0) {
      options.max_devices = static_cast<std::int64_t>(drawn.cluster.n_devices()) + 2;
      options.max_nodes = static_cast<std::int64_t>(drawn.graph.n_nodes()) + 3;
    }
    for (const Features features : {Features::paper, Features::full}) {
      options.features = features;
      play(task, options, draws);
    }
  }
}

Task raw_task(GraphBuilder builder, std::vector<double> seconds) {
  builder.set_raw_compute(std::move(seconds));
  return {.name = "corner",
          .graph = builder.build(),
          .cluster = Cluster::uniform(2),
          .cost_model = CostModel::raw()};
}

float feature(const Env& env, std::size_t device, std::size_t i) {
  const auto rows = env.observation_as<float>(env.spec().index("device_features"));
  return rows[device * env.model().n_device_features() + i];
}

TEST_CASE("a predecessor without cost at instant 0 is the earliest start") {
  GraphBuilder builder("free first");
  for (const char* name : {"free", "long", "late", "reader"}) {
    builder.add_node({.name = name, .outputs = {{.bytes = 1}}});
  }
  builder.add_edge(NodeId{1}, NodeId{2});
  builder.add_edge(NodeId{0}, NodeId{3});
  builder.add_edge(NodeId{2}, NodeId{3});
  Env env(raw_task(std::move(builder), {0, 2, 2, 4}),
          {.mode = "place", .order = PlaceOrder::topological});
  env.reset();
  for (int i = 0; i < 3; ++i) env.step(0);
  REQUIRE(env.node() == NodeId{3});
  CHECK(feature(env, 0, 1) == 2.0F / 8);
  CHECK(feature(env, 0, 2) == 0);
  CHECK(feature(env, 0, 3) == 4.0F / 8);
}

TEST_CASE("a producer whose tensors are operands apart counts once, and so does a sibling") {
  GraphBuilder builder("apart");
  builder.add_node({.name = "two", .outputs = {{.bytes = 0}, {.bytes = 0}}});
  builder.add_node({.name = "one", .outputs = {{.bytes = 0}}});
  builder.add_node({.name = "sibling"});
  builder.add_node({.name = "reader"});
  for (std::int64_t reader : {2, 3}) {
    builder.add_edge(NodeId{0}, NodeId(reader), 0);
    builder.add_edge(NodeId{1}, NodeId(reader), 0);
    builder.add_edge(NodeId{0}, NodeId(reader), 1);
  }
  Env env(raw_task(std::move(builder), {1, 2, 3, 2}),
          {.mode = "place", .features = Features::full, .order = PlaceOrder::topological});
  env.reset();
  for (int i = 0; i < 3; ++i) env.step(1);
  REQUIRE(env.node() == NodeId{3});
  const float scale = 5;  // one, sibling
  CHECK(feature(env, 1, 0) == 6 / scale);
  CHECK(feature(env, 1, 1) == 3 / scale);
  CHECK(feature(env, 1, 7) == 3 / scale);
  CHECK(feature(env, 0, 7) == 0);
}

}  // namespace
}  // namespace doppler
