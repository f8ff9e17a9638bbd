// The agent `doppler` and its training, on one task and on several.
#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/learned/doppler_policy.h"
#include "agents/learned/doppler_trainer.h"
#include "agents/learned/generalist_trainer.h"
#include "agents/learned/head_search.h"
#include "agents/learned/learned.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::shared_ptr<const PlacementModel> model_of(Task task) {
  return std::make_shared<const PlacementModel>(std::move(task));
}

std::shared_ptr<const PlacementModel> model_of(const std::string& task) {
  return model_of(make_task(task));
}

TrainProblem problem_of(const std::string& task, const TrainOptions& options) {
  return {.tasks = {model_of(task)}, .options = options};
}

Parameters parameters_of(const std::string& spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  return {agents().at("doppler").parameters, call};
}

std::unique_ptr<Trainer> trainer_of(const std::string& spelling, const TrainProblem& problem) {
  return make_doppler_trainer("doppler", parameters_of(spelling), problem);
}

std::string run_to_end(Trainer& trainer) {
  while (trainer.update()) {
  }
  return trainer.policy();
}

TEST_CASE("doppler finds the optimum of small problems") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto model =
        model_of("random-dag(n=7,width=3,bytes=20000000,seed=" + std::to_string(seed) + ")@p100x4");
    Simulator simulator = model->task().simulator();
    std::vector<DeviceId> assignment(7, DeviceId{0});
    double best = std::numeric_limits<double>::infinity();
    for (int code = 0; code < 1 << 14; ++code) {
      for (int v = 0; v < 7; ++v) {
        assignment[static_cast<std::size_t>(v)] = DeviceId{(code >> (2 * v)) & 3};
      }
      best = std::min(best, simulator.makespan(assignment));
    }
    const auto agent = make_doppler_agent("doppler", parameters_of("doppler"));
    const AssignResult result = assign(*agent, model->task(), {.max_evaluations = 20000});
    CHECK(result.makespan == Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("doppler counts every evaluation and keeps to its budget") {
  const Task task = make_task("llama-block@p100x4");
  const auto agent = make_doppler_agent("doppler", parameters_of("doppler"));
  for (std::int64_t budget : {1, 2, 3, 50, 1500}) {
    CHECK(assign(*agent, task, {.seed = 3, .max_evaluations = budget}).evaluations == budget);
  }
}

TEST_CASE("doppler trains to the same bits with any number of threads") {
  const TrainOptions options{.seed = 5, .max_evaluations = 3000};
  const auto alone = trainer_of("doppler", problem_of("llama-block@p100x4", options));
  TrainOptions many = options;
  many.n_threads = 3;
  const auto together = trainer_of("doppler", problem_of("llama-block@p100x4", many));
  CHECK((run_to_end(*alone) == run_to_end(*together)));
  CHECK(alone->best(0).assignment == together->best(0).assignment);
}

TEST_CASE("doppler goes on from any update to the same bits") {
  const std::string spelling = GENERATE("doppler", "doppler(teacher=m-etf)");
  const TrainProblem problem = problem_of("ffnn@p100x4", {.seed = 2, .max_evaluations = 1700});
  const auto whole = trainer_of(spelling, problem);
  const std::string policy = run_to_end(*whole);
  for (int n_updates : {0, 1, 7, 299, 300, 310, 450}) {
    const auto first = trainer_of(spelling, problem);
    for (int i = 0; i < n_updates; ++i) first->update();
    const auto second = trainer_of(spelling, problem);
    second->restore(first->state());
    CHECK((run_to_end(*second) == policy));
    CHECK(second->best(0).assignment == whole->best(0).assignment);
    CHECK(second->progress().evaluations == whole->progress().evaluations);
  }
}

Task lucky_task(const char* name, std::uint64_t seed) {
  Task task = make_task(name);
  task.options.noise = 0.1;
  task.options.choice = Choice::random;
  task.options.seed = seed;
  return task;
}

TEST_CASE("with luck too, doppler goes on from any update to the same bits, within its budget") {
  const TrainProblem problem{.tasks = {model_of(lucky_task("ffnn@p100x4", 3))},
                             .options = {.seed = 2, .max_evaluations = 90}};
  const auto whole = trainer_of("doppler", problem);
  const std::string policy = run_to_end(*whole);
  CHECK(whole->progress().evaluations == 90);
  const Decision best = whole->best(0);
  CHECK(*best.makespan == problem.tasks[0]->task().simulator().makespan(best.assignment.devices));
  for (int n_updates : {1, 10, 17, 18, 19, 20}) {
    const auto first = trainer_of("doppler", problem);
    for (int i = 0; i < n_updates; ++i) first->update();
    const auto second = trainer_of("doppler", problem);
    second->restore(first->state());
    CHECK((run_to_end(*second) == policy));
    CHECK(second->best(0).assignment == best.assignment);
    CHECK(second->best(0).makespan == best.makespan);
  }
}

TEST_CASE("with luck, what is returned is better by other lucks than what was best by its own") {
  double settled = 0;
  double lucky = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto model = model_of(lucky_task("published/llama-layer", seed));
    HeadSearch search(
        model, Latents{.n_latents = 0},
        {plain_head(partner_list_weights(), 0), plain_head(critical_path_weights(), 0)},
        {.seed = seed, .max_evaluations = 100});
    while (search.update()) {
    }
    CHECK(search.evaluations().n_used() == 100);
    Simulator simulator = model->task().simulator();
    const auto best = search.evaluations().best().devices;
    CHECK(simulator.makespan(best) == search.evaluations().best_makespan());
    for (std::uint64_t luck = 1000; luck < 1050; ++luck) {
      settled += simulator.makespan(search.decision().assignment.devices, luck);
      lucky += simulator.makespan(best, luck);
    }
  }
  CHECK(settled < 0.98 * lucky);
}

