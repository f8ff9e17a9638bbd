#include "agents/learned/paper_policy.h"

#include <cmath>
#include <map>

#include "agents/learned/learned.h"
#include "agents/learned/paper_decoder.h"
#include "agents/online/executions.h"
#include "datasets/tasks.h"
#include "tests/env/diamond.h"
#include "tests/learned/small_tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

using testing::model_of;
using testing::simple_model;
using testing::value_of;

constexpr PaperSizes kSmall{.hidden = 16, .edge_hidden = 8, .head = 8, .steps = 2};

std::shared_ptr<const PlacementModel> chainmm() { return model_of(make_task("published/chainmm")); }

PaperOptions small(std::int64_t imitation, std::int64_t simulator) {
  return {.sizes = kSmall,
          .training = {.imitation_episodes = imitation, .simulator_episodes = simulator}};
}

// What the trainer's policy decides greedily.
double greedy_makespan(const Trainer& trainer, const std::shared_ptr<const PlacementModel>& model) {
  auto network = std::make_shared<PaperNetwork>(kSmall, 0);
  read_policy(paper_traits(*network), trainer.policy(), "p");
  PaperDecoder decoder(network);
  decoder.begin(model);
  return model->task().simulator().makespan(decoder.decide().devices);
}

double largest_change(const std::string& before, const std::string& after) {
  const PolicyFile a = parse_policy(before, kPaperPolicyKind, "a");
  const PolicyFile b = parse_policy(after, kPaperPolicyKind, "b");
  double largest = 0;
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    for (std::size_t k = 0; k < a.arrays[i].values.size(); ++k) {
      largest = std::max(largest, std::abs(static_cast<double>(a.arrays[i].values[k]) -
                                           static_cast<double>(b.arrays[i].values[k])));
    }
  }
  return largest;
}

TEST_CASE("rates and exploration fall as the paper's tables say, and so do the steps taken") {
  const auto trainer =
      make_paper_trainer(small(5, 20), {.tasks = {chainmm()}, .options = {.max_evaluations = 0}});
  std::vector<double> rates;
  std::vector<double> epsilons;
  std::vector<double> steps;
  std::vector<int> stages;
  std::string before = trainer->policy();
  while (trainer->update()) {
    const TrainProgress progress = trainer->progress();
    rates.push_back(value_of(progress, "learning_rate"));
    epsilons.push_back(value_of(progress, "epsilon"));
    stages.push_back(progress.stage);
    const std::string after = trainer->policy();
    steps.push_back(largest_change(before, after));
    before = after;
  }
  REQUIRE(rates.size() == 25);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(stages[i] == 1);
    CHECK(rates[i] == 1e-3);
    CHECK(epsilons[i] == Approx(1 - static_cast<double>(i) / 4).margin(1e-12));
  }
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(stages[5 + i] == 2);
    const double at = static_cast<double>(i) / 19;
    CHECK(rates[5 + i] == Approx(1e-4 + (1e-7 - 1e-4) * at));
    CHECK(epsilons[5 + i] == Approx(0.2 * (1 - at)).margin(1e-12));
  }
  // Adam's first step is the rate for every parameter; no step is larger than a few rates.
  CHECK(steps[0] == Approx(1e-3).epsilon(0.01));
  CHECK(steps[5] == Approx(1e-4).epsilon(0.01));
  CHECK(steps[24] < 5e-7);
  CHECK(steps[24] > 1e-9);
}

TEST_CASE("episodes and evaluations are counted: none in stage I, one an episode in stage II") {
  const auto model = chainmm();
  PaperOptions numbers = small(2000, 8000);
  numbers.training.batch = 4;
  const auto trainer =
      make_paper_trainer(numbers, {.tasks = {model}, .options = {.max_evaluations = 30}});
  double share = 0;
  while (trainer->update()) {
    const TrainProgress progress = trainer->progress();
    CHECK(progress.share > share);
    share = progress.share;
    CHECK(progress.evaluations == (progress.stage == 1 ? 0 : progress.episodes - 8));
    CHECK(std::isinf(progress.best_makespan) == (progress.stage == 1));
  }
  const TrainProgress progress = trainer->progress();
  CHECK(share == 1);
  CHECK(progress.evaluations == 30);
  CHECK(progress.episodes == 38);  // a quarter of 30 to imitate
  CHECK(progress.updates == 2 + 8);
  CHECK_FALSE(trainer->update());
  const Decision best = trainer->best(0);
  CHECK(best.evaluations == 30);
  REQUIRE(best.makespan.has_value());
  CHECK(*best.makespan == progress.best_makespan);
  CHECK(*best.makespan == model->task().simulator().makespan(best.assignment.devices));
}

