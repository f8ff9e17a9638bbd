#include "leaderboard/verification.h"

#include <functional>
#include <limits>

#include "graphs/hash.h"
#include "tests/leaderboard/small_suite.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

using testing::make_row;
using testing::small_suite;
using Json = nlohmann::json;

const Submission& good_row() {
  static const Submission row = make_row(small_suite(), "annealing", 20);
  return row;
}

std::string all(const Verification& verification) {
  std::string text;
  for (const std::string& fault : verification.faults) text += fault + "\n";
  return text;
}

std::string faults_after(const std::function<void(Submission&)>& change) {
  static Verifier verifier({small_suite()});
  Submission row = good_row();
  change(row);
  return all(verifier.verify(row));
}

TEST_CASE("a row that was made by the protocol holds, and reads back equal") {
  Verifier verifier({small_suite()});
  for (const char* agent : {"heft", "critical-path", "annealing"}) {
    const Submission row = make_row(small_suite(), agent, 20);
    const Verification verification = verifier.verify(row);
    CHECK(all(verification).empty());
    CHECK(verification.n_executions == 2 * 1 + 2 * 3);
    CHECK(parse_submission(to_json(row), "row.json") == row);
  }
}

TEST_CASE("what is measured is not the luck by which the agent decided") {
  const Task task = make_suite_task(small_suite().task("lucky"), 1);
  const SubmissionRun& run = good_row().tasks[1].runs[1];
  Simulator simulator = task.simulator();
  // Its own curve is by its seed, 1.
  CHECK(simulator.makespan(run.assignment.devices, 1) == run.curve.back().makespan);
  REQUIRE(run.makespans.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(simulator.makespan(run.assignment.devices, 1'000'000 + i) == run.makespans[i]);
  }
}

TEST_CASE("each kind of tampering is refused") {
  CHECK(faults_after([](Submission&) {}).empty());
  const auto refused = [](const char* words, const std::function<void(Submission&)>& change) {
    CHECK_THAT(faults_after(change), Catch::Contains(words));
  };
  refused("unknown suite", [](Submission& row) { row.suite = "smal"; });
  refused("revision 2", [](Submission& row) { row.revision = 2; });
  refused("no tier of 19", [](Submission& row) { row.tier = 19; });
  refused("'lucky' is missing", [](Submission& row) { row.tasks.pop_back(); });
  refused("'exact' is there twice", [](Submission& row) { row.tasks.push_back(row.tasks[0]); });
  refused("'extra' is not one of suite", [](Submission& row) {
    row.tasks.push_back(row.tasks[0]);
    row.tasks.back().name = "extra";
  });
  refused("another graph", [](Submission& row) { row.tasks[0].hash ^= 1; });
  refused("1 of 2 seeds are missing", [](Submission& row) { row.tasks[0].runs.pop_back(); });
  refused("seed 0 is there twice", [](Submission& row) { row.tasks[0].runs[1].seed = 0; });
  refused("not of the protocol", [](Submission& row) { row.tasks[0].runs[1].seed = 5; });
  refused("2 makespans; the protocol has 3",
          [](Submission& row) { row.tasks[1].runs[0].makespans.pop_back(); });
  refused("2 makespans; the protocol has 1",
          [](Submission& row) { row.tasks[0].runs[0].makespans.push_back(1); });
  refused("device 4",
          [](Submission& row) { row.tasks[0].runs[0].assignment.devices[3] = DeviceId{4}; });
  refused("nodes", [](Submission& row) { row.tasks[0].runs[0].assignment.devices.pop_back(); });
  refused("but the assignment gives", [](Submission& row) {
    SubmissionRun& run = row.tasks[1].runs[0];
    run.assignment.devices[0] = DeviceId{3 - run.assignment.devices[0].value};
  });
  refused("run 2 has makespan",
          [](Submission& row) { row.tasks[1].runs[0].makespans[2] *= 1 + 1e-8; });
  CHECK(faults_after([](Submission& row) {
          row.tasks[1].runs[0].makespans[2] *= 1 + 1e-10;
        }).empty());
  refused("has makespan out of memory", [](Submission& row) {
    row.tasks[0].runs[0].makespans[0] = std::numeric_limits<double>::infinity();
  });
  refused("below the lower bound", [](Submission& row) {
    row.tasks[0].runs[0].makespans[0] = small_suite().tasks[0].lower_bound / 2;
  });
  refused("21 evaluations in the tier of 20",
          [](Submission& row) { row.tasks[0].runs[0].evaluations = 21; });
  refused("the tier allows 20 s", [](Submission& row) { row.tasks[0].runs[0].seconds = 20.1; });
  refused("the curve ends at", [](Submission& row) { row.tasks[0].runs[0].curve = {{1, 0, 1e9}}; });
  refused("which no luck explains", [](Submission& row) {
    row.tasks[1].runs[0].curve = {{1, 0, 0.4 * small_suite().tasks[1].lower_bound}};
  });
  refused("evaluations do not ascend", [](Submission& row) {
    row.tasks[0].runs[0].curve[0].evaluations = 20;
    row.tasks[0].runs[0].evaluations = 19;
  });
  refused("makespans of critical-path",
          [](Submission& row) { row.tasks[0].runs[0].critical_path = {1}; });
}

