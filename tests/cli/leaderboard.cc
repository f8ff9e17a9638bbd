#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "agents/agent.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "leaderboard/suite.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

namespace doppler::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

// A suite of one small task without luck and one with it, in a file.
std::string suite_file(const TemporaryFolder& folder, double seconds = 20) {
  Suite suite{.name = "small",
              .summary = "for tests",
              .seeds = {0, 1},
              .n_runs = 2,
              .tiers = {{1, seconds}, {20, seconds}},
              .training = {.max_evaluations = 1000, .max_seconds = 60},
              .tasks = {{.name = "exact", .task = "chainmm(n=1000,shards=2)@p100x4"},
                        {.name = "lucky",
                         .task = "ffnn(shards=2)@p100x4",
                         .settings = {.choice = Choice::random, .noise = 0.1}}}};
  fill_in(suite);
  return folder.file("small.json", to_json(suite));
}

std::vector<std::string> rows_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Words plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("rows that are made hold, are ranked and reported") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const std::string rows = folder.path("rows");
  const Words making = {"leaderboard", "run", "--suite", suite, "--agents", "heft,annealing",
                        "--rows",      rows,  "--jobs",  "2",   "--json"};
  const Json made = run_json(making);
  // heft has the smallest tier only.
  CHECK(made["made"].size() == 3);
  CHECK(made["failed"].empty());
  CHECK(rows_in(rows).size() == 3);
  const Words of_suite = {"--suite", suite, "--rows", rows, "--json"};
  const Json verified = run_json(plus({"leaderboard", "verify", "--all"}, of_suite));
  CHECK(verified["files"] == 3);
  CHECK(verified["executions"] == 3 * (2 + 2 * 2));
  // The agent's own result, by the command that has nothing to do with the leaderboard.
  const Json row = Json::parse(read_file(rows + "/" + made["made"].back().get<std::string>()));
  const Json one =
      run_json({"assign", "--task", "chainmm(n=1000,shards=2)@p100x4", "--agent", row["agent"],
                "--seed", "1", "--evaluations", std::to_string(row["tier"].get<int>()), "--json"});
  CHECK(row["results"][0]["runs"][1]["assignment"] == one["assignment"]);
  CHECK(row["results"][0]["runs"][1]["makespans"][0] == one["makespan"]);
  CHECK(row["command"].get<std::string>().starts_with("doppler-gym leaderboard run --suite"));
  CHECK(row["hardware"]["cores"] >= 1);

  const Json ranking = run_json(plus({"leaderboard", "rank"}, of_suite));
  CHECK(ranking["ranking_metric"] == "iqm_ratio_to_critical_path");
  REQUIRE(ranking["suites"].size() == 1);
  CHECK(ranking["suites"][0]["tiers"][1]["ranking"].size() == 2);
  CHECK_THAT(run({"leaderboard", "rank", "--suite", suite, "--rows", rows}).out,
             Catch::Contains("tier of 20 evaluations"));
  const std::string page = folder.path("page.html");
  const std::string markdown = folder.path("page.md");
  const std::string json = folder.path("page.json");
  const Answer reported = run({"leaderboard", "report", "--suite", suite, "--rows", rows, "--html",
                               page, "--markdown", markdown, "--json", json});
  CHECK(reported.out == "3 rows verified, 0 refused, 0 failed\n");
  CHECK(Json::parse(read_file(json))["rows"].size() == 3);
  CHECK_THAT(read_file(page), Catch::Contains("<!DOCTYPE html>"));
  CHECK_THAT(read_file(markdown), Catch::Contains("| annealing |"));

  // Again: refused, or all found.
  check_refused(making, 2, {"is there", "--resume"});
  const Json again = run_json(plus(making, {"--resume"}));
  CHECK(again["made"].empty());
  CHECK(again["found"].size() == 3);
}

TEST_CASE("a run that was killed goes on, and its rows are the same") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const auto making = [&](const std::string& rows) {
    return Words{"leaderboard", "run",      "--suite",
                 suite,         "--agents", "annealing,rule-search,local-search",
                 "--rows",      rows,       "--resume"};
  };
  const std::string whole = folder.path("whole");
  const std::string broken = folder.path("broken");
  REQUIRE(run(making(whole)).exit_code == 0);
  {
    Process process(making(broken));
    for (int i = 0; i < 2000 && (!fs::exists(broken) || rows_in(broken).empty()); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    process.send(SIGKILL);
    process.wait();
  }
  REQUIRE(run(making(broken)).exit_code == 0);
  const auto comparable = [](const std::string& folder_of_rows) {
    std::map<std::string, Json> result;
    for (const std::string& path : rows_in(folder_of_rows)) {
      Json row = Json::parse(read_file(path));
      row.erase("command");
      for (Json& task : row["results"]) {
        for (Json& one : task["runs"]) {
          one.erase("seconds");
          for (Json& point : one["curve"]) point[1] = 0;
        }
      }
      result[fs::path(path).filename().string()] = row;
    }
    return result;
  };
  CHECK(comparable(whole).size() == 6);
  CHECK(comparable(whole) == comparable(broken));
}