TEST_CASE("without a budget, or with a large one, a run is as long as the parameters say") {
  for (std::int64_t max_evaluations : {0, 4, 100}) {
    const auto trainer = make_paper_trainer(
        small(3, 4), {.tasks = {chainmm()}, .options = {.max_evaluations = max_evaluations}});
    while (trainer->update()) {
    }
    CHECK(trainer->progress().episodes == 7);
    CHECK(trainer->progress().evaluations == 4);
  }
  CHECK(ReinforceOptions{}.imitation_episodes == 2000);
  CHECK(ReinforceOptions{}.simulator_episodes == 8000);
}

TEST_CASE("a resumed run gives the bits of an uninterrupted one") {
  PaperOptions numbers = small(4, 6);
  numbers.training.batch = 2;
  const TrainProblem problem{.tasks = {chainmm(), model_of(testing::diamond())},
                             .options = {.seed = 3, .max_evaluations = 0}};
  const auto whole = make_paper_trainer(numbers, problem);
  std::vector<std::string> states = {whole->state()};
  while (whole->update()) states.push_back(whole->state());
  REQUIRE(states.size() == 6);
  for (std::size_t at = 0; at < states.size(); ++at) {
    INFO("resumed after " << at << " updates");
    const auto resumed = make_paper_trainer(numbers, problem);
    resumed->restore(states[at]);
    CHECK(resumed->state() == states[at]);
    std::size_t next = at;
    while (resumed->update()) CHECK((resumed->state() == states[++next]));
    CHECK(next + 1 == states.size());
    CHECK(resumed->best(1).assignment == whole->best(1).assignment);
    CHECK(resumed->progress().best_makespan == whole->progress().best_makespan);
  }
}

TEST_CASE("the number of threads changes nothing") {
  PaperOptions numbers = small(4, 8);
  numbers.training.batch = 4;
  std::vector<std::string> states;
  for (int n_threads : {1, 3}) {
    const auto trainer = make_paper_trainer(
        numbers, {.tasks = {chainmm()}, .options = {.max_evaluations = 0, .n_threads = n_threads}});
    while (trainer->update()) {
    }
    states.push_back(trainer->state());
  }
  CHECK((states[0] == states[1]));
}

TEST_CASE("a state of another run is refused, and nothing changes") {
  const TrainProblem problem{.tasks = {chainmm()}, .options = {.max_evaluations = 8}};
  const auto trainer = make_paper_trainer(small(4, 8), problem);
  trainer->update();
  const std::string before = trainer->state();
  TrainProblem other = problem;
  other.options.seed = 1;
  CHECK_THROWS_AS(trainer->restore(make_paper_trainer(small(4, 8), other)->state()), ParseError);
  CHECK_THROWS_AS(trainer->restore(make_paper_trainer(small(8, 8), problem)->state()), ParseError);
  CHECK_THROWS_AS(trainer->restore(trainer->policy()), ParseError);
  CHECK_THROWS_AS(trainer->restore(""), ParseError);
  CHECK_THROWS_AS(trainer->restore(before.substr(0, before.size() / 2)), ParseError);
  CHECK((trainer->state() == before));
}

TEST_CASE("imitation of the critical path balances independent nodes") {
  // Twelve nodes of 1 s on three devices: the optimum is 4.
  const auto model = simple_model(12, 0, false, 3);
  const auto trainer = make_paper_trainer(
      small(300, 0), {.tasks = {model}, .options = {.stages = {1}, .max_evaluations = 0}});
  while (trainer->update()) {
  }
  CHECK(greedy_makespan(*trainer, model) == 4);
  CHECK(trainer->progress().evaluations == 0);
}

