#include <algorithm>
#include <string>

#include "agents/agent.h"
#include "datasets/clusters.h"
#include "datasets/tasks.h"
#include "datasets/workloads.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

TEST_CASE("tasks lists every registered task with its size") {
  const auto list = run_json({"tasks", "--json"})["tasks"];
  REQUIRE(list.size() == tasks().size());
  std::size_t i = 0;
  for (const auto& [name, entry] : tasks()) {
    CHECK(list[i]["name"] == name);
    CHECK(list[i]["split"] == std::string(to_string(entry.split)));
    CHECK(list[i]["nodes"].get<int>() > 0);
    CHECK(list[i]["devices"].get<int>() > 0);
    ++i;
  }
  const Answer text = run({"tasks"});
  CHECK(text.exit_code == 0);
  CHECK(static_cast<std::size_t>(std::count(text.out.begin(), text.out.end(), '\n')) ==
        tasks().size() + 1);
}

TEST_CASE("tasks lists workloads, clusters, agents and engines with their parameters") {
  const auto json =
      run_json({"tasks", "--workloads", "--clusters", "--agents", "--engines", "--json"});
  CHECK(json["workloads"].size() == workloads().size());
  CHECK(json["clusters"].size() == clusters().size());
  CHECK(json["agents"].size() == agents().size());
  CHECK(json["engines"].size() >= 1);
  CHECK_FALSE(json.contains("tasks"));
  for (const auto& workload : json["workloads"]) {
    const auto& parameters = workload["parameters"];
    const auto shards = std::find_if(parameters.begin(), parameters.end(),
                                     [](const auto& p) { return p["name"] == "shards"; });
    REQUIRE(shards != parameters.end());
    CHECK((*shards)["type"] == "integer");
    CHECK((*shards)["default"].is_number_integer());
  }
  const Answer text = run({"tasks", "--agents"});
  CHECK(text.exit_code == 0);
  for (const auto& [name, entry] : agents()) {
    CHECK(text.out.find("  " + name + ": " + entry.summary + "\n") != std::string::npos);
  }
}

TEST_CASE("A reader that goes away ends the command quietly") {
  Process process({"tasks"});
  process.close_output();
  const Answer answer = process.wait();
  CHECK_FALSE(answer.signalled);
  CHECK(answer.exit_code == 141);
  CHECK(answer.err.empty());
}

}  // namespace
}  // namespace doppler::testing
