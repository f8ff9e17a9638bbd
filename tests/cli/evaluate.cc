#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "graphs/file.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

// The 97.5 % quantile of Student's t with 9 degrees of freedom, from printed tables.
constexpr double kStudent9 = 2.262157;

Json row_of(const Json& table, const std::string& task, const std::string& agent) {
  for (const Json& row : table["rows"]) {
    if (row["task"] == task && row["agent"] == agent) return row;
  }
  FAIL("no row for " << task << " and " << agent);
  return {};
}

TEST_CASE("evaluate shows the best-known assignment as a row") {
  const Json table = run_json({"evaluate", "--tasks", "llama-layer@p100x4", "--agents",
                               "best-known,partner-list,critical-path", "--seeds", "3", "--json"});
  const Json row = row_of(table, "llama-layer@p100x4", "best-known");
  CHECK(row["makespans"].size() == 1);
  CHECK(row["best"] < row_of(table, "llama-layer@p100x4", "partner-list")["best"]);
  CHECK(row["ratio"].get<double>() < 1);
  check_refused({"evaluate", "--tasks", "chainmm(n=512)@p100x4", "--agents", "best-known"}, 2,
                {"no best-known assignment", "chainmm(n=512)@p100x4"});
}

TEST_CASE("evaluate sums up its makespans as it says") {
  const Json table = run_json({"evaluate", "--tasks", "chainmm@p100x4,ffnn@p100x4", "--agents",
                               "random,critical-path,partner-list", "--json"});
  CHECK(table["seeds"] == 10);
  REQUIRE(table["rows"].size() == 6);
  for (const Json& row : table["rows"]) {
    const auto makespans = row["makespans"].get<std::vector<double>>();
    const auto n = static_cast<double>(makespans.size());
    const double mean = std::accumulate(makespans.begin(), makespans.end(), 0.0) / n;
    INFO(row["task"] << " " << row["agent"]);
    CHECK(row["mean"].get<double>() == Approx(mean));
    CHECK(row["best"] == *std::min_element(makespans.begin(), makespans.end()));
    CHECK(row["evaluations"] == 1.0);
    CHECK(row["out_of_memory"] == 0);
    CHECK(row["gap"].get<double>() ==
          Approx(mean / row["lower_bound"].get<double>() - 1).margin(1e-12));
    CHECK(row["gap"].get<double>() >= -1e-9);
    const Json baseline = row_of(table, row["task"], "critical-path");
    CHECK(row["ratio"].get<double>() == Approx(mean / baseline["mean"].get<double>()));
    if (row["agent"] == "partner-list") {
      CHECK(makespans.size() == 1);
      CHECK(row["interval"].is_null());
      continue;
    }
    REQUIRE(makespans.size() == 10);
    double squares = 0;
    for (double makespan : makespans) squares += (makespan - mean) * (makespan - mean);
    CHECK(row["interval"].get<double>() ==
          Approx(kStudent9 * std::sqrt(squares / 9 / 10)).epsilon(1e-6));
  }
}

TEST_CASE("evaluate gives the same figures on any number of threads") {
  const auto figures = [](const std::string& jobs, const std::string& first) {
    Json table = run_json({"evaluate", "--tasks", "chainmm(n=512)@p100x4,ffnn@v100x8", "--agents",
                           "random,critical-path", "--seeds", "6", "--jobs", jobs, "--first-seed",
                           first, "--noise", "0.1", "--json"});
    for (Json& row : table["rows"]) row.erase("seconds");
    return table;
  };
  const Json alone = figures("1", "0");
  CHECK(figures("5", "0") == alone);
  CHECK(figures("0", "0") == alone);
  // Seeds that overlap give the same makespans.
  const Json later = figures("2", "2");
  for (std::size_t r = 0; r < alone["rows"].size(); ++r) {
    const auto a = alone["rows"][r]["makespans"].get<std::vector<double>>();
    const auto b = later["rows"][r]["makespans"].get<std::vector<double>>();
    CHECK(std::equal(a.begin() + 2, a.end(), b.begin()));
  }
}

