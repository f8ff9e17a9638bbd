#include "agents/agent.h"
#include "graphs/analysis.h"
#include "graphs/graph_builder.h"
#include "tests/support/catch.h"
#include "tests/support/literature.h"

namespace doppler {
namespace {

Task literature_task(const testing::LiteratureExample& example) {
  Task task{.name = "topcuoglu2002",
            .graph = example.graph,
            .cluster = Cluster::uniform(3),
            .cost_model = CostModel::raw()};
  task.options.network = Network::independent;
  return task;
}

TEST_CASE("HEFT gives its paper's assignment, makespan and start times") {
  const auto example = testing::literature_example();
  if (!example) return;
  const Task task = literature_task(*example);
  const AssignResult result = assign(*make_agent("heft"), task);
  CHECK(result.assignment == example->heft);
  CHECK(result.makespan == Approx(80).epsilon(1e-12));
  const Execution execution = task.simulator().run(result.assignment);
  for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) {
    INFO("node " << v);
    CHECK(execution.nodes[v].start == Approx(example->heft_start[v]).epsilon(1e-12));
  }
}

TEST_CASE("HEFT fills a gap where appending would not") {
  // Node 1 waits on device 1 for node 0; node 2, of the least rank, fits in before it.
  GraphBuilder builder("gap");
  for (const char* name : {"a", "b", "c"})
    builder.add_node({.name = name, .outputs = {{.bytes = 1}}});
  builder.add_edge(NodeId{0}, NodeId{1});
  constexpr double kSlow = 100;
  builder.set_raw_compute({4, kSlow, kSlow, 6, kSlow, 3}, 2);
  Task task{.name = "gap",
            .graph = builder.build(),
            .cluster = Cluster::uniform(2),
            .cost_model = CostModel::raw()};
  const AssignResult result = assign(*make_agent("heft"), task);
  CHECK(result.assignment == Assignment({DeviceId{0}, DeviceId{1}, DeviceId{1}}));
  CHECK(result.makespan == 11);  // 0 to 4 on device 0, 5 to 11 on device 1, and 0 to 3 before it
}

TEST_CASE("HEFT uses every slot of a device") {
  GraphBuilder builder("independent");
  for (int v = 0; v < 4; ++v) builder.add_node({.name = "n"});
  builder.set_raw_compute({5, 5, 5, 5});
  const Cluster cluster({.name = "three slots",
                         .devices = {{.kind = "two", .streams = 2}, {.kind = "one"}},
                         .default_link = DefaultLink{}});
  Task task{.name = "slots",
            .graph = builder.build(),
            .cluster = cluster,
            .cost_model = CostModel::raw()};
  CHECK(assign(*make_agent("heft"), task).makespan == 10);
  task.cluster = Cluster({.name = "four slots", .devices = {{.kind = "four", .streams = 4}}});
  CHECK(assign(*make_agent("heft"), task).makespan == 5);
}

}  // namespace
}  // namespace doppler
