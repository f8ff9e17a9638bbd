// The peers and ablations learn, count, go on, and carry over.
#include <algorithm>
#include <filesystem>
#include <functional>

#include "agents/learned/gdp_policy.h"
#include "agents/learned/joint_policy.h"
#include "agents/learned/learned.h"
#include "agents/learned/paper_policy.h"
#include "agents/learned/placeto_policy.h"
#include "agents/learned/policy_heads.h"
#include "datasets/tasks.h"
#include "graphs/file.h"
#include "tests/learned/small_tasks.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

using testing::model_of;
using testing::simple_model;
using testing::value_of;
using Model = std::shared_ptr<const PlacementModel>;

constexpr PaperSizes kSmallPaper{.hidden = 16, .edge_hidden = 8, .head = 8, .steps = 2};

// The policies in small sizes, by the names of their agents.
MakeReinforcePolicy small_policy(const std::string& name) {
  const auto time =
      name.ends_with("/step") ? MessagePassingTime::step : MessagePassingTime::episode;
  if (name.starts_with("gdp")) {
    return gdp_policy(
        {.sizes = {.hidden = 16, .wide = 32, .heads = 2, .segment = 4}, .message_passing = time});
  }
  if (name.starts_with("joint"))
    return joint_policy({.sizes = kSmallPaper, .message_passing = time});
  if (name.starts_with("placeto")) {
    return placeto_policy({.sizes = {.rounds = 2},
                           .refines = name.starts_with("placeto-refine"),
                           .message_passing = time});
  }
  const PaperHalves halves = name.starts_with("doppler-sel")   ? PaperHalves::select
                             : name.starts_with("doppler-plc") ? PaperHalves::place
                                                               : PaperHalves::both;
  return paper_policy({.sizes = kSmallPaper, .halves = halves, .message_passing = time});
}

const std::vector<std::string> kAll = {"gdp",
                                       "gdp/step",
                                       "joint",
                                       "joint/step",
                                       "placeto-refine",
                                       "placeto-refine/step",
                                       "placeto-one-pass",
                                       "placeto-one-pass/step",
                                       "doppler-sel",
                                       "doppler-plc",
                                       "doppler/step"};

ReinforceOptions learning(std::int64_t imitation, std::int64_t episodes) {
  ReinforceOptions numbers;
  numbers.imitation_episodes = imitation;
  numbers.simulator_episodes = episodes;
  numbers.batch = 4;
  numbers.first_learning_rate = 5e-3;
  numbers.last_learning_rate = 1e-4;
  numbers.simulator_epsilon = 0.3;
  numbers.discount = 1;
  return numbers;
}

std::unique_ptr<Trainer> trainer_of(const std::string& name, const ReinforceOptions& numbers,
                                    const std::vector<Model>& tasks, TrainOptions options = {}) {
  options.max_evaluations = 0;
  return make_reinforce_trainer(small_policy(name), numbers, {.tasks = tasks, .options = options});
}

void run_to_end(Trainer& trainer) {
  while (trainer.update()) {
  }
}

// What the policy that was learnt decides greedily.
Assignment greedy(const std::string& name, const Trainer& trainer, const Model& model) {
  const auto policy = small_policy(name)({model}, torch::kCPU, 0);
  read_policy(policy->traits(), trainer.policy(), "p");
  return policy->decide(0);
}
double greedy_makespan(const std::string& name, const Trainer& trainer, const Model& model) {
  return model->task().simulator().makespan(greedy(name, trainer, model).devices);
}

TEST_CASE("every policy of devices learns to keep a chain on one device") {
  // Four nodes of 1 s, transfers of 5 s: the optimum is 4.
  const Model model = simple_model(4, 5, true, 2);
  for (const std::string& name : kAll) {
    if (name == "doppler-sel") continue;
    const bool refines = name.starts_with("placeto-refine");
    const std::int64_t n_episodes = name.ends_with("/step") ? 300 : 500;
    ReinforceOptions numbers = learning(0, n_episodes);
    if (!name.starts_with("doppler") && !name.starts_with("joint")) numbers.simulator_epsilon = 0.1;
    const auto trainer = trainer_of(name, numbers, {model}, {.stages = {2}, .seed = 1});
    run_to_end(*trainer);
    INFO(name);
    CHECK(greedy_makespan(name, *trainer, model) == 4);
    CHECK(*trainer->best(0).makespan == 4);
    CHECK(trainer->progress().evaluations == n_episodes * (refines ? 5 : 1));
  }
}

