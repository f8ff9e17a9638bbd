#include "env/task.h"

#include <sstream>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

Task chain() {
  GraphBuilder builder("chain");
  builder.add_node({.name = "a", .outputs = {{.bytes = 2}}});
  builder.add_node({.name = "b", .outputs = {{.bytes = 2}}});
  builder.add_edge(NodeId{0}, NodeId{1});
  builder.set_raw_compute({3, 4});
  return {.name = "chain@uniform(2)",
          .graph = builder.build(),
          .cluster = Cluster::uniform(2),
          .cost_model = CostModel::raw()};
}

TEST_CASE("a task's time scale is its longest path or its load") {
  Task task = chain();
  CHECK(task.time_scale() == 7);
  CHECK(task.lower_bound() == 7);
  task.graph = Graph();
  task.cost_model = {};
  CHECK(task.time_scale() == 1);
  CHECK(task.lower_bound() == 0);
}

TEST_CASE("a task's hash depends on its meaning alone") {
  const Task task = chain();
  Task same = task;
  same.name = "another";
  same.split = Split::test;
  same.options.record_timeline = !task.options.record_timeline;
  CHECK(same.hash() == task.hash());
  CHECK(same != task);

  const auto differs = [&](auto change) {
    Task other = task;
    change(other);
    return other.hash() != task.hash();
  };
  CHECK(differs([](Task& t) { t.graph = Graph(); }));
  CHECK(differs([](Task& t) { t.cluster = Cluster::uniform(3); }));
  CHECK(differs([](Task& t) { t.cost_model = {}; }));
  CHECK(differs([](Task& t) { t.options.network = Network::fair; }));
  CHECK(differs([](Task& t) { t.options.choice = Choice::random; }));
  CHECK(differs([](Task& t) { t.options.schedule = Schedule::bulk_synchronous; }));
  CHECK(differs([](Task& t) { t.options.priorities = {1, 2}; }));
  CHECK(differs([](Task& t) { t.options.input_devices = {DeviceId{0}}; }));
  CHECK(differs([](Task& t) { t.options.noise = 0.1; }));
  CHECK(differs([](Task& t) { t.options.seed = 1; }));
  CHECK(differs([](Task& t) { t.options.enforce_memory = true; }));
}

TEST_CASE("a task whose parts do not fit each other is refused") {
  Task task = chain();
  CHECK_NOTHROW(task.check());
  task.options.priorities = {1};
  CHECK_THROWS_AS(task.check(), InvalidError);
  task = chain();
  task.graph = Graph();
  task.graph = [] {
    GraphBuilder builder("no costs");
    builder.add_node({.name = "a"});
    return builder.build();
  }();
  CHECK_THROWS_AS(task.check(), InvalidError);
}

TEST_CASE("a task prints its name and parts") {
  Task task = chain();
  task.split = Split::train;
  std::ostringstream out;
  out << task;
  CHECK_THAT(out.str(), Catch::Contains("chain@uniform(2)") && Catch::Contains("train"));
}

}  // namespace
}  // namespace doppler
