// What an environment refuses to be made of.
#include "env/env_model.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "env/env.h"
#include "graphs/graph_builder.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

using testing::diamond;
using testing::lone_node;

void check_refused(const std::vector<Task>& tasks, const EnvOptions& options,
                   const std::string& message) {
  CHECK_THROWS_AS(EnvModel(tasks, options), Error);
  CHECK_THROWS_WITH(EnvModel(tasks, options), Catch::Contains(message));
}

// n nodes without edges.
Task crowd(std::size_t n, std::int64_t n_devices) {
  GraphBuilder builder("crowd");
  for (std::size_t v = 0; v < n; ++v) builder.add_node({.name = "n"});
  builder.set_raw_compute(std::vector<double>(n, 1));
  return {.name = "crowd",
          .graph = builder.build(),
          .cluster = Cluster::uniform(n_devices),
          .cost_model = CostModel::raw()};
}

TEST_CASE("no tasks, empty graphs and parts that do not fit are refused") {
  check_refused({}, {}, "at least one task");
  Task empty{.name = "nothing", .cost_model = {}};
  check_refused({empty}, {}, "task 'nothing' has no nodes");
  check_refused({diamond(), empty}, {}, "task 'nothing' has no nodes");
  Task misfit = diamond();
  misfit.options.priorities = {1, 2};
  CHECK_THROWS_AS(EnvModel({misfit}, {}), InvalidError);
}

TEST_CASE("limits that are too small, negative or absurd are refused") {
  check_refused({diamond()}, {.max_nodes = 3}, "max_nodes is 3, but the tasks have up to 4 nodes");
  check_refused({diamond()}, {.max_edges = 3}, "up to 4 edges");
  check_refused({diamond(), lone_node()}, {.max_devices = 2}, "up to 3 devices");
  check_refused({diamond()}, {.max_nodes = -1}, "max_nodes is -1");
  check_refused({diamond()}, {.max_edges = std::numeric_limits<std::int64_t>::max()}, "2^26");
  CHECK_NOTHROW(EnvModel({diamond()}, {.max_nodes = 4, .max_edges = 4, .max_devices = 2}));
}

