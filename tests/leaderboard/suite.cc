#include "leaderboard/suite.h"

#include <set>

#include "datasets/tasks.h"
#include "graphs/error.h"
#include "tests/leaderboard/small_suite.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

TEST_CASE("a suite that was written reads back equal") {
  CHECK(parse_suite(to_json(testing::small_suite()), "s.json") == testing::small_suite());
  for (const Suite& suite : suites()) CHECK(parse_suite(to_json(suite), "s.json") == suite);
}

TEST_CASE("what a suite says of its tasks is so") {
  for (const Suite& suite : suites()) {
    INFO(suite.name);
    Suite again = suite;
    // Larger graphs take minutes; scripts/leaderboard_rows.sh has none of them.
    std::erase_if(again.tasks, [](const SuiteTask& task) { return task.n_nodes > 2000; });
    const Suite committed = again;
    fill_in(again);
    for (std::size_t t = 0; t < again.tasks.size(); ++t) {
      INFO(again.tasks[t].name);
      const auto expected = committed.tasks[t].critical_path;
      CHECK(again.tasks[t].critical_path.has_value() == expected.has_value());
      if (expected) CHECK(*again.tasks[t].critical_path == Approx(*expected).epsilon(1e-12));
      again.tasks[t].critical_path = expected;
      CHECK(again.tasks[t].lower_bound == Approx(committed.tasks[t].lower_bound).epsilon(1e-12));
      again.tasks[t].lower_bound = committed.tasks[t].lower_bound;
      CHECK(again.tasks[t] == committed.tasks[t]);
    }
  }
}

TEST_CASE("the suites have the tasks and rules that they are named for") {
  const auto names = [](const char* suite) {
    std::set<std::string> result;
    for (const SuiteTask& task : find_suite(suite).tasks) result.insert(task.name);
    return result;
  };
  for (const char* workload : {"chainmm", "ffnn", "llama-block", "llama-layer"}) {
    CHECK(names("paper-4").contains(std::string(workload) + "@p100x4"));
    CHECK(names("paper-4").contains(std::string(workload) + "@p100x4, noise 0.1"));
    CHECK(names("paper-8").contains(std::string(workload) + "@v100x8"));
  }
  for (const char* graph :
       {"chainmm", "ffnn", "llama-block", "llama-layer", "llama-block-8", "llama-layer-8"}) {
    CHECK(names("published").contains(std::string("published/") + graph));
  }
  for (const Suite& suite : suites()) {
    INFO(suite.name);
    std::vector<std::int64_t> tiers;
    for (const Tier& tier : suite.tiers) tiers.push_back(tier.evaluations);
    CHECK(tiers == std::vector<std::int64_t>{1, 100, 1000, 10000});
    for (const SuiteTask& task : suite.tasks) {
      if (task.settings.noise) CHECK(task.settings.choice == Choice::random);
    }
  }
  CHECK(find_suite("real-cpu").engine.starts_with("cpu"));
  std::int64_t most = 0;
  for (const SuiteTask& task : find_suite("scale").tasks) {
    most = std::max(most, task.n_nodes);
    CHECK(task.exempt.empty() == (task.n_nodes <= 100'000));
  }
  CHECK(most == 1'000'000);
}

TEST_CASE("the suite that generalises has the test split, and trains on none of it") {
  const Suite suite = find_suite("generalize");
  CHECK(suite.training.held_out);
  std::set<std::string> tested;
  for (const SuiteTask& task : suite.tasks) tested.insert(task.task);
  std::set<std::string> trained(suite.training.tasks.begin(), suite.training.tasks.end());
  for (const auto& [name, entry] : tasks()) {
    INFO(name);
    CHECK(tested.contains(name) == (entry.split == Split::test));
    CHECK(trained.contains(name) == (entry.split == Split::train));
  }
  CHECK(!is_on_suite_tasks(suite, training_on(suite, suite.training.tasks)));
}

TEST_CASE("a suite that is damaged is refused with its place") {
  const std::string good = to_json(testing::small_suite());
  const auto message = [&](auto change) {
    nlohmann::json json = nlohmann::json::parse(good);
    change(json);
    try {
      parse_suite(json.dump(), "suite.json");
    } catch (const ParseError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Json = nlohmann::json;
  CHECK(message([](Json&) {}).empty());
  CHECK_THAT(message([](Json& j) { j["rules"] = 1; }), Catch::Contains("/rules"));
  CHECK_THAT(message([](Json& j) { j["tiers"][1]["evaluations"] = 1; }), Catch::Contains("ascend"));
  CHECK_THAT(message([](Json& j) { j["seeds"] = {0, 0}; }), Catch::Contains("twice"));
  CHECK_THAT(message([](Json& j) { j["tasks"][1]["name"] = "exact"; }), Catch::Contains("twice"));
  CHECK_THAT(message([](Json& j) { j["tasks"][1]["settings"]["choice"] = "any"; }),
             Catch::Contains("/tasks/1/settings/choice"));
  CHECK_THAT(message([](Json& j) { j["tasks"] = Json::array(); }), Catch::Contains("/tasks"));
}

TEST_CASE("memory, network and luck of a suite reach its tasks") {
  const SuiteTask lucky = testing::small_suite().task("lucky");
  CHECK(make_suite_task(lucky, 7).options.seed == 7);
  CHECK(make_suite_task(lucky, 7).options.noise == 0.1);
  CHECK(make_suite_task(testing::small_suite().task("exact"), 7).options.seed == 0);
  const SuiteTask small{
      .name = "m",
      .task = "chainmm@p100x4",
      .settings = {.network = Network::fair, .enforce_memory = true, .memory = 1e9}};
  const Task task = make_suite_task(small);
  CHECK(task.cluster.device(DeviceId{3}).memory == 1e9);
  CHECK(task.options.network == Network::fair);
  Suite suite = testing::small_suite();
  suite.tasks = {small};
  CHECK_THROWS_WITH(fill_in(suite), Catch::Contains("runs out of memory"));
}

}  // namespace
}  // namespace doppler