TEST_CASE("evaluate and assign agree seed by seed") {
  const Json table = run_json({"evaluate", "--tasks", "chainmm@p100x4", "--agents", "random",
                               "--seeds", "3", "--noise", "0.2", "--json"});
  for (int seed = 0; seed < 3; ++seed) {
    const Json one = run_json({"assign", "--task", "chainmm@p100x4", "--agent", "random", "--seed",
                               std::to_string(seed), "--noise", "0.2", "--json"});
    CHECK(one["makespan"] == table["rows"][0]["makespans"][static_cast<std::size_t>(seed)]);
  }
}

TEST_CASE("evaluate compares with critical-path also when it is not asked for") {
  const Json with =
      run_json({"evaluate", "--tasks", "ffnn@p100x4", "--agents", "heft,critical-path", "--json"});
  const Json without =
      run_json({"evaluate", "--tasks", "ffnn@p100x4", "--agents", "heft", "--json"});
  REQUIRE(without["rows"].size() == 1);
  CHECK(without["rows"][0]["ratio"] == with["rows"][0]["ratio"]);
  CHECK(with["rows"][1]["ratio"] == 1.0);
}

TEST_CASE("evaluate prints a table whose lines are as many as its rows") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const Answer answer = run({"evaluate", "--graph", graph, "--cluster", "uniform(2)", "--network",
                             "independent", "--agents", "single-device,random"});
  CHECK(answer.exit_code == 0);
  CHECK(answer.err.empty());  // no progress in a pipe
  CHECK(std::count(answer.out.begin(), answer.out.end(), '\n') == 3);
  CHECK(answer.out.find("7.000 raw") != std::string::npos);
  CHECK(answer.out.find(" ± ") != std::string::npos);
}

TEST_CASE("evaluate counts runs that are out of memory and stays valid JSON") {
  const Words line = {"evaluate", "--tasks", "chainmm(n=200000)@p100x4", "--agents",
                      "single-device"};
  Words json_line = line;
  json_line.emplace_back("--json");
  const Json row = run_json(json_line)["rows"][0];
  CHECK(row["mean"].is_null());
  CHECK(row["gap"].is_null());
  CHECK(row["out_of_memory"] == 1);
  CHECK(run(line).out.find("out of memory") != std::string::npos);
}

TEST_CASE("evaluate refuses what it does not know before it runs anything") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  check_refused({"evaluate", "--tasks", "chainm@p100x4"}, 2, {"chainm", "chainmm"});
  check_refused({"evaluate", "--tasks", "chainmm@p100x4", "--agents", "critical-pat"}, 2,
                {"critical-pat", "critical-path"});
  check_refused({"evaluate", "--graph", graph}, 2, {"--cluster"});
  check_refused({"evaluate", "--cluster", "p100x4"}, 2, {"--cluster", "--graph"});
  check_refused({"evaluate", "--out", folder.path("none/t.json")}, 1, {"none"});
}

TEST_CASE("Ctrl-C during evaluate ends with 130 and leaves no file") {
  const TemporaryFolder folder;
  for (int signal_number : {SIGINT, SIGTERM}) {
    Process process({"evaluate", "--tasks", "llama-layer@p100x4", "--agents", "critical-path",
                     "--seeds", "1000000", "--jobs", "2", "--out", folder.path("table.txt")});
    process.await_ready();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    process.send(signal_number);
    const Answer answer = process.wait();
    CHECK_FALSE(answer.signalled);
    CHECK(answer.exit_code == 128 + signal_number);
    CHECK(answer.err.empty());
    CHECK(answer.out.empty());
    CHECK(folder.names().empty());
  }
}

TEST_CASE("evaluate --out replaces a file whole") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const std::string out = folder.file("table.json", "old");
  const Answer answer = run({"evaluate", "--graph", graph, "--cluster", "uniform(2)", "--agents",
                             "heft", "--json", "--out", out});
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.empty());
  CHECK(Json::parse(read_file(out))["rows"].size() == 1);
  CHECK(folder.names() == Words{"diamond.txt", "table.json"});
}

}  // namespace
}  // namespace doppler::testing