TEST_CASE("an agent that crashes, hangs, eats memory or lies fails its own row") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder, 4);
  const std::string rows = folder.path("rows");
  const auto begin = std::chrono::steady_clock::now();
  const std::string eats = kSanitizer ? "" : "devour,";
  const Answer answer =
      run({"leaderboard", "run", "--suite", suite, "--plugin", DOPPLER_BAD_PLUGIN, "--agents",
           eats + "crash,leave,hang,nowhere,give-up,greedy,overdraw,heft", "--tiers", "1",
           "--memory", "1", "--rows", rows, "--jobs", "2", "--json"});
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  INFO(answer.err);
  CHECK(answer.exit_code == 1);
  CHECK(spent.count() < 60);
  const Json result = Json::parse(answer.out);
  CHECK(result["made"].size() == 2);  // greedy, which got no more than it may, and heft
  std::map<std::string, std::string> reasons;
  for (const Json& row : result["failed"]) reasons[row["agent"]] = row["reason"];
  CHECK(reasons.size() == (kSanitizer ? 6 : 7));
  CHECK_THAT(reasons["crash"], Catch::Contains("signal 6"));
  CHECK_THAT(reasons["leave"], Catch::Contains("without an answer"));
  CHECK_THAT(reasons["hang"], Catch::Contains("within the 4 s"));
  if (!kSanitizer) CHECK_THAT(reasons["devour"], Catch::Contains("memory"));
  CHECK_THAT(reasons["nowhere"], Catch::Contains("does not fit") && Catch::Contains("device 4"));
  CHECK_THAT(reasons["give-up"], Catch::Contains("code 7: no idea"));
  CHECK_THAT(reasons["overdraw"], Catch::Contains("2 evaluations of 1 allowed"));
  // The reasons are kept, shown, and no rows.
  const std::string markdown = folder.path("r.md");
  CHECK_THAT(
      run({"leaderboard", "report", "--suite", suite, "--rows", rows, "--markdown", markdown}).out,
      Catch::Contains("2 rows verified, 0 refused, " + std::to_string(reasons.size()) + " failed"));
  CHECK_THAT(read_file(markdown), Catch::Contains("no idea"));
  CHECK(run({"leaderboard", "verify", "--all", "--suite", suite, "--rows", rows}).exit_code == 0);
}

TEST_CASE("an agent with a policy needs a word of what that was trained on, before any run") {
  try {
    make_agent("doppler");
  } catch (const RunError& error) {
    WARN("skipped: " << error.what());
    return;
  }
  const TemporaryFolder folder;
  const std::string rows = folder.path("rows");
  check_refused({"leaderboard", "run", "--suite", suite_file(folder), "--agents",
                 "doppler(policy=generalist)", "--rows", rows},
                2, {"doppler(policy=generalist)", "--training"});
  CHECK_FALSE(fs::exists(rows));
}

TEST_CASE("a plugin brings agents of its own") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const std::string rows = folder.path("rows");
  const Json made = run_json({"leaderboard", "run", "--suite", suite, "--plugin",
                              DOPPLER_EXAMPLE_PLUGIN, "--rows", rows, "--authors", "A. Author",
                              "--link", "https://example.org", "--json"});
  CHECK(made["made"].size() == 2);
  const Json ranking =
      run_json({"leaderboard", "rank", "--suite", suite, "--rows", rows, "--json"});
  const Json& entry = ranking["suites"][0]["tiers"][1]["ranking"][0];
  CHECK(entry["agent"] == "earliest-start");
  CHECK(entry["kind"] == "search");
  CHECK(entry["link"] == "https://example.org");
  CHECK(entry["evaluations"] > 19);  // 19 where the last one run is what is returned
  const std::string text = folder.file("no-plugin.so", "no library");
  const Words with = {"leaderboard", "run", "--suite", suite, "--rows", rows, "--plugin"};
  check_refused(plus(with, {text}), 1, {"no-plugin.so", "cannot be loaded"});
  check_refused(plus(with, {folder.path("missing.so")}), 1, {"missing.so"});
  setenv("DOPPLER_TEST_PLUGIN", "future", 1);
  check_refused(plus(with, {DOPPLER_BAD_PLUGIN}), 1, {"version 2", "this build has 1"});
  setenv("DOPPLER_TEST_PLUGIN", "crash", 1);
  check_refused(plus(with, {DOPPLER_BAD_PLUGIN}), 1, {"crashed", "signal 6"});
  unsetenv("DOPPLER_TEST_PLUGIN");
}