TEST_CASE("REINFORCE learns to keep a chain on one device") {
  // Four nodes of 1 s, transfers of 5 s: the optimum is 4.
  const auto model = simple_model(4, 5, true, 2);
  PaperOptions numbers = small(0, 600);
  numbers.training.batch = 4;
  numbers.training.first_learning_rate = 3e-3;
  numbers.training.last_learning_rate = 1e-4;
  numbers.training.simulator_epsilon = 0.6;
  numbers.training.discount = 1;
  int n_worse = 0;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto trainer = make_paper_trainer(
        numbers,
        {.tasks = {model}, .options = {.stages = {2}, .seed = seed, .max_evaluations = 0}});
    if (greedy_makespan(*trainer, model) > 4) ++n_worse;
    while (trainer->update()) {
    }
    INFO("seed " << seed);
    CHECK(greedy_makespan(*trainer, model) == 4);
    CHECK(*trainer->best(0).makespan == 4);
  }
  CHECK(n_worse > 0);  // there was something to learn
}

TEST_CASE("any agent may be the teacher, with steps or without") {
  const auto model = chainmm();
  for (const char* teacher : {"partner-list", "heft", "annealing"}) {
    PaperOptions numbers = small(40, 4);
    numbers.training.teacher = teacher;
    const auto trainer =
        make_paper_trainer(numbers, {.tasks = {model}, .options = {.max_evaluations = 0}});
    while (trainer->update()) {
    }
    INFO(teacher);
    // A search that cannot decide without measuring uses one, once for all episodes.
    CHECK(trainer->progress().evaluations == 4 + (std::string(teacher) == "annealing" ? 1 : 0));
  }
  PaperOptions numbers = small(4, 4);
  numbers.training.teacher = "partnerlist";
  CHECK_THROWS_AS(make_paper_trainer(numbers, {.tasks = {model}}), UsageError);
}

TEST_CASE("a loss that is no number stops the run with a message, before anything changes") {
  const auto model = chainmm();
  PaperNetwork network(kSmall, 0);
  {
    const torch::NoGradGuard no_gradient;
    for (at::Tensor& parameter : network.select->parameters()) parameter.mul_(1e15);
  }
  const auto trainer = make_paper_trainer(
      small(4, 4),
      {.tasks = {model},
       .options = {.max_evaluations = 0, .initial_policy = write_policy(paper_traits(network))}});
  const std::string before = trainer->state();
  CHECK_THROWS_WITH(trainer->update(), Catch::Contains("diverged") && Catch::Contains("SEL"));
  CHECK((trainer->state() == before));
  CHECK(trainer->progress().updates == 0);
}

TEST_CASE("an assignment that does not fit into memory counts as a bad one, not as no number") {
  Task task = testing::tight_diamond(3);
  const auto model = model_of(task);
  const auto trainer = make_paper_trainer(
      small(0, 20), {.tasks = {model}, .options = {.stages = {2}, .max_evaluations = 0}});
  while (trainer->update()) CHECK(std::isfinite(value_of(trainer->progress(), "place_loss")));
}

