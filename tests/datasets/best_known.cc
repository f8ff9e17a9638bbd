// The best-known assignments: one of every registered task, and each gives what it says.
#include "datasets/best_known.h"

#include <set>

#include "datasets/tasks.h"
#include "graphs/error.h"
#include "graphs/lower_bound.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

TEST_CASE("Every registered task has a best-known assignment, which replays exactly") {
  std::set<std::string> known;
  for (const BestKnown& one : best_known()) known.insert(one.task);
  for (const auto& [name, entry] : tasks()) {
    INFO(name);
    CHECK(known.contains(name));
    const Task task = entry.make();
    const BestKnown* const one = find_best_known(task);
    REQUIRE(one != nullptr);
    CHECK(one->task == name);
    CHECK_NOTHROW(one->assignment.check(task.graph, task.cluster));
    CHECK(task.simulator().makespan(one->assignment.devices) == one->makespan);
    CHECK_FALSE(below_bound(one->makespan, task.lower_bound()));
    CHECK_FALSE(one->agent.empty());
  }
  CHECK(best_known().size() == tasks().size());
}

TEST_CASE("The best known of a task is found by what the task is") {
  Task task = make_task("ffnn@p100x4");
  REQUIRE(find_best_known(task) != nullptr);
  task.name = "another name";
  task.options.seed = 7;
  CHECK(find_best_known(task) != nullptr);
  task.options.network = Network::fair;
  CHECK(find_best_known(task) == nullptr);
}

// Yao et al.'s graphs: the reference's figures, best of many 60 s runs, x 1e10.
TEST_CASE("The best known of the published graphs are not far from the reference's") {
  const std::pair<const char*, double> kReference[] = {
      {"published/chainmm", 1200.07},       {"published/ffnn", 56.6958},
      {"published/llama-block", 166.712},   {"published/llama-layer", 122.622},
      {"published/llama-block-8", 166.724}, {"published/llama-layer-8", 166.58}};
  for (const auto& [name, makespan] : kReference) {
    const BestKnown* const one = find_best_known(make_task(name));
    REQUIRE(one != nullptr);
    CHECK(one->makespan < makespan * 1.01 * 1e10);
  }
}

TEST_CASE("A file of a best-known assignment is read strictly") {
  CHECK_THROWS_AS(parse_best_known("{", "x.json"), ParseError);
  CHECK_THROWS_AS(parse_best_known(R"({"format": "doppler-best-known", "version": 2})", "x.json"),
                  ParseError);
}

}  // namespace
}  // namespace doppler::testing