TEST_CASE("assignments that were made elsewhere are submitted") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const std::string rows = folder.path("rows");
  Json draft = {{"format", "doppler-submission"},
                {"version", 1},
                {"suite", "small"},
                {"tier", 1},
                {"agent", "mine"},
                {"kind", "other"},
                {"results", Json::array()}};
  for (const char* task : {"exact", "lucky"}) {
    const char* spelling =
        std::string(task) == "exact" ? "chainmm(n=1000,shards=2)@p100x4" : "ffnn(shards=2)@p100x4";
    const Json one = run_json({"assign", "--task", spelling, "--agent", "round-robin", "--json"});
    Json runs = Json::array();
    for (const int seed : {0, 1}) {
      runs.push_back({{"seed", seed},
                      {"assignment", one["assignment"]},
                      {"evaluations", 1},
                      {"seconds", 0.5}});
    }
    draft["results"].push_back({{"task", task}, {"runs", runs}});
  }
  const auto submit = [&](const Json& json) {
    return Words{"leaderboard", "submit", folder.file("draft.json", json.dump()), "--rows", rows,
                 "--suite",     suite};
  };
  Json bad = draft;
  bad["results"][0]["runs"][0]["assignment"][0] = 9;
  check_refused(submit(bad), 1, {"draft.json", "task 'exact', seed 0: ", "device 9"});
  bad = draft;
  bad["results"][1]["runs"][1]["assignment"].erase(0);
  check_refused(submit(bad), 1, {"draft.json", "task 'lucky', seed 1: "});
  bad = draft;
  bad["agent"] = "red\x1b[31m";
  check_refused(submit(bad), 2, {"draft.json", "agent", "control characters"});
  bad = draft;
  bad["agent"] = std::string(201, 'a');
  check_refused(submit(bad), 2, {"draft.json", "201 bytes"});
  check_refused({"leaderboard", "submit", folder.file("draft.json", draft.dump()), "--rows", rows},
                2, {"small", "--suite FILE"});
  bad = draft;
  bad["results"].erase(1);
  check_refused(submit(bad), 1, {"'lucky' is missing"});
  CHECK(!fs::exists(rows));
  const Answer answer = run(submit(draft));
  INFO(answer.err);
  CHECK(answer.exit_code == 0);
  REQUIRE(rows_in(rows).size() == 1);
  const std::string path = rows_in(rows).front();
  CHECK(run({"leaderboard", "verify", path, "--suite", suite}).exit_code == 0);
  check_refused(submit(draft), 2, {"is there"});
  // One changed device, with the hash that belongs to it.
  Json row = Json::parse(read_file(path));
  Json& run_of_row = row["results"][0]["runs"][0];
  run_of_row["assignment"][0] = 3 - run_of_row["assignment"][0].get<int>();
  const Answer refused =
      run({"leaderboard", "verify", folder.file("r.json", row.dump()), "--suite", suite});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, Catch::Contains("this is not the hash"));
}

// Changes one device of the first assignment that it meets.
bool change_one(Json& json) {
  for (auto& [name, value] : json.items()) {
    if (name == "assignment" && value.is_array()) {
      std::set<int> devices;
      for (const Json& device : value) devices.insert(device.get<int>());
      if (devices.size() > 1) {
        value[0] = (value[0].get<int>() + 1) % (*devices.rbegin() + 1);
        return true;
      }
    }
    if (value.is_structured() && change_one(value)) return true;
  }
  return false;
}

TEST_CASE("every committed row holds; with one changed device none does") {
  // Some 15,000 executions, which only the release build makes in reasonable time.
  if (kSanitizer) return;
  const std::string rows = std::string(DOPPLER_SOURCE_FOLDER) + "/leaderboard/results";
  const Json answer = run_json({"leaderboard", "verify", "--all", "--rows", rows, "--json"});
  CHECK(answer["refused"].empty());
  const TemporaryFolder folder;
  Words changed = {"leaderboard", "verify", "--json"};
  std::size_t n_changed = 0;
  for (const Json& result : answer["results"]) {
    Json row = Json::parse(read_file(result["file"].get<std::string>()));
    if (!change_one(row)) continue;
    changed.push_back(folder.file(std::to_string(n_changed++) + ".json", row.dump()));
  }
  REQUIRE(n_changed > 100);
  const Answer refused = run(changed);
  CHECK(refused.exit_code == 1);
  const Json verdicts = Json::parse(refused.out);
  CHECK(verdicts["refused"].size() == n_changed);
}