TEST_CASE("SEL alone learns an order that b-levels do not have") {
  // Of 3, 3, 2, 2 and 2 s on two devices the largest first gives 7; 6 is the optimum.
  GraphBuilder builder("pack");
  for (int v = 0; v < 5; ++v) {
    builder.add_node({.name = "n" + std::to_string(v), .outputs = {{.bytes = 1}}});
  }
  builder.set_raw_compute({3, 3, 2, 2, 2});
  const Model model = model_of({.name = "pack",
                                .graph = builder.build(),
                                .cluster = Cluster::uniform(2),
                                .cost_model = CostModel::raw()});
  CHECK(assign(*make_agent("critical-path"), model->task()).makespan == 7);
  const auto trainer =
      trainer_of("doppler-sel", learning(0, 600), {model}, {.stages = {2}, .seed = 1});
  run_to_end(*trainer);
  CHECK(*trainer->best(0).makespan == 6);
  CHECK(greedy_makespan("doppler-sel", *trainer, model) == 6);
}

TEST_CASE("stage I makes every policy do what its teacher does, without an evaluation") {
  // Twelve nodes of 1 s on three devices: the optimum is 4.
  const Model model = simple_model(12, 0, false, 3);
  for (const std::string& name : kAll) {
    if (name == "doppler-sel" || name == "doppler/step" || name == "joint/step") continue;
    INFO(name);
    ReinforceOptions numbers = learning(400, 0);
    numbers.imitation_learning_rate = 5e-3;
    numbers.batch = 1;
    const auto trainer = trainer_of(name, numbers, {model}, {.stages = {1}, .seed = 2});
    run_to_end(*trainer);
    CHECK(trainer->progress().evaluations == 0);
    CHECK(trainer->progress().episodes == 400);
    // Policies that cannot tell equal nodes apart cannot balance them by one fixed assignment.
    if (name.starts_with("gdp") || name == "placeto-refine" || name == "placeto-one-pass") continue;
    CHECK(greedy_makespan(name, *trainer, model) == 4);
  }
}

TEST_CASE("one shot imitates the assignment of the teacher") {
  const Model model = model_of(make_task("published/chainmm"));
  ReinforceOptions numbers = learning(300, 0);
  numbers.teacher = "heft";
  numbers.imitation_learning_rate = 5e-3;
  const auto trainer = trainer_of("gdp", numbers, {model}, {.stages = {1}});
  trainer->update();
  const double before = value_of(trainer->progress(), "loss");
  run_to_end(*trainer);
  const double after = value_of(trainer->progress(), "loss");
  CHECK(before > 76 * std::log(4) * 0.8);  // no better than uniform
  CHECK(after < 0.7 * before);
  const Assignment taught = assign(*make_agent("heft"), model->task()).assignment;
  const Assignment learnt = greedy("gdp", *trainer, model);
  int n_same = 0;
  for (std::size_t v = 0; v < taught.size(); ++v) {
    n_same += taught.devices[v] == learnt.devices[v] ? 1 : 0;
  }
  CHECK(n_same > 32);  // by chance 19, with a deviation of 4
}

TEST_CASE("a refinement measures where it begins and each step, and keeps the best of them") {
  const Model model = model_of(make_task("published/chainmm"));
  const std::int64_t n = std::int64_t(model->n_nodes());
  ReinforceOptions numbers = learning(4, 100);
  numbers.batch = 2;
  TrainProblem problem{.tasks = {model}, .options = {.max_evaluations = 5 * (1 + n) + 3}};
  const auto trainer =
      make_reinforce_trainer(small_policy("placeto-refine/step"), numbers, problem);
  run_to_end(*trainer);
  CHECK(trainer->progress().evaluations == 5 * (1 + n));
  const Decision best = trainer->best(0);
  CHECK(*best.makespan == model->task().simulator().makespan(best.assignment.devices));
  const PlacetoTask task(model);
  CHECK(*best.makespan <= model->task().simulator().makespan(task.start.devices));
  // One that cannot pay for an episode decides without, after its share of stage I: 76 % of 4.
  problem.options.max_evaluations = n;
  const auto poor = make_reinforce_trainer(small_policy("placeto-refine/step"), numbers, problem);
  run_to_end(*poor);
  CHECK(poor->progress().evaluations == 0);
  CHECK(poor->progress().stage == 1);
  CHECK(poor->progress().episodes == 3);
  CHECK(poor->best(0).assignment.size() == model->n_nodes());
  CHECK_FALSE(poor->best(0).makespan.has_value());
}

