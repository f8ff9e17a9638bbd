// Runs of stage III's engine.
#include "agents/online/executions.h"

#include <cmath>

#include "datasets/tasks.h"
#include "executor/engine.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::shared_ptr<const PlacementModel> model_of(Task task) {
  return std::make_shared<const PlacementModel>(std::move(task));
}

Assignment all_on_first(const PlacementModel& model) {
  return Assignment(std::vector<DeviceId>(model.n_nodes(), DeviceId{0}));
}

TEST_CASE("each run has a luck of its own, which follows from the seed and its number") {
  const auto model = model_of(make_task("published/chainmm"));
  const Assignment assignment = all_on_first(*model);
  Executions first(model, "simulator(noise=0.1)", 7);
  std::vector<double> makespans;
  for (int i = 0; i < 4; ++i) makespans.push_back(first.run(assignment).execution.makespan);
  CHECK(makespans[0] != makespans[1]);
  CHECK(first.n_runs() == 4);
  Executions again(model, "simulator(noise=0.1)", 7);
  again.set_n_runs(2);
  CHECK(again.run(assignment).execution.makespan == makespans[2]);
  Executions other(model, "simulator(noise=0.1)", 8);
  CHECK(other.run(assignment).execution.makespan != makespans[0]);
}

TEST_CASE("a run is recorded and costs its makespan") {
  const auto model = model_of(make_task("published/chainmm"));
  Executions executions(model, "simulator", 0);
  const ExecutionResult result = executions.run(all_on_first(*model));
  CHECK(result.failure.empty());
  CHECK(result.cost == result.execution.makespan);
  CHECK(result.execution.nodes.size() == model->n_nodes());
  CHECK(result.seconds > 0);
}

TEST_CASE("a run without memory costs ten time scales and does not end anything") {
  Task task = make_task("chainmm(n=64)@p100x4");
  task.options.enforce_memory = true;
  ClusterParts parts = task.cluster.parts();
  parts.devices[0].memory = 1;
  task.cluster = Cluster(std::move(parts));
  const auto model = model_of(std::move(task));
  for (const char* engine : {"simulator", "cpu"}) {
    Executions executions(model, engine, 0);
    for (int i = 0; i < 5; ++i) {
      const ExecutionResult result = executions.run(all_on_first(*model));
      CHECK(std::isinf(result.execution.makespan));
      CHECK(result.cost == 10 * model->time_scale());
      CHECK(result.failure.find("memory") != std::string::npos);
    }
    CHECK(executions.n_runs() == 5);
  }
}

TEST_CASE("an unknown engine is told at once") {
  CHECK_THROWS_AS(Executions(model_of(make_task("published/chainmm")), "simulato", 0), UsageError);
}

}  // namespace
}  // namespace doppler
