#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "graphs/file.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

std::map<std::string, Json> rows_in(const std::string& folder) {
  std::map<std::string, Json> rows;
  for (const auto& entry : fs::directory_iterator(folder)) {
    rows[entry.path().filename().string()] = Json::parse(read_file(entry.path().string()));
  }
  return rows;
}

Words grid(const std::string& rows, const std::string& jobs = "2") {
  return {"results",       "run",
          "--tasks",       "ffnn@p100x4,chainmm@p100x4",
          "--agents",      "partner-list,critical-path,annealing",
          "--evaluations", "20,50",
          "--seeds",       "2",
          "--rows",        rows,
          "--jobs",        jobs,
          "--json"};
}

TEST_CASE("a grid has a row for every task, agent, budget and seed that differ") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  // For each task: partner-list once, critical-path with 2 seeds, annealing with 2 x 2.
  CHECK(run_json(grid(out)) == Json({{"made", 14}, {"found", 0}}));
  const auto rows = rows_in(out);
  CHECK(rows.size() == 14);
  for (const auto& [name, row] : rows) {
    INFO(name);
    const Json one = run_json({"assign", "--task", row["task"], "--agent", row["agent"], "--seed",
                               std::to_string(row["seed"].get<int>()), "--evaluations",
                               std::to_string(row["max_evaluations"].get<int>()), "--json"});
    CHECK(one["makespan"] == row["makespan"]);
    CHECK(one["assignment"] == row["assignment"]);
    CHECK(one["evaluations"] == row["evaluations"]);
    CHECK(row["curve"].back()[2] == row["makespan"]);
  }
  const Json table = run_json({"results", "table", "--rows", out, "--json"});
  CHECK(table["rows"] == 14);
  REQUIRE(table["summaries"].size() == 8);
  const Answer checked = run({"results", "check", "--rows", out});
  CHECK(checked.out == "14 rows give their makespans\n");
}

TEST_CASE("rows of other engine settings lie beside the others and replay with theirs") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  const Words plain = {"results", "run", "--tasks", "ffnn@p100x4", "--agents", "heft",
                       "--seeds", "2",   "--rows",  out,           "--json"};
  CHECK(run_json(plain) == Json({{"made", 1}, {"found", 0}}));
  Words noisy = plain;
  noisy.insert(noisy.end(), {"--noise", "0.1", "--choice", "random"});
  CHECK(run_json(noisy) == Json({{"made", 2}, {"found", 0}}));
  CHECK(run_json(noisy) == Json({{"made", 0}, {"found", 2}}));
  int n_noisy = 0;
  for (const auto& [name, row] : rows_in(out)) {
    INFO(name);
    if (!row.contains("settings")) continue;
    ++n_noisy;
    CHECK(row["settings"] == Json({{"choice", "random"}, {"noise", 0.1}}));
    const Json one = run_json({"assign", "--task", "ffnn@p100x4", "--agent", "heft", "--noise",
                               "0.1", "--choice", "random", "--seed",
                               std::to_string(row["seed"].get<int>()), "--json"});
    CHECK(one["makespan"] == row["makespan"]);
  }
  CHECK(n_noisy == 2);
  CHECK(run({"results", "check", "--rows", out}).out == "3 rows give their makespans\n");
  const Json table = run_json({"results", "table", "--rows", out, "--json"});
  REQUIRE(table["summaries"].size() == 2);
  CHECK(table["summaries"][0]["task"] == "ffnn@p100x4");
  CHECK(table["summaries"][1]["task"] == "ffnn@p100x4 (choice=random, noise=0.1)");
}

TEST_CASE("a grid makes only the rows that its folder lacks, the same on any number of threads") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  run_json(grid(out));
  auto before = rows_in(out);
  const std::string removed = std::next(before.begin(), 5)->first;
  fs::remove(out + "/" + removed);
  std::ofstream(out + "/" + removed + ".a1B2c3") << "{";  // half-written by a killed process
  CHECK(run_json(grid(out, "3")) == Json({{"made", 1}, {"found", 13}}));
  fs::remove(out + "/" + removed + ".a1B2c3");
  auto after = rows_in(out);
  for (auto* rows : {&before, &after}) {
    (*rows)[removed].erase("seconds");
    for (Json& point : (*rows)[removed]["curve"]) point.erase(1);
  }
  CHECK(after == before);
}