TEST_CASE("every policy goes on from any update to the same bits, with any number of threads") {
  const Model first = simple_model(5, 2, true, 3);
  const Model second = simple_model(7, 1, false, 3);
  for (const std::string& name : kAll) {
    INFO(name);
    const ReinforceOptions numbers = learning(6, 10);
    const auto whole = trainer_of(name, numbers, {first, second}, {.seed = 3});
    std::vector<std::string> states = {whole->state()};
    while (whole->update()) states.push_back(whole->state());
    REQUIRE(states.size() == 6);
    for (std::size_t at : {std::size_t{1}, std::size_t{3}}) {
      const auto resumed = trainer_of(name, numbers, {first, second}, {.seed = 3, .n_threads = 3});
      resumed->restore(states[at]);
      std::size_t next = at;
      while (resumed->update()) CHECK((resumed->state() == states[++next]));
      CHECK(next + 1 == states.size());
      CHECK(resumed->best(1).assignment == whole->best(1).assignment);
    }
    const auto other = trainer_of(name, learning(6, 12), {first, second}, {.seed = 3});
    CHECK_THROWS_AS(other->restore(states[1]), ParseError);
  }
}

TEST_CASE("policies carry over to other graphs, and to other numbers of devices where they can") {
  const Model here = simple_model(6, 1, true, 3);
  const Model larger = simple_model(11, 1, false, 3);
  const Model wider = simple_model(6, 1, true, 5);
  for (const std::string& name : kAll) {
    INFO(name);
    const bool any_devices = name.starts_with("doppler") || name.starts_with("joint");
    const auto trainer = trainer_of(name, learning(4, 0), {here}, {.stages = {1}});
    run_to_end(*trainer);
    CHECK(greedy(name, *trainer, larger).size() == 11);
    if (any_devices) {
      CHECK(greedy(name, *trainer, wider).size() == 6);
    } else {
      CHECK_THROWS_WITH(greedy(name, *trainer, wider),
                        Catch::Contains("3 devices") && Catch::Contains("task has 5"));
      CHECK_THROWS_WITH(trainer_of(name, learning(4, 0), {here, wider}),
                        Catch::Contains("one output a device"));
    }
    TrainOptions options;
    options.initial_policy = trainer->policy();
    const auto next = trainer_of(name, learning(4, 4), {larger}, options);
    CHECK((next->policy() == trainer->policy()));
    options.initial_policy = "{}";
    CHECK_THROWS_AS(trainer_of(name, learning(4, 4), {larger}, options), ParseError);
  }
}

// By the registry, in the sizes of the papers.
std::unique_ptr<Agent> agent_of(const std::string& spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  return make_learned_agent(call.name, Parameters(agents().at(call.name).parameters, call));
}

