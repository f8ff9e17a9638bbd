#include "cli/comparison.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "cli/agreement.h"
#include "datasets/tasks.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Catch::Matchers::WithinRel;
using Words = std::vector<std::string>;

constexpr const char* kSmall = "chainmm(n=32,shards=2)@cpu2";

TEST_CASE("Rank correlations are those of worked examples") {
  // Without ties Spearman's is 1 - 6 sum d^2 / (n (n^2 - 1)): d = 1, 1, 1, 1, 0.
  const std::vector<double> a = {1, 2, 3, 4, 5};
  const std::vector<double> b = {20, 10, 40, 30, 50};
  CHECK_THAT(cli::spearman(a, b), WithinRel(1 - 6 * 4.0 / (5 * 24), 1e-12));
  // Two of ten pairs are discordant.
  CHECK_THAT(cli::kendall(a, b), WithinRel((8 - 2) / 10.0, 1e-12));
  // With ties: ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3; tau-b of 5 concordant of 6, one tied in x.
  const std::vector<double> tied = {1, 2, 2, 3};
  const std::vector<double> other = {1, 2, 3, 4};
  CHECK_THAT(cli::spearman(tied, other), WithinRel(4.5 / std::sqrt(4.5 * 5), 1e-12));
  CHECK_THAT(cli::kendall(tied, other), WithinRel(5 / std::sqrt(5.0 * 6), 1e-12));
  const std::vector<double> falling = {5, 4, 3, 2, 1};
  CHECK_THAT(cli::spearman(a, falling), WithinRel(-1.0, 1e-12));
  CHECK_THAT(cli::kendall(a, falling), WithinRel(-1.0, 1e-12));
  CHECK(std::isnan(cli::spearman(a, std::vector<double>(5, 1))));
  CHECK(std::isnan(cli::kendall(a, std::vector<double>(5, 1))));
  CHECK_THAT(cli::mean_relative_error(std::vector<double>{9, 24}, std::vector<double>{10, 20}),
             WithinRel(0.15, 1e-12));
}

TEST_CASE("Compared assignments are different, legal and of every sort") {
  const Task task = make_task("ffnn(batch=64,hidden=64)@cpu2");
  const auto assignments = cli::varied_assignments(task, 40, 7);
  REQUIRE(assignments.size() == 40);
  std::set<std::vector<DeviceId>> different;
  std::set<std::string> origins;
  for (const auto& one : assignments) {
    one.assignment.check(task.graph, task.cluster);
    different.insert(one.assignment.devices);
    origins.insert(one.origin);
  }
  CHECK(different.size() == 40);
  for (const char* origin : {"random", "operations", "runs", "levels", "critical-path"}) {
    CHECK(origins.contains(origin));
  }
  // Two nodes on two devices can be placed in four ways only.
  const Task tiny = make_task("random-dag(n=2,shards=1)@uniform(2)");
  CHECK(cli::varied_assignments(tiny, 40, 7).size() <= 4);
}

TEST_CASE("compare gives figures of every assignment, and plots") {
  const TemporaryFolder folder;
  const std::string plot = folder.path("plot.svg");
  const auto json = run_json({"compare", "--task", kSmall, "--engine", "cpu", "--assignments", "10",
                              "--rounds", "2", "--plot", plot, "--json"});
  CHECK(json["task"] == kSmall);
  REQUIRE(json["assignments"].size() == 10);
  std::vector<double> measured;
  std::vector<double> before;
  std::vector<double> after;
  for (const auto& one : json["assignments"]) {
    REQUIRE(one["rounds"].size() == 2);
    CHECK_THAT(
        one["measured"].get<double>(),
        WithinRel((one["rounds"][0].get<double>() + one["rounds"][1].get<double>()) / 2, 1e-12));
    measured.push_back(one["measured"]);
    before.push_back(one["before"]);
    after.push_back(one["after"]);
  }
  CHECK_THAT(json["spearman"].get<double>(), WithinRel(cli::spearman(after, measured), 1e-9));
  CHECK_THAT(json["kendall"].get<double>(), WithinRel(cli::kendall(after, measured), 1e-9));
  CHECK_THAT(json["mean_relative_error"].get<double>(),
             WithinRel(cli::mean_relative_error(after, measured), 1e-9));
  CHECK_THAT(json["before"]["mean_relative_error"].get<double>(),
             WithinRel(cli::mean_relative_error(before, measured), 1e-9));
  CHECK(folder.names() == std::vector<std::string>{"plot.svg"});
}

TEST_CASE("execute runs an assignment for real") {
  const auto json = run_json({"execute", "--engine", "cpu(repeats=3)", "--task", kSmall, "--agent",
                              "critical-path", "--json", "--timeline"});
  CHECK(json["engine"] == "cpu(repeats=3)");
  REQUIRE(json["makespans"].size() == 3);
  CHECK(json["makespan"].get<double>() > 0);
  CHECK(json["simulated"].get<double>() > 0);
  double last = 0;
  for (const auto& node : json["timeline"]["nodes"])
    last = std::max(last, node["end"].get<double>());
  CHECK(json["makespan"].get<double>() == last);

  const Answer text = run({"execute", "--engine", "cpu", "--task", kSmall, "--agent", "heft"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("makespan") != std::string::npos);
  CHECK(text.out.find("simulated") != std::string::npos);
}

TEST_CASE("execute refuses what no engine can run") {
  check_refused({"execute", "--engine", "cpv", "--task", kSmall, "--agent", "heft"}, 2,
                {"cpv", "cpu"});
  check_refused({"execute", "--task", kSmall, "--agent", "heft"}, 2, {"--engine"});
  check_refused({"execute", "--engine", "cpu", "--task", "published/chainmm", "--agent", "heft"}, 2,
                {"attributes", "simulator"});
  check_refused({"compare", "--engine", "simulator", "--task", kSmall}, 2, {"--engine"});
}

TEST_CASE("profile and calibrate write what other commands read") {
  const TemporaryFolder folder;
  const std::string profile = folder.path("profile.json");
  const std::string cluster = folder.path("machine.cluster.json");
  CHECK(run({"profile", "--engine", "cpu", "--task", kSmall, "--runs", "1", "--out", profile})
            .exit_code == 0);
  const auto simulated = run_json(
      {"simulate", "--task", kSmall, "--profile", profile, "--agent", "critical-path", "--json"});
  CHECK(simulated["makespan"].get<double>() > 0);
  CHECK(run({"calibrate", "--engine", "cpu", "--devices", "2", "--memory", "1", "--out", cluster})
            .exit_code == 0);
  const auto on_cluster = run_json(
      {"simulate", "--task", "chainmm(n=32)@" + cluster, "--agent", "critical-path", "--json"});
  CHECK(on_cluster["devices"][0]["kind"] == "cpu");
  CHECK(on_cluster["makespan"].get<double>() > 0);
  const Answer trace = run({"trace", "--engine", "cpu", "--task", kSmall, "--agent", "heft"});
  CHECK(trace.exit_code == 0);
  CHECK(nlohmann::json::parse(trace.out).contains("traceEvents"));
}

}  // namespace
}  // namespace doppler::testing
