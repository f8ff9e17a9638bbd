// What executions tell of a system, against systems whose departure is known.
#include "agents/online/system_model.h"

#include <nlohmann/json.hpp>

#include "agents/draws.h"
#include "agents/online/executions.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::shared_ptr<const PlacementModel> model_of(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

Assignment drawn(const PlacementModel& model, Draws& draws) {
  Assignment assignment(model.n_nodes(), DeviceId{0});
  for (DeviceId& device : assignment.devices) {
    device = DeviceId(static_cast<std::int64_t>(draws.below(model.n_devices())));
  }
  return assignment;
}

// After `n` executions of random assignments on an engine.
SystemModel learnt(const std::shared_ptr<const PlacementModel>& model, const std::string& engine,
                   int n) {
  SystemModel system(model);
  Executions executions(model, engine, 1);
  Draws draws(2);
  for (int i = 0; i < n; ++i) system.add(executions.run(drawn(*model, draws)).execution);
  return system;
}

TEST_CASE("before any execution, and of a system that does not depart, all factors are 1") {
  const auto model = model_of("ffnn@p100x4");
  for (int n : {0, 3}) {
    const CostScales scales = learnt(model, "simulator", n).scales();
    REQUIRE(scales.compute.size() == model->n_nodes() * 4);
    REQUIRE(scales.latency.size() == 16);
    for (const auto* factors : {&scales.compute, &scales.latency, &scales.bandwidth}) {
      for (double factor : *factors) CHECK(factor == Approx(1).epsilon(1e-9));
    }
  }
}

TEST_CASE("a slow device and slow links are found, also under noise") {
  for (const char* task : {"ffnn@p100x4", "llama-layer@p100x4", "published/llama-layer"}) {
    CAPTURE(task);
    const auto model = model_of(task);
    const SystemModel system =
        learnt(model, "simulator(bandwidth=0.25,slow_device=1,slowdown=2,noise=0.1)", 20);
    const CostScales scales = system.scales();
    for (std::size_t d = 0; d < 4; ++d) {
      double measured = 0;
      double expected = 0;
      for (std::size_t v = 0; v < model->n_nodes(); ++v) {
        const double seconds =
            model->costs().compute(NodeId(std::int64_t(v)), DeviceId(std::int64_t(d)));
        measured += seconds * scales.compute[v * 4 + d];
        expected += seconds;
      }
      CHECK(measured / expected == Approx(d == 1 ? 2 : 1).epsilon(0.03));
    }
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = 0; b < 4; ++b) {
        if (a != b) CHECK(scales.bandwidth[a * 4 + b] == Approx(0.25).epsilon(0.06));
      }
    }
    // The corrected task foretells assignments that it has not seen.
    Executions executions(model, "simulator(bandwidth=0.25,slow_device=1,slowdown=2)", 1);
    const auto corrected = system.corrected();
    Simulator simulator = corrected->task().simulator();
    Draws draws(9);
    // A little more or less changes the order of transfers, and by that a makespan by a tenth.
    double ratios = 0;
    for (int i = 0; i < 20; ++i) {
      const Assignment assignment = drawn(*model, draws);
      const double ratio =
          simulator.makespan(assignment.devices) / executions.run(assignment).execution.makespan;
      CHECK(ratio == Approx(1).margin(0.25));
      ratios += ratio;
    }
    CHECK(ratios / 20 == Approx(1).margin(0.03));
  }
}

TEST_CASE("latency and time per byte are told apart where transfers differ in size") {
  const auto model =
      model_of("llama-layer(sequence=64,width=64,heads=4,hidden=128,vocabulary=96)@p100x4");
  const CostScales scales = learnt(model, "simulator(latency=3,bandwidth=0.5)", 30).scales();
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) {
      if (a != b) CHECK(scales.latency[a * 4 + b] == Approx(3).epsilon(0.1));
    }
  }
}

TEST_CASE("scales multiply those that the task has") {
  Task task = make_task("published/ffnn");
  task.cost_model = task.cost_model.scaled({.compute = {2, 1, 1, 1}});
  const auto model = std::make_shared<const PlacementModel>(task);
  const CostScales scales = learnt(model, "simulator(slow_device=0,slowdown=1.5)", 10).scales();
  double sum = 0;
  for (std::size_t v = 0; v < model->n_nodes(); ++v) sum += scales.compute[v * 4];
  CHECK(sum / static_cast<double>(model->n_nodes()) == Approx(3).epsilon(0.05));
  CHECK(scales.compute[1] == Approx(1).epsilon(0.01));
}

TEST_CASE("a system model goes on from its state") {
  const auto model = model_of("published/chainmm");
  const SystemModel system = learnt(model, "simulator(noise=0.2)", 3);
  SystemModel again(model);
  again.restore(nlohmann::json::parse(system.state().dump()));
  CHECK(again.scales() == system.scales());
  CHECK(again.n_executions() == 3);
}

}  // namespace
}  // namespace doppler