TEST_CASE("peers assign within their evaluations, tell of improvements, and decide by a policy") {
  const auto drawn = testing::random_case(4);
  const Task task{"drawn",          drawn.graph,   drawn.cluster,
                  drawn.cost_model, drawn.options, Split::none};
  for (const std::string name :
       {"gdp", "gdp(message_passing=step)", "joint", "placeto", "placeto(preset=one-pass)",
        "doppler-sel(preset=paper)", "doppler-plc(preset=paper)", "doppler-sel", "doppler-plc"}) {
    INFO(name);
    std::vector<Improvement> curve;
    AssignOptions options{.seed = 1, .max_evaluations = 40};
    options.on_better = [&](const Improvement& improvement) { curve.push_back(improvement); };
    const AssignResult result = assign(*agent_of(name), task, options);
    CHECK(result.evaluations <= 40);
    REQUIRE_FALSE(curve.empty());
    CHECK(curve.back().makespan == result.makespan);
    for (std::size_t i = 1; i < curve.size(); ++i) {
      CHECK(curve[i].makespan < curve[i - 1].makespan);
    }
    options.on_better = {};
    CHECK(assign(*agent_of(name), task, options).assignment == result.assignment);

    // A policy file decides with one evaluation.
    const NamedCall call = NamedCall::parse(name);
    const auto trainer = make_learned_trainer(
        call.name, Parameters(agents().at(call.name).parameters, call),
        {.tasks = {model_of(task)}, .options = {.stages = {1, 2}, .max_evaluations = 20}});
    run_to_end(*trainer);
    const auto path = std::filesystem::temp_directory_path() / "doppler-peers-policy.json";
    write_file(path.string(), trainer->policy());
    const std::string with =
        name.ends_with(")") ? name.substr(0, name.size() - 1) + ",policy=" + path.string() + ")"
                            : name + "(policy=" + path.string() + ")";
    const auto agent = agent_of(with);
    const AssignResult once = assign(*agent, task, {.seed = 1});
    CHECK(once.evaluations == 1);
    const AssignResult more = assign(*agent, task, {.seed = 1, .max_evaluations = 30});
    CHECK(more.makespan <= once.makespan);
    CHECK(more.evaluations <= 30);
    if (name != "gdp(message_passing=step)") {
      CHECK_THROWS_WITH(agent_of("gdp(message_passing=step,policy=" + path.string() + ")"),
                        Catch::Contains("not of 'gdp"));
    }
    std::filesystem::remove(path);
  }
}

TEST_CASE("what cannot be is refused in one line") {
  const Model model = simple_model(4, 1, true, 2);
  CHECK_THROWS_WITH(agent_of("doppler(message_passing=step)"), Catch::Contains("preset=paper"));
  CHECK_THROWS_WITH(agent_of("gdp(policy=/nowhere/p.json)"), Catch::Contains("/nowhere/p.json"));
  ReinforceOptions numbers = learning(4, 4);
  numbers.teacher = "partnerlist";
  CHECK_THROWS_AS(trainer_of("gdp", numbers, {model}), UsageError);
  const NamedCall call = NamedCall::parse("doppler-plc");
  CHECK_THROWS_WITH(
      make_learned_trainer(call.name, Parameters(agents().at(call.name).parameters, call),
                           {.tasks = {model, model}, .options = {.max_evaluations = 1000}}),
      Catch::Contains("one task"));
}

TEST_CASE("ablations of preset best evolve one half, the other is the rule") {
  const Model model = model_of(make_task("llama-block@p100x4"));
  for (const std::string name : {"doppler-sel", "doppler-plc"}) {
    const NamedCall call = NamedCall::parse(name);
    const Parameters parameters(agents().at(name).parameters, call);
    const auto trainer = make_learned_trainer(
        name, parameters, {.tasks = {model}, .options = {.seed = 1, .max_evaluations = 400}});
    run_to_end(*trainer);
    CHECK(trainer->progress().evaluations == 400);
    const double critical = assign(*make_agent("critical-path"), model->task()).makespan;
    CHECK(*trainer->best(0).makespan < critical);
    const PolicyFile file = parse_policy(trainer->policy(), "doppler(preset=best)", "p");
    const auto heads = std::ranges::find(file.arrays, "heads", &PolicyArray::name);
    REQUIRE(heads != file.arrays.end());
    const RuleWeights rule = critical_path_weights();
    bool moved = false;
    const auto width = static_cast<std::size_t>(heads->shape[1]);
    for (std::size_t i = 0; i < heads->values.size(); ++i) {
      const std::size_t at = i % width;
      const double plain = at < kRuleWeights ? rule[at] : 0;
      const bool selects = at % kRuleWeights < kNodeFeatures;
      if (selects == (name == "doppler-sel")) {
        moved = moved || heads->values[i] != static_cast<float>(plain);
      } else {
        CHECK(heads->values[i] == static_cast<float>(plain));
      }
    }
    CHECK(moved);
  }
}

}  // namespace
}  // namespace doppler