TEST_CASE("a joint space beyond 100,000 actions is refused with advice") {
  const Task limit = crowd(25'000, 4);
  CHECK(EnvModel({limit}, {.mode = "joint"}).spec().action.sizes[0] == 100'000);
  const Task beyond = crowd(25'001, 4);
  check_refused({beyond}, {.mode = "joint"}, "100004 actions, more than 100000");
  check_refused({beyond}, {.mode = "joint"}, "use factored = true, or mode sequential or place");
  CHECK(EnvModel({beyond}, {.mode = "joint", .factored = true}).spec().action.sizes ==
        std::vector<std::int64_t>{25'001, 4});
  CHECK(EnvModel({beyond}, {.mode = "place"}).spec().action.sizes[0] == 4);
  check_refused({diamond()}, {.mode = "joint", .max_nodes = 50'001}, "100002 actions");
  check_refused({diamond()}, {.mode = "oneshot", .max_nodes = 1 << 14, .max_devices = 1 << 14},
                "use mode sequential or place");
  check_refused(
      {diamond()},
      {.mode = "joint", .features = Features::full, .factored = true, .max_nodes = 1 << 23},
      "numbers for the pairs of mode joint");
}

TEST_CASE("options of one mode are refused in others") {
  for (const char* mode : {"sequential", "place", "refine", "oneshot"}) {
    check_refused({diamond()}, {.mode = mode, .factored = true}, "for mode joint, not for ");
  }
  const std::vector<DeviceId> initial(4, DeviceId{0});
  for (const char* mode : {"sequential", "place", "joint", "oneshot"}) {
    check_refused({diamond()}, {.mode = mode, .initial = initial}, "for mode refine, not for ");
  }
  check_refused({diamond()}, {.mode = "refine", .initial = {DeviceId{0}}}, "4");
  check_refused({diamond()}, {.mode = "refine", .initial = std::vector<DeviceId>(4, DeviceId{2})},
                "2");
  check_refused({diamond(), lone_node()}, {.mode = "refine", .initial = initial}, "1");
}

TEST_CASE("names that nobody knows are refused with those that are near") {
  check_refused({diamond()}, {.mode = "sequental"}, "did you mean sequential");
  check_refused({diamond()}, {.engine = "simulater"}, "did you mean simulator");
  check_refused({diamond()}, {.engine = "simulator("}, "simulator(");
  CHECK_THROWS_AS(EnvModel({diamond()}, {.engine = "simulator(speed=2)"}), UsageError);
  CHECK_THROWS_WITH(parse_reward("shaped"), Catch::Contains("known: sparse dense"));
  CHECK_THROWS_WITH(parse_features("all"), Catch::Contains("known: paper full"));
  CHECK_THROWS_WITH(parse_place_order("x"), Catch::Contains("known: b_level topological"));
  CHECK_THROWS_WITH(parse_on_illegal("x"), Catch::Contains("known: raise penalize"));
  for (const Reward x : {Reward::sparse, Reward::dense}) CHECK(parse_reward(to_string(x)) == x);
  for (const Features x : {Features::paper, Features::full}) {
    CHECK(parse_features(to_string(x)) == x);
  }
  for (const PlaceOrder x : {PlaceOrder::b_level, PlaceOrder::topological}) {
    CHECK(parse_place_order(to_string(x)) == x);
  }
  for (const OnIllegal x : {OnIllegal::raise, OnIllegal::penalize}) {
    CHECK(parse_on_illegal(to_string(x)) == x);
  }
}

TEST_CASE("a memory penalty that is no positive number of time scales is refused") {
  for (const double penalty : {0.0, -1.0, 1e30, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()}) {
    check_refused({diamond()}, {.memory_penalty = penalty}, "memory_penalty is");
  }
}

// a -> b of one second each, with a tensor of so many bytes; the devices have so much memory.
Task sender(double bytes, double bandwidth, double memory) {
  GraphBuilder builder("sender");
  builder.add_node({.name = "a", .outputs = {{.bytes = bytes}}});
  builder.add_node({.name = "b"});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.set_raw_compute({1, 1});
  ClusterParts parts = Cluster::uniform(2).parts();
  parts.default_link->bandwidth = bandwidth;
  for (Device& device : parts.devices) device.memory = memory;
  return {.name = "sender",
          .graph = builder.build(),
          .cluster = Cluster(parts),
          .cost_model = CostModel::raw()};
}

TEST_CASE("times and bytes that float32 does not hold are refused") {
  check_refused({sender(1e31, 1, kUnlimited)}, {}, "more than 1e30 time scales");
  check_refused({diamond(), sender(1e300, 1, kUnlimited)}, {}, "task 'sender'");
  CHECK_NOTHROW(EnvModel({sender(1e29, 1, kUnlimited)}, {}));
  check_refused({sender(1e40, kUnlimited, 1)}, {.features = Features::full},
                "1e30 times the bytes");
  CHECK_NOTHROW(EnvModel({sender(1e40, kUnlimited, 1)}, {}));
}

TEST_CASE("bounds are finite and hold to the largest that is accepted") {
  for (const double bytes : {0.0, 1.0, 1e29}) {
    Env env(sender(bytes, 1, 2), {.features = Features::full});
    for (const ArraySpec& array : env.spec().observations) {
      CHECK(std::isfinite(array.low));
      CHECK(std::isfinite(array.high));
      CHECK(static_cast<double>(static_cast<float>(array.high)) == array.high);
    }
    const ArraySpec& features = env.spec().observations[env.spec().index("device_features")];
    env.reset();
    for (std::int64_t action : {0, 2, 1}) env.step(action);
    for (float x : env.observation_as<float>(env.spec().index("device_features"))) {
      CHECK(static_cast<double>(x) <= features.high);
      CHECK(static_cast<double>(x) >= features.low);
    }
  }
}

TEST_CASE("a spec finds its arrays by name and says what their sizes are") {
  const EnvModel model({diamond()}, {});
  const EnvSpec& spec = model.spec();
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    CHECK(spec.index(spec.observations[i].name) == i);
    CHECK(!spec.observations[i].summary.empty());
  }
  CHECK_THROWS_WITH(spec.index("node_feature"), Catch::Contains("did you mean node_features"));
  const ArraySpec& edges = spec.observations[spec.index("edges")];
  CHECK(edges.n_elements() == 8);
  CHECK(edges.n_bytes() == 32);
  CHECK(ActionSpec{.sizes = {3, 4}, .discrete = false}.mask_size() == 7);
}

TEST_CASE("the critical-path assignment takes the earliest start, ties to the smaller device") {
  const EnvModel model({diamond()}, {});
  const auto devices = critical_path_assignment(model.tasks()[0].placement);
  CHECK(devices == Assignment({DeviceId{0}, DeviceId{1}, DeviceId{0}, DeviceId{0}}));
  CHECK(model.tasks()[0].critical_path_makespan == 10);
  CHECK(model.tasks()[0].lower_bound == 8);
}

TEST_CASE("the hash is that of tasks and options") {
  const auto hash = [](const Task& task, const EnvOptions& options) {
    return EnvModel({task}, options).hash();
  };
  CHECK(hash(diamond(), {}) == hash(diamond(), {}));
  CHECK(hash(diamond(), {}) != hash(lone_node(), {}));
  CHECK(hash(diamond(), {}) != hash(diamond(), {.max_nodes = 5}));
  CHECK(hash(diamond(), {}) != hash(diamond(), {.memory_penalty = 10.000001}));
}

}  // namespace
}  // namespace doppler