TEST_CASE("what is no row is refused by all that read the folder, each file with its reason") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const std::string rows = folder.path("rows");
  const Words making = {"leaderboard", "run", "--suite", suite, "--agents", "heft",
                        "--tiers",     "1",   "--rows",  rows,  "--json"};
  const std::string name = run_json(making)["made"][0].get<std::string>();
  const std::map<std::string, std::string> bad = {
      {"rows/a.json", ""},         {"rows/b.json", "{"},
      {"rows/c.json", "[]"},       {"rows/small/d.json", "{}"},
      {"rows/e.json", "\x01\xff"}, {"rows/f.json", R"({"format": 3})"}};
  Words verify = {"leaderboard", "verify", "--all", "--suite", suite, "--rows", rows};
  for (const auto& [file, content] : bad) static_cast<void>(folder.file(file, content));
  const Answer verified = run(verify);
  CHECK(verified.exit_code == 1);
  const std::string markdown = folder.path("page.md");
  CHECK(run({"leaderboard", "report", "--suite", suite, "--rows", rows, "--markdown", markdown})
            .out == "1 rows verified, 6 refused, 0 failed\n");
  const Answer ranked = run({"leaderboard", "rank", "--suite", suite, "--rows", rows});
  for (const auto& [file, content] : bad) {
    CHECK_THAT(verified.err, Catch::Contains(file));
    CHECK_THAT(ranked.out, Catch::Contains("refused: " + file.substr(5)));
    CHECK_THAT(read_file(markdown), Catch::Contains(file.substr(5)));
  }
  // A good row under another's name.
  const Json one = run_json({"leaderboard", "run", "--suite", suite, "--agents", "m-etf", "--tiers",
                             "1", "--rows", rows, "--json"});
  fs::copy(rows + "/" + one["made"][0].get<std::string>(), rows + "/" + name,
           fs::copy_options::overwrite_existing);
  check_refused(plus(making, {"--resume"}), 2, {name, "m-etf"});
}

TEST_CASE("two runs do not make one row") {
  const TemporaryFolder folder;
  const std::string suite = suite_file(folder);
  const std::string rows = folder.path("rows");
  const Words making = {"leaderboard", "run",     "--suite", suite,    "--agents",
                        "annealing",   "--tiers", "20",      "--rows", rows};
  Process first(making);
  std::string part;
  for (int i = 0; i < 5000 && part.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!fs::exists(rows + "/small")) continue;
    for (const auto& entry : fs::directory_iterator(rows + "/small")) part = entry.path().string();
  }
  const Answer second = run(making);
  CHECK(first.wait().exit_code == 0);
  INFO(second.err);
  CHECK(second.exit_code == 2);  // whichever of the two it met
  CHECK(rows_in(rows).size() == 1);
}

TEST_CASE("a table that is not its rows', and a file that is no row, are refused") {
  const TemporaryFolder folder;
  const std::string source = std::string(DOPPLER_SOURCE_FOLDER) + "/leaderboard/results/doppler";
  fs::copy(source, folder.path("d"), fs::copy_options::recursive);
  Json table = Json::parse(read_file(folder.path("d/table.json")));
  const std::string path = folder.file("d/table.json", table.dump());
  CHECK(run({"leaderboard", "verify", path}).exit_code == 0);
  table["summaries"][3]["median"] = table["summaries"][3]["median"].get<double>() * 0.999;
  const std::string false_table = folder.file("d/table.json", table.dump());
  CHECK_THAT(run({"leaderboard", "verify", false_table}).err,
             Catch::Contains("not that of the rows"));
  const std::string other = folder.file("other.json", R"({"format": "doppler-task"})");
  CHECK_THAT(run({"leaderboard", "verify", other}).err, Catch::Contains("expected a row"));
  const std::string text = folder.file("text.json", "text");
  CHECK(run({"leaderboard", "verify", text}).exit_code == 1);
}