TEST_CASE("stage III executes one assignment an episode, and keeps the best that was executed") {
  const auto model = chainmm();
  // A system of its own: links four times slower. Without noise.
  const std::string engine = "simulator(bandwidth=0.25)";
  PaperOptions numbers = small(8, 16);
  numbers.training.batch = 2;
  const TrainProblem problem{.tasks = {model},
                             .options = {.stages = {1, 2, 3},
                                         .seed = 2,
                                         .max_evaluations = 16,
                                         .engine = engine,
                                         .max_executions = 11}};
  const auto trainer = make_paper_trainer(numbers, problem);
  std::vector<std::string> states = {trainer->state()};
  while (trainer->update()) {
    states.push_back(trainer->state());
    const TrainProgress progress = trainer->progress();
    CHECK((progress.executions > 0) == (progress.stage == 3));
  }
  CHECK(trainer->progress().evaluations == 16);
  CHECK(trainer->progress().executions == 11);  // what it starts from, and ten episodes
  const Decision best = trainer->best(0);
  CHECK_FALSE(best.makespan.has_value());
  Executions system(model, engine, 0);
  // Never worse than what stage II came to.
  TrainProblem before = problem;
  before.options.stages = {1, 2};
  const auto simulated = make_paper_trainer(numbers, before);
  while (simulated->update()) {
  }
  CHECK(system.run(best.assignment).cost <= system.run(simulated->best(0).assignment).cost);
  for (std::size_t at : {states.size() - 4, states.size() - 2}) {
    const auto resumed = make_paper_trainer(numbers, problem);
    resumed->restore(states[at]);
    std::size_t next = at;
    while (resumed->update()) CHECK((resumed->state() == states[++next]));
    CHECK(next + 1 == states.size());
  }
}

TEST_CASE("executions that fail are episodes of their penalty") {
  const auto model = model_of(testing::tight_diamond(3));
  const auto trainer = make_paper_trainer(
      small(0, 4),
      {.tasks = {model}, .options = {.stages = {3}, .engine = "simulator", .max_executions = 20}});
  while (trainer->update()) {
    const TrainProgress progress = trainer->progress();
    CHECK(std::isfinite(value_of(progress, "place_loss")));
    CHECK(value_of(progress, "mean_makespan") <= Executions::kPenalty * model->time_scale());
  }
  CHECK(trainer->progress().executions == 20);
}

TEST_CASE("a policy starts another run, on a task of another size and number of devices") {
  const auto first = make_paper_trainer(
      small(10, 0), {.tasks = {chainmm()}, .options = {.stages = {1}, .max_evaluations = 0}});
  while (first->update()) {
  }
  TrainProblem problem{.tasks = {simple_model(9, 1, true, 5)}};
  problem.options.initial_policy = first->policy();
  const auto second = make_paper_trainer(small(4, 4), problem);
  CHECK((second->policy() == first->policy()));
  PaperOptions other = small(4, 4);
  other.sizes.hidden = 24;
  CHECK_THROWS_WITH(make_paper_trainer(other, problem), Catch::Contains("another network"));
  problem.options.initial_policy = "{}";
  CHECK_THROWS_AS(make_paper_trainer(small(4, 4), problem), ParseError);
}

TEST_CASE("message passing runs once for all episodes of a task, with the same decisions") {
  const auto model = chainmm();
  const auto network = std::make_shared<PaperNetwork>(kSmall, 6);
  PaperDecoder decoder(network);
  decoder.begin(model);
  const Assignment first = decoder.decide();
  decoder.begin(model);
  CHECK(decoder.decide() == first);
  PartialSchedule schedule(model);
  decoder.begin(model);
  while (!schedule.complete()) {
    const NodeId node = decoder.select(schedule);
    schedule.place(node, decoder.place(schedule, node));
  }
  CHECK(schedule.assignment() == first);
  CHECK(decoder.n_embeddings() == 1);
  PaperDecoder fresh(network);
  fresh.begin(model);
  CHECK(fresh.decide() == first);
  decoder.begin(model_of(testing::diamond()));
  CHECK(decoder.n_embeddings() == 2);
}

TEST_CASE("a decoder follows a schedule that somebody else has begun") {
  const auto model = chainmm();
  PaperDecoder decoder(std::make_shared<PaperNetwork>(kSmall, 6));
  PartialSchedule schedule(model);
  PaperDecoder other(std::make_shared<PaperNetwork>(kSmall, 6));
  other.begin(model);
  for (int i = 0; i < 20; ++i) {
    const NodeId node = other.select(schedule);
    schedule.place(node, other.place(schedule, node));
  }
  decoder.begin(model);
  const NodeId node = decoder.select(schedule);
  CHECK(node == other.select(schedule));
  CHECK(decoder.place(schedule, node) == other.place(schedule, node));
}

}  // namespace
}  // namespace doppler