TEST_CASE("training that the row does not own up to is refused") {
  const auto trained = [](Submission& row, const std::vector<std::string>& tasks) {
    row.training = training_on(small_suite(), tasks);
    row.training.evaluations = 10;
  };
  CHECK(faults_after([&](Submission& row) { trained(row, {"ffnn@p100x4"}); }).empty());
  // The tasks of the suite: owned up to; not; under another name.
  CHECK(faults_after([&](Submission& row) { trained(row, {"ffnn(shards=2)@p100x4"}); }).empty());
  CHECK_THAT(faults_after([&](Submission& row) {
               trained(row, {"ffnn(shards=2)@p100x4"});
               row.training.on_suite_tasks = false;
             }),
             Catch::Contains("does not say so"));
  CHECK_THAT(faults_after([&](Submission& row) {
               trained(row, {"ffnn(shards=2)@p100x4"});
               row.training.on_suite_tasks = false;
               row.training.tasks[0].name = "something else";
             }),
             Catch::Contains("does not say so"));
  CHECK_THAT(faults_after([&](Submission& row) { row.training.on_suite_tasks = true; }),
             Catch::Contains("names none"));
  CHECK_THAT(faults_after([&](Submission& row) {
               trained(row, {"ffnn@p100x4"});
               row.training.evaluations = 1001;
             }),
             Catch::Contains("allows 1000"));
  CHECK_THAT(faults_after([&](Submission& row) {
               trained(row, {"ffnn@p100x4"});
               row.training.seconds = 61;
             }),
             Catch::Contains("allows 60 s"));
  CHECK_THAT(
      faults_after([](Submission& row) { row.parameters["policy"] = std::string("generalist"); }),
      Catch::Contains("starts from a policy"));
}

TEST_CASE("a task that a kind may leave out may be missing for that kind only") {
  Suite suite = small_suite();
  suite.tasks[0].exempt = {"learned"};
  Verifier verifier({suite});
  Submission row = good_row();
  row.tasks.erase(row.tasks.begin());
  CHECK_THAT(all(verifier.verify(row)), Catch::Contains("'exact' is missing"));
  row.kind = "learned";
  CHECK(verifier.verify(row).holds());
  CHECK(plan_decisions(suite, "small", "annealing", 1, "learned").size() == 2);
}

TEST_CASE("a submission that is damaged or not understood is refused with its place") {
  const std::string good = to_json(good_row());
  const auto message = [&](auto change) {
    Json json = Json::parse(good);
    change(json);
    try {
      parse_submission(json.dump(), "row.json");
    } catch (const ParseError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto run = [](Json& json) -> Json& { return json["results"][0]["runs"][0]; };
  CHECK(message([](Json&) {}).empty());
  const Json whole = Json::parse(good);
  for (const auto& item : whole.items()) {
    const std::string& field = item.key();
    CHECK_THAT(message([&](Json& j) { j.erase(field); }), Catch::Contains(field));
  }
  CHECK_THAT(message([](Json& j) { j["score"] = 1; }), Catch::Contains("/score"));
  CHECK_THAT(message([&](Json& j) { run(j)["luck"] = 1; }), Catch::Contains("/luck"));
  CHECK_THAT(message([](Json& j) { j["version"] = 2; }), Catch::Contains("version 2"));
  CHECK_THAT(message([](Json& j) { j["kind"] = "best"; }), Catch::Contains("/kind"));
  CHECK_THAT(message([](Json& j) { j["link"] = "javascript:alert(1)"; }), Catch::Contains("/link"));
  CHECK_THAT(message([](Json& j) { j["training"]["evaluations"] = 5; }),
             Catch::Contains("/training/tasks"));
  CHECK_THAT(
      message([&](Json& j) { run(j)["assignment"][0] = 3 - run(j)["assignment"][0].get<int>(); }),
      Catch::Contains("hash of the assignment"));
  CHECK_THAT(message([&](Json& j) { run(j).erase("makespans"); }), Catch::Contains("makespans"));
  CHECK_THAT(message([&](Json& j) { run(j)["makespans"] = Json::array(); }),
             Catch::Contains("/makespans"));
}

TEST_CASE("a draft says what was decided, and no more") {
  Json json = Json::parse(to_json(good_row()));
  for (const char* field : {"revision", "parameters", "authors", "link", "note", "code_version",
                            "command", "hardware", "training"}) {
    json.erase(field);
  }
  for (Json& task : json["results"]) {
    task.erase("task_hash");
    for (Json& run : task["runs"]) {
      for (const char* field : {"assignment_hash", "makespans", "curve"}) run.erase(field);
    }
  }
  CHECK_THROWS_AS(parse_submission(json.dump(), "draft.json"), ParseError);
  const Submission draft = parse_submission(json.dump(), "draft.json", Completeness::draft);
  CHECK(draft.tasks[1].runs[1].assignment == good_row().tasks[1].runs[1].assignment);
  CHECK(measure(small_suite(), small_suite().task("lucky"), draft.tasks[1].runs[1].assignment) ==
        good_row().tasks[1].runs[1].makespans);
}

}  // namespace
}  // namespace doppler