TEST_CASE("bad use of the leaderboard is told before anything runs") {
  const TemporaryFolder folder;
  const std::string rows = folder.path("rows");
  check_refused({"leaderboard", "run", "--suite", "paper-5", "--agents", "heft"}, 2,
                {"paper-5", "paper-4"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--rows", rows}, 2, {"--agents"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--agents", "hft", "--rows", rows}, 2,
                {"heft"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--agents", "heft", "--tiers", "7",
                 "--rows", rows},
                2, {"no tier of 7"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--agents", "heft", "--link",
                 "ftp://x", "--rows", rows},
                2, {"--link", "https://"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--agents", "heft", "--authors",
                 "a\nb", "--rows", rows},
                2, {"authors", "control characters"});
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--agents", "heft", "--kind", "good",
                 "--rows", rows},
                2, {"good", "search"});
  check_refused({"leaderboard", "verify"}, 2, {"--all"});
  check_refused({"leaderboard", "verify", "--all", "--rows", rows}, 1, {rows});
  check_refused({"leaderboard", "report", "--rows", rows}, 2, {"--html"});
  check_refused({"leaderboard", "rank", "--rows", rows}, 1, {rows});
  CHECK(!fs::exists(rows));
}

// The value of PATH while it lives.
class Path {
 public:
  explicit Path(const std::string& value) : before_(std::getenv("PATH")) {
    setenv("PATH", value.c_str(), 1);
  }
  ~Path() { setenv("PATH", before_.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

 private:
  std::string before_;
};

TEST_CASE("a run on a Ray cluster is handed to the Python package with every word") {
  const TemporaryFolder folder;
  const std::string rows = folder.path("rows");
  const Words making = {"leaderboard", "run",    "--suite", "paper-4", "--agents",
                        "heft",        "--rows", rows,      "--ray",   "10.0.0.1:1"};
  SECTION("python3 has it") {
    const std::string python =
        folder.file("python3", "#!/bin/sh\nshift 2\nprintf '%s\\n' \"$@\"\nexit 7\n");
    fs::permissions(python, fs::perms::owner_all);
    const Path path(fs::path(python).parent_path().string() + ":/usr/bin:/bin");
    const Answer answer = run(making);
    CHECK(answer.exit_code == 7);
    std::string words;
    for (const std::string& word : making) words += word + "\n";
    CHECK(answer.out == words);
  }
  SECTION("python3 has it not") {
    const std::string python =
        folder.file("python3", "#!/bin/sh\nexec /usr/bin/python3 -S -E \"$@\"\n");
    fs::permissions(python, fs::perms::owner_all);
    const Path path(fs::path(python).parent_path().string() + ":/usr/bin:/bin");
    if (fs::exists("/usr/bin/python3")) {
      check_refused(making, 2, {"--ray", "doppler_gym", "pip install"});
    }
  }
  SECTION("there is no python3") {
    const Path path(folder.path("nothing"));
    check_refused(making, 2, {"--ray", "python3"});
  }
  check_refused({"leaderboard", "run", "--suite", "paper-4", "--plugin", "./x.so", "--rows", rows,
                 "--ray", "auto"},
                2, {"--plugin", "--ray"});
  CHECK(!fs::exists(rows));
}

TEST_CASE("a row of a real engine shows its spread") {
  const TemporaryFolder folder;
  Suite suite{.name = "real",
              .summary = "for tests",
              .engine = "cpu(repeats=1)",
              .seeds = {0},
              .n_runs = 2,
              .tiers = {{1, 20}},
              .training = {},
              .tasks = {{.name = "small", .task = "chainmm(n=64,shards=2)@cpu2"}}};
  fill_in(suite);
  const std::string file = folder.file("real.json", to_json(suite));
  const std::string rows = folder.path("rows");
  const Json made = run_json(
      {"leaderboard", "run", "--suite", file, "--agents", "heft", "--rows", rows, "--json"});
  REQUIRE(made["made"].size() == 1);
  const std::string path = rows_in(rows).front();
  Json row = Json::parse(read_file(path));
  const Json& one = row["results"][0]["runs"][0];
  CHECK(one["makespans"].size() == 2);
  CHECK(one["critical_path"].size() == 2);
  const Json verified = run_json({"leaderboard", "verify", path, "--suite", file, "--json"});
  const Json& spread = verified["results"][0]["spreads"][0];
  CHECK(spread["row"][0] <= spread["row"][1]);
  CHECK(spread["here"][0] > 0);
  // A measurement is not to be repeated, but an assignment must be legal and the runs complete.
  row["results"][0]["runs"][0]["makespans"].erase(1);
  const Answer refused =
      run({"leaderboard", "verify", folder.file("r.json", row.dump()), "--suite", file});
  CHECK_THAT(refused.err, Catch::Contains("the protocol has 2 runs"));
}

}  // namespace
}  // namespace doppler::testing