TEST_CASE("a state of something else is refused and changes nothing") {
  const auto trainer = trainer_of("doppler", problem_of("ffnn@p100x4", {.max_evaluations = 100}));
  trainer->update();
  const std::string before = trainer->state();
  CHECK_THROWS_AS(trainer->restore("nonsense"), ParseError);
  CHECK_THROWS_AS(trainer->restore(""), ParseError);
  CHECK((trainer->state() == before));
}

TEST_CASE("a policy that was learnt on one task runs on others") {
  const auto trainer =
      trainer_of("doppler", problem_of("llama-block@p100x4", {.seed = 1, .max_evaluations = 400}));
  const std::string text = run_to_end(*trainer);
  const DopplerPolicy policy = DopplerPolicy::parse(text, "test");
  CHECK((policy.text() == text));
  for (const char* task : {"moe@h100x8", "chainmm@mixed", "random-dag(n=50)@uniform(3)"}) {
    TrainOptions options{.seed = 1, .max_evaluations = 1};
    options.initial_policy = text;
    const auto other = trainer_of("doppler", problem_of(task, options));
    run_to_end(*other);
    CHECK(other->best(0).assignment.size() == model_of(task)->n_nodes());
  }
}

TEST_CASE("stage I alone imitates and measures once") {
  const auto trainer = trainer_of(
      "doppler",
      problem_of("llama-block@p100x4", {.stages = {1}, .seed = 1, .max_evaluations = 100}));
  run_to_end(*trainer);
  CHECK(trainer->progress().evaluations == 1);
  CHECK(trainer->progress().episodes > 1000);
}

TEST_CASE("doppler refuses what it cannot do, with the reason") {
  const auto refuse = [](const TrainOptions& options, const char* reason) {
    CHECK_THROWS_WITH(trainer_of("doppler", problem_of("ffnn@p100x4", options)),
                      Catch::Matchers::Contains(reason));
  };
  refuse({.max_evaluations = 0}, "--evaluations");
  TrainOptions on_gpu;
  on_gpu.device = "cuda";
  refuse(on_gpu, "--device cpu");
  CHECK_THROWS_WITH(trainer_of("doppler(teacher=annealing)", problem_of("ffnn@p100x4", {})),
                    Catch::Matchers::Contains("nobody counts"));
  TrainOptions broken;
  broken.initial_policy = "{}";
  refuse(broken, "policy");
  CHECK_THROWS_WITH(
      trainer_of("doppler", {.tasks = {model_of("ffnn@p100x4"), model_of("chainmm@p100x4")},
                             .options = {.max_evaluations = 10}}),
      Catch::Matchers::Contains("at least 200"));
}

TEST_CASE("a policy over several tasks goes on to the same bits and orders its heads") {
  const TrainProblem problem = {
      .tasks = {model_of("ffnn(batch=4096)@p100x4"), model_of("chainmm(n=2000)@mixed"),
                model_of("random-dag(n=60,bytes=10000000)@v100x8")},
      .options = {.seed = 4, .max_evaluations = 900}};
  const GeneralistOptions options{.n_imitation_updates = 20, .n_gate_updates = 30, .n_heads = 5};
  const auto make = [&] {
    return std::make_unique<GeneralistTrainer>(options, problem, DopplerPolicy::untrained(4));
  };
  const auto whole = make();
  const std::string text = run_to_end(*whole);
  CHECK(whole->progress().evaluations <= 900);
  CHECK(whole->progress().share == 1);
  for (int n_updates : {1, 3, 10, 24, 27, 40}) {
    const auto first = make();
    for (int i = 0; i < n_updates; ++i) first->update();
    const auto second = make();
    second->restore(first->state());
    CHECK((run_to_end(*second) == text));
  }
  const DopplerPolicy policy = DopplerPolicy::parse(text, "test");
  CHECK(policy.heads.size() == 5);
  const auto model = model_of("llama-block@p100x4");
  const NetworkInputs inputs(*model);
  auto order = order_heads(policy, model, inputs, policy.network.latents(inputs));
  std::sort(order.begin(), order.end());
  CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("embeddings are the same numbers however often they are asked for") {
  const auto model = model_of("llama-layer@p100x4");
  const NetworkInputs inputs(*model);
  const DopplerNetwork network({}, 3);
  CHECK(network.latents(inputs) == network.latents(NetworkInputs(*model)));
  CHECK(network.readout(inputs) == network.readout(inputs));
}

}  // namespace
}  // namespace doppler
