// Stage III of `doppler` on systems whose departure from their cost model is known.
#include "agents/learned/online_search.h"

#include <algorithm>
#include <cmath>

#include "agents/learned/doppler_trainer.h"
#include "agents/learned/learned.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

constexpr const char* kSlowSystem = "simulator(bandwidth=0.25,slow_device=0,slowdown=2)";
constexpr const char* kNoisySystem = "simulator(bandwidth=0.25,slow_device=0,slowdown=2,noise=0.1)";

std::shared_ptr<const PlacementModel> model_of(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

// The same task on the slow system, for agents that know it.
Task slow(const Task& task) {
  Task slower = task;
  const std::size_t n = task.cluster.n_devices();
  CostScales scales;
  scales.compute.assign(n, 1);
  scales.compute[0] = 2;
  scales.bandwidth.assign(n * n, 0.25);
  slower.cost_model = task.cost_model.scaled(scales);
  return slower;
}

std::unique_ptr<Trainer> trainer_of(const std::shared_ptr<const PlacementModel>& model,
                                    const TrainOptions& options) {
  const NamedCall call = NamedCall::parse("doppler");
  return make_doppler_trainer("doppler", {agents().at("doppler").parameters, call},
                              {.tasks = {model}, .options = options});
}

double value_of(const TrainProgress& progress, const std::string& name) {
  const auto found = std::find_if(progress.values.begin(), progress.values.end(),
                                  [&](const auto& value) { return value.first == name; });
  REQUIRE(found != progress.values.end());
  return found->second;
}

TEST_CASE("stage III adapts: half of the gap to annealing on the true system and more") {
  for (const char* task : {"ffnn@p100x4", "llama-layer@p100x4"}) {
    CAPTURE(task);
    const auto model = model_of(task);
    const Task truth = slow(model->task());
    Simulator simulator = truth.simulator();
    const auto before = trainer_of(model, {.stages = {1, 2}, .max_evaluations = 1000});
    while (before->update()) {
    }
    const double start = simulator.makespan(before->best(0).assignment.devices);
    const double annealed =
        assign(*make_agent("annealing"), truth, {.max_evaluations = 20'000}).makespan;
    const auto after = trainer_of(model, {.stages = {1, 2, 3},
                                          .max_evaluations = 1000,
                                          .engine = kNoisySystem,
                                          .max_executions = 500});
    double most_regret = 0;
    while (after->update()) {
      const TrainProgress progress = after->progress();
      if (progress.stage != 3) continue;
      most_regret = std::max(most_regret, value_of(progress, "regret"));
    }
    const double end = simulator.makespan(after->best(0).assignment.devices);
    CAPTURE(start, annealed, end);
    CHECK(end <= start - 0.5 * (start - annealed));
    const TrainProgress progress = after->progress();
    CHECK(progress.executions <= 500);
    CHECK(progress.evaluations == 1000);
    CHECK(most_regret <= value_of(progress, "allowed_regret"));
    CHECK(value_of(progress, "noise") == Approx(0.03).margin(0.02));
  }
}

TEST_CASE("on a system that is as its cost model says, stage III does no harm") {
  const auto model = model_of("llama-block@p100x4");
  Simulator simulator = model->task().simulator();
  const auto trainer = trainer_of(model, {.stages = {2, 3},
                                          .max_evaluations = 1000,
                                          .engine = "simulator(noise=0.1)",
                                          .max_executions = 120});
  double start = 0;
  while (trainer->update()) {
    if (trainer->progress().stage == 2) {
      start = simulator.makespan(trainer->best(0).assignment.devices);
    }
  }
  CHECK(simulator.makespan(trainer->best(0).assignment.devices) <= 1.005 * start);
}

TEST_CASE("without a budget of regret only the first assignment runs") {
  const auto model = model_of("ffnn@p100x4");
  const auto trainer = trainer_of(
      model, {.stages = {3}, .engine = kNoisySystem, .max_executions = 40, .max_regret = 0});
  Assignment start;
  while (trainer->update()) {
    if (trainer->progress().stage < 3) start = trainer->best(0).assignment;
  }
  const TrainProgress progress = trainer->progress();
  CHECK(value_of(progress, "regret") <= 0);
  CHECK(value_of(progress, "first_makespan") >= value_of(progress, "incumbent_makespan"));
}

TEST_CASE("runs that fail are counted with their penalty, and the rest goes on") {
  Task task = make_task("llama-layer@p100x4");
  // What the simulator does not enforce, the system does: a device takes part of the graph only.
  ClusterParts parts = task.cluster.parts();
  parts.devices[1].memory = 1e8;
  task.cluster = Cluster(std::move(parts));
  task.options.enforce_memory = true;
  const auto model = std::make_shared<const PlacementModel>(std::move(task));
  const DopplerPolicy policy = DopplerPolicy::untrained(0);
  OnlineSearch search(model, policy.network,
                      {policy.heads, Assignment(model->n_nodes(), DeviceId{1})},
                      {.engine = "simulator", .max_executions = 60, .max_regret = 100});
  while (search.update()) {
  }
  CHECK(search.n_executions() > 10);
  const double makespan = model->task().simulator().makespan(search.best().devices);
  CHECK(std::isfinite(makespan));
  const auto values = search.values();
  CHECK(values[6].first == "failures");
  CHECK(values[6].second >= 3);
}

TEST_CASE("stage III goes on from any update to the same bits") {
  const auto model = model_of("ffnn@p100x4");
  const TrainOptions options = {.stages = {2, 3},
                                .seed = 3,
                                .max_evaluations = 40,
                                .engine = kNoisySystem,
                                .max_executions = 60};
  const auto whole = trainer_of(model, options);
  std::vector<std::string> states = {whole->state()};
  while (whole->update()) states.push_back(whole->state());
  REQUIRE(states.size() > 20);
  for (std::size_t k = 5; k < states.size(); k += 7) {
    const auto rest = trainer_of(model, options);
    rest->restore(states[k]);
    while (rest->update()) {
    }
    CHECK(rest->policy() == whole->policy());
    CHECK(rest->best(0).assignment == whole->best(0).assignment);
    CHECK(rest->progress().executions == whole->progress().executions);
  }
}

TEST_CASE("an engine that cannot run the task is told before the first update") {
  const auto make = [](const std::string& task, std::vector<int> stages,
                       const std::string& engine) {
    return make_trainer("doppler", {.tasks = {model_of(task)},
                                    .options = {.stages = std::move(stages), .engine = engine}});
  };
  const std::string without_kernels = "published/ffnn";
  CHECK_THROWS_AS(make(without_kernels, {2, 3}, "cpu"), InvalidError);
  CHECK_THROWS_AS(make("ffnn@p100x4", {2, 3}, "simulator(slow_device=4)"), InvalidError);
  CHECK_NOTHROW(make(without_kernels, {1, 2}, "cpu"));
}

TEST_CASE("stage III runs on the real engine") {
  const auto model = model_of("chainmm(n=64)@cpu2");
  const auto trainer = trainer_of(model, {.stages = {2, 3},
                                          .max_evaluations = 50,
                                          .engine = "cpu(repeats=1,warm_up=0)",
                                          .max_executions = 30});
  while (trainer->update()) {
  }
  const TrainProgress progress = trainer->progress();
  CHECK(progress.executions > 3);
  CHECK(progress.executions <= 30);
  CHECK(value_of(progress, "executing_seconds") > 0);
  trainer->best(0).check(model->task());
}

}  // namespace
}  // namespace doppler
