#include "leaderboard/result_row.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "datasets/tasks.h"
#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Task& ffnn() {
  static const Task task = make_task("published/ffnn");
  return task;
}

ResultKey key_of(const std::string& agent, std::int64_t evaluations = 50) {
  return {.task = "published/ffnn", .agent = agent, .seed = 2, .max_evaluations = evaluations};
}

TEST_CASE("a row is what assign gives") {
  const ResultRow row = run_row(key_of("annealing(hot=0.01)"), ffnn(), "1.2.3");
  const AssignResult result =
      assign(*make_agent("annealing(hot=0.01)"), ffnn(), {.seed = 2, .max_evaluations = 50});
  CHECK(row.assignment == result.assignment);
  CHECK(row.makespan == result.makespan);
  CHECK(row.evaluations == 50);
  CHECK(row.lower_bound == ffnn().lower_bound());
  CHECK(row.task_hash == ffnn().hash());
  CHECK(row.raw_costs);
  CHECK(row.code_version == "1.2.3");
  CHECK(row.parameters.at("hot") == ParameterValue(0.01));
  CHECK(row.parameters.at("start") == ParameterValue(std::string("partner-list")));
  REQUIRE(!row.curve.empty());
  CHECK(row.curve.back().makespan == row.makespan);
  CHECK_NOTHROW(check_row(row, ffnn()));
}

TEST_CASE("a row that was written reads back equal") {
  ResultRow row = run_row(key_of("rule-search"), ffnn(), "0.1.0");
  CHECK(parse_row(to_json(row), "f") == row);
  row.key.max_seconds = 0.1;
  row.makespan = kInfinity;
  row.curve = {{1, 0.5, kInfinity}};
  CHECK(parse_row(to_json(row), "f") == row);
  row.key.settings = {{"noise", 0.1},
                      {"choice", std::string("random")},
                      {"streams", std::int64_t{2}},
                      {"enforce_memory", true}};
  CHECK(parse_row(to_json(row), "f") == row);
  CHECK(row.key.task_text() ==
        row.key.task + " (choice=random, enforce_memory=true, noise=0.1, streams=2)");
}

TEST_CASE("a row that is damaged or not understood is refused with its place") {
  const std::string good = to_json(run_row(key_of("partner-list", 1), ffnn(), "0.1.0"));
  const auto message = [&](auto change) {
    nlohmann::json json = nlohmann::json::parse(good);
    change(json);
    try {
      parse_row(json.dump(), "row.json");
    } catch (const ParseError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Json = nlohmann::json;
  CHECK(message([](Json&) {}).empty());
  CHECK_THAT(message([](Json& j) { j["sede"] = 1; }), Catch::Contains("/sede"));
  CHECK_THAT(message([](Json& j) { j.erase("curve"); }), Catch::Contains("curve"));
  CHECK_THAT(message([](Json& j) { j["version"] = 2; }), Catch::Contains("version 2"));
  CHECK_THAT(message([](Json& j) { j["assignment"][0] = 3 - j["assignment"][0].get<int>(); }),
             Catch::Contains("hash of the assignment"));
  CHECK_THAT(message([](Json& j) { j["makespan"] = 1; }), Catch::Contains("curve"));
  CHECK_THAT(message([](Json& j) { j["makespan"] = "soon"; }), Catch::Contains("/makespan"));
  CHECK_THAT(message([](Json& j) { j["curve"] = Json::array(); }), Catch::Contains("/curve"));
  CHECK_THAT(message([](Json& j) { j["curve"].push_back(j["curve"][0]); }),
             Catch::Contains("must fall"));
  CHECK_THAT(message([](Json& j) { j["task_hash"] = "xyz"; }), Catch::Contains("/task_hash"));
  CHECK_THROWS_AS(parse_row(good.substr(0, good.size() / 2), "f"), ParseError);
}

TEST_CASE("a row that does not hold is told") {
  ResultRow row = run_row(key_of("random", 1), ffnn(), "0.1.0");
  row.makespan *= 0.99;
  CHECK_THROWS_WITH(check_row(row, ffnn()), Catch::Contains("assignment gives"));
  CHECK_THROWS_WITH(check_row(row, make_task("published/chainmm")),
                    Catch::Contains("another version"));
  row.assignment.devices.pop_back();
  CHECK_THROWS_WITH(check_row(row, ffnn()), Catch::Contains("does not fit"));
}

TEST_CASE("a seed is the luck of a noisy task too, and of no other") {
  Task noisy = ffnn();
  noisy.options.noise = 0.2;
  CHECK(with_luck_of(noisy, 7).options.seed == 7);
  CHECK(with_luck_of(ffnn(), 7) == ffnn());
  ResultKey key = key_of("partner-list", 1);
  const ResultRow first = run_row(key, noisy, "");
  key.seed = 3;
  const ResultRow second = run_row(key, noisy, "");
  CHECK(first.assignment == second.assignment);
  CHECK(first.makespan != second.makespan);
  CHECK_NOTHROW(check_row(second, noisy));
}

TEST_CASE("every key has a file of its own") {
  std::set<std::string> names;
  std::size_t n = 0;
  for (const char* task : {"a/b", "a_b", "a b"}) {
    for (const char* agent : {"x", "x(y=1)", "x(y=1.0)"}) {
      for (std::uint64_t seed : {0, 1}) {
        for (std::int64_t evaluations : {1, 10}) {
          for (double seconds : {1.0, 1.0000001, kInfinity}) {
            const ResultKey key{task, agent, seed, evaluations, seconds};
            names.insert(key.file_name());
            ++n;
          }
        }
      }
    }
  }
  CHECK(names.size() == n);
  for (const std::string& name : names) CHECK(name.find_first_of("/ ") == std::string::npos);
  const std::string longest(3000, 'x');
  CHECK(ResultKey{longest, longest, 1, 1, 1}.file_name().size() < 250);
}

}  // namespace
}  // namespace doppler