TEST_CASE("the table is the medians of the rows, as text and as Markdown") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  REQUIRE(run({"results", "run", "--tasks", "published/ffnn", "--agents", "rule-search,annealing",
               "--evaluations", "10", "--seeds", "3", "--rows", out})
              .out == "6 rows made, 0 were there, in " + out + "\n");
  std::map<std::string, std::vector<double>> makespans;
  for (const auto& [name, row] : rows_in(out)) {
    makespans[row["agent"]].push_back(row["makespan"]);
  }
  const Json table = run_json({"results", "table", "--rows", out, "--json"});
  for (const Json& line : table["summaries"]) {
    auto values = makespans[line["agent"]];
    std::sort(values.begin(), values.end());
    CHECK(line["least"] == values[0]);
    CHECK(line["median"] == values[1]);
    CHECK(line["largest"] == values[2]);
  }
  const Answer text = run({"results", "table", "--rows", out});
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 3);
  CHECK(text.out.find("x 1e10") != std::string::npos);
  const Answer markdown = run({"results", "table", "--rows", out, "--markdown"});
  CHECK(std::count(markdown.out.begin(), markdown.out.end(), '\n') == 4);
  CHECK(std::count(markdown.out.begin(), markdown.out.end(), '|') == 4 * 11);
}

TEST_CASE("plot draws a picture a task") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  run_json(grid(out));
  const Answer answer = run({"results", "plot", "--rows", out, "--out", folder.path("curves")});
  CHECK(answer.exit_code == 0);
  CHECK(answer.out == folder.path("curves/chainmm@p100x4.svg") + "\n" +
                          folder.path("curves/ffnn@p100x4.svg") + "\n");
  CHECK(read_file(folder.path("curves/ffnn@p100x4.svg")).starts_with("<svg "));
}

TEST_CASE("Ctrl-C during a grid leaves whole rows, from which it goes on") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  const Words line = {"results",       "run",  "--tasks", "ffnn@p100x4", "--agents", "annealing",
                      "--evaluations", "2000", "--seeds", "40",          "--jobs",   "2",
                      "--rows",        out,    "--json"};
  Process process(line);
  const auto n_files = [&] {
    return fs::exists(out) ? std::distance(fs::directory_iterator(out), fs::directory_iterator())
                           : 0;
  };
  while (n_files() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGINT);
  const Answer answer = process.wait();
  const auto n_rows = static_cast<std::int64_t>(rows_in(out).size());
  CHECK((answer.exit_code == 130 || n_rows == 40));
  CHECK(n_rows >= 2);
  CHECK(run_json(line) == Json({{"made", 40 - n_rows}, {"found", n_rows}}));
}

TEST_CASE("a row that fails does not stop the others") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Answer answer = run_of_tests({"results", "run", "--tasks", "ffnn@p100x4", "--agents",
                                        "test-learner(fault=lie)", "--seeds", "4", "--rows", out});
    CHECK(answer.exit_code == 1);
    CHECK(answer.out.empty());
    CHECK(answer.err.find("1 of 4 rows failed") != std::string::npos);
    CHECK(answer.err.find("seed 1: the agent claims a makespan") != std::string::npos);
    CHECK(rows_in(out).size() == 3);
  }
}

TEST_CASE("results refuses what it does not know, and rows that are not what they seem") {
  const TemporaryFolder folder;
  const std::string out = folder.path("rows");
  const auto with = [&](const std::string& task, const std::string& agent) {
    return Words{"results", "run", "--tasks", task, "--agents", agent, "--rows", out};
  };
  check_refused(with("fnn@p100x4", "heft"), 2, {"fnn", "ffnn"});
  check_refused(with("ffnn@p100x4", "hefty"), 2, {"hefty", "heft"});
  CHECK_FALSE(fs::exists(out));
  check_refused({"results", "table", "--rows", out}, 1, {out});
  fs::create_directory(out);
  check_refused({"results", "table", "--rows", out}, 2, {"no rows"});
  REQUIRE(run(with("ffnn@p100x4", "heft")).exit_code == 0);
  const auto rows = rows_in(out);
  const std::string name = rows.begin()->first;
  const Json row = rows.begin()->second;
  const std::string path = out + "/" + name;
  const auto damage = [&](const std::string& field, const Json& value) {
    Json other = row;
    other[field] = value;
    std::ofstream(path) << other.dump();
  };
  damage("task_hash", "0123456789abcdef");
  check_refused(with("ffnn@p100x4", "heft"), 2, {name, "another version", "move it away"});
  check_refused({"results", "check", "--rows", out}, 1, {name, "another version"});
  damage("makespan", row["makespan"].get<double>() * 2);
  check_refused({"results", "check", "--rows", out}, 1, {name, "assignment gives"});
  damage("seed", -1);
  check_refused(with("ffnn@p100x4", "heft"), 2, {name, "/seed"});
  check_refused({"results", "table", "--rows", out, "--json", "--markdown"}, 2, {"--markdown"});
  check_refused({"results", "run", "--tasks", "ffnn@p100x4", "--agents", "heft", "--evaluations",
                 "0", "--rows", out},
                2, {"--evaluations", "0"});
}

}  // namespace
}  // namespace doppler::testing
