#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "graphs/file.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words with(Words line, const Words& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

Words training(const std::string& agent, const std::string& out, const Words& more = {}) {
  return with({"train", "--agent", agent, "--task", "ffnn@p100x4", "--out", out}, more);
}

Json answer_json(const Words& line) {
  const Answer answer = run_of_tests(line);
  INFO(answer.err);
  REQUIRE(answer.exit_code == 0);
  REQUIRE(answer.err.empty());
  return Json::parse(answer.out);
}

void check_refused_of_tests(const Words& line, int exit_code, const Words& words) {
  const Answer answer = run_of_tests(line);
  INFO(answer.err);
  CHECK(answer.exit_code == exit_code);
  CHECK(answer.out.empty());
  CHECK(answer.err.starts_with("doppler-gym: "));
  CHECK(answer.err.size() < 2000);
  for (const std::string& word : words) {
    INFO("looking for: " << word);
    CHECK(answer.err.find(word) != std::string::npos);
  }
}

// Every file of a run but the configuration, without seconds.
std::map<std::string, std::string> outcome(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::string content = read_file(entry.path().string());
    if (name == "metrics.jsonl") {
      std::istringstream lines(content);
      content.clear();
      for (std::string line; std::getline(lines, line);) {
        Json json = Json::parse(line);
        json.erase("seconds");
        content += json.dump() + "\n";
      }
    }
    if (name == "checkpoint.bin") content.erase(0, content.find('\n'));
    if (name != "config.json") files[name] = content;
  }
  return files;
}

TEST_CASE("train tells what it came to, and its assignment gives that makespan") {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  const Json json =
      answer_json(training("test-learner", out, {"--evaluations", "60", "--seed", "4", "--json"}));
  CHECK(json["state"] == "over");
  CHECK(json["episodes"] == 60);
  CHECK(json["updates"] == 15);
  CHECK(json["was_over"] == false);
  const Json task = json["tasks"][0];
  const Json simulated =
      run_json({"simulate", "--task", "ffnn@p100x4", "--assignment", task["assignment"], "--json"});
  CHECK(simulated["makespan"] == task["makespan"]);
  CHECK(task["makespan"].get<double>() >= task["lower_bound"].get<double>());
  CHECK(json["policy"] == out + "/policy.json");
  CHECK(read_file(out + "/policy.json").find("weights") != std::string::npos);
  const Json config = Json::parse(read_file(out + "/config.json"));
  CHECK(config["seed"] == 4);
  CHECK(config["record"]["trained_on"][0]["task"] == "ffnn@p100x4");
}

TEST_CASE("a run that has finished says so when it is resumed") {
  const TemporaryFolder folder;
  const Words line = training("test-learner", folder.path("run"), {"--evaluations", "20"});
  const Answer first = run_of_tests(line);
  CHECK(first.exit_code == 0);
  CHECK(first.err.empty());
  CHECK(first.out.find("has finished\n") != std::string::npos);
  const Answer again = run_of_tests({"train", "--resume", "--out", folder.path("run")});
  CHECK(again.exit_code == 0);
  CHECK(again.out.find("had finished before") != std::string::npos);
  CHECK(again.out.substr(again.out.find('\n')) == first.out.substr(first.out.find('\n')));
  check_refused_of_tests(line, 2, {"--resume", folder.path("run")});
}

TEST_CASE("kill -9 at any moment loses no more than what came after the last checkpoint") {
  const TemporaryFolder folder;
  const Words options = {"--evaluations", "600", "--checkpoint-every", "2"};
  const std::string agent = "test-learner(pause=0.0005)";
  const std::string whole = folder.path("whole");
  REQUIRE(run_of_tests(training(agent, whole, options)).exit_code == 0);
  const auto expected = outcome(whole);

  std::minstd_rand luck(11);  // the moments differ from run to run nevertheless
  const std::string cut = folder.path("cut");
  Words line = training(agent, cut, options);
  int n_killed = 0;
  int n_in_vain = 0;           // in a row, without a new checkpoint
  unsigned most = 4000;        // microseconds that a process is given
  std::int64_t n_updates = 0;  // that a checkpoint was seen to hold
  while (n_updates < 150) {
    Process process(line, "", DOPPLER_COMMAND_OF_TESTS);
    std::this_thread::sleep_for(std::chrono::microseconds(luck() % most));
    process.send(SIGKILL);
    const Answer answer = process.wait();
    if (answer.exit_code == 0) break;
    INFO(answer.err);
    REQUIRE(answer.exit_code == 128 + SIGKILL);
    ++n_killed;
    if (++n_in_vain % 10 == 0) most *= 2;  // this machine, or this build, starts slowly
    if (!fs::exists(cut + "/config.json")) continue;
    line = {"train", "--resume", "--out", cut};
    CHECK(Json::parse(read_file(cut + "/config.json")).is_object());
    if (!fs::exists(cut + "/checkpoint.bin")) continue;
    const std::string content = read_file(cut + "/checkpoint.bin");
    const auto updates =
        Json::parse(content.substr(content.find('\n')))["updates"].get<std::int64_t>();
    CHECK(updates >= n_updates);
    if (updates > n_updates) n_in_vain = 0;
    n_updates = updates;
  }
  CHECK(n_killed >= 20);
  CHECK(run_of_tests({"train", "--resume", "--out", cut}).exit_code == 0);
  CHECK(outcome(cut) == expected);
}

TEST_CASE("Ctrl-C ends a run with a checkpoint and says how to go on") {
  const TemporaryFolder folder;
  const std::string agent = "test-learner(pause=0.001)";
  const std::string whole = folder.path("whole");
  REQUIRE(run_of_tests(training(agent, whole, {"--evaluations", "2000"})).exit_code == 0);
  for (int signal_number : {SIGINT, SIGTERM}) {
    const std::string out = folder.path("cut" + std::to_string(signal_number));
    Process process(training(agent, out, {"--evaluations", "2000"}), "", DOPPLER_COMMAND_OF_TESTS);
    while (!fs::exists(out + "/metrics.jsonl") || fs::file_size(out + "/metrics.jsonl") < 2000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process.send(signal_number);
    const Answer answer = process.wait();
    CHECK_FALSE(answer.signalled);
    CHECK(answer.exit_code == 128 + signal_number);
    CHECK(answer.out.empty());
    CHECK(answer.err.find("doppler-gym train --resume --out " + out) != std::string::npos);
    // Nothing was lost: the checkpoint knows of every line.
    const std::string content = read_file(out + "/checkpoint.bin");
    CHECK(Json::parse(content.substr(0, content.find('\n')))["metrics_bytes"] ==
          fs::file_size(out + "/metrics.jsonl"));
    const Json json = answer_json({"train", "--resume", "--out", out, "--json"});
    CHECK(json["updates"] == 500);
    CHECK(outcome(out) == outcome(whole));
  }
}

TEST_CASE("a second Ctrl-C ends an update that hangs, and the checkpoint before it stays") {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  Process process(training("test-learner(fault=hang,at=6)", out, {"--checkpoint-every", "5"}), "",
                  DOPPLER_COMMAND_OF_TESTS);
  while (!fs::exists(out + "/checkpoint.bin")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  process.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  process.send(SIGINT);
  CHECK(process.wait().exit_code == 130);
  const std::string content = read_file(out + "/checkpoint.bin");
  CHECK(Json::parse(content.substr(content.find('\n')))["updates"] == 5);
}

TEST_CASE("a loss that is not finite is reported and exits with 1") {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  const Words line = training("test-learner(fault=nan,at=8)", out, {"--checkpoint-every", "3"});
  check_refused_of_tests(line, 1, {"update 8", "nan", "update 6", out});
  check_refused_of_tests({"train", "--resume", "--out", out}, 1, {"update 8", "nan", "update 6"});
}

TEST_CASE("options go before the configuration's fields") {
  const TemporaryFolder folder;
  const Json written = {{"agent", "test-learner(batch=2)"},
                        {"tasks", {"chainmm@p100x4"}},
                        {"seed", 9},
                        {"evaluations", 12},
                        {"settings", {{"noise", 0.1}, {"streams", 2}}}};
  const std::string file = folder.file("c.json", written.dump());
  const std::string a = folder.path("a");
  CHECK(answer_json({"train", "--config", file, "--out", a, "--json"})["updates"] == 6);
  const Json config = Json::parse(read_file(a + "/config.json"));
  CHECK(config["seed"] == 9);
  CHECK(config["settings"] == written["settings"]);
  // A run's own configuration is one as well.
  const std::string b = folder.path("b");
  const Json json = answer_json({"train", "--config", a + "/config.json", "--out", b, "--seed",
                                 "10", "--noise", "0.2", "--stages", "2", "--json"});
  CHECK(json["evaluations"] == 12);
  const Json changed = Json::parse(read_file(b + "/config.json"));
  CHECK(changed["seed"] == 10);
  CHECK(changed["stages"] == std::vector<int>{2});
  CHECK(changed["settings"]["noise"] == 0.2);
  CHECK(changed["settings"]["streams"] == 2);
  CHECK(changed["record"]["trained_on"][0]["hash"] != config["record"]["trained_on"][0]["hash"]);
}

TEST_CASE("a graph of one's own is trained on, from any folder") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const std::string out = folder.path("run");
  const Words line = {"train",      "--agent",   "test-learner", "--graph", graph, "--cluster",
                      "uniform(2)", "--network", "independent",  "--out",   out,   "--seconds",
                      "0"};
  CHECK(run_of_tests(line).exit_code == 0);
  const Json json = answer_json({"train", "--resume", "--out", out, "--seconds", "100", "--json"});
  CHECK(json["state"] == "over");
  // Of 16 assignments the best takes 1 + 3 + 1, and 10,000 samples find it.
  CHECK(json["tasks"][0]["makespan"] == 6.0);
}

TEST_CASE("several tasks get a file each") {
  const TemporaryFolder folder;
  const Json json =
      answer_json({"train", "--agent", "test-learner", "--tasks", "published/ffnn,chainmm@p100x4",
                   "--evaluations", "24", "--out", folder.path("run"), "--json"});
  REQUIRE(json["tasks"].size() == 2);
  CHECK(json["tasks"][0]["assignment"] ==
        folder.path("run/best_assignments/0-published_ffnn.json"));
  for (const Json& task : json["tasks"]) {
    const Json simulated = run_json(
        {"simulate", "--task", task["task"], "--assignment", task["assignment"], "--json"});
    CHECK(simulated["makespan"] == task["makespan"]);
  }
}

TEST_CASE("train refuses what it cannot do before it makes a folder") {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  const auto refused = [&](const Words& more, const Words& words) {
    check_refused_of_tests(with({"train", "--out", out}, more), 2, words);
    CHECK_FALSE(fs::exists(out));
  };
  refused({"--task", "ffnn@p100x4"}, {"--agent"});
  refused({"--agent", "test-learner"}, {"no problem", "--task"});
  refused({"--agent", "annealing", "--task", "ffnn@p100x4"}, {"annealing", "does not learn"});
  refused({"--agent", "tset-learner", "--task", "ffnn@p100x4"}, {"tset-learner", "test-learner"});
  refused({"--agent", "test-learner", "--task", "fnn@p100x4"}, {"fnn", "ffnn"});
  refused({"--agent", "test-learner", "--task", "ffnn@p100x4", "--stages", "1,2,3"},
          {"stage 3", "real engine"});
  refused({"--agent", "test-learner", "--task", "ffnn@p100x4", "--stages", "2,1"}, {"ascend"});
  refused({"--agent", "test-learner", "--task", "ffnn@p100x4", "--stages", "4"}, {"--stages", "4"});
  refused({"--agent", "test-learner", "--task", "ffnn@p100x4", "--device", "tpu"}, {"tpu", "cuda"});
  refused({"--agent", "test-learner", "--task", "ffnn@p100x4", "--checkpoint-every", "soon"},
          {"--checkpoint-every", "soon"});
  refused({"--agent", "test-learner", "--graph", "-", "--cluster", "uniform(2)"}, {"--graph -"});
  refused({"--agent", "test-learner", "--graph", "g.json"}, {"--cluster"});
  refused({"--agent", "test-learner", "--task", "a", "--cluster", "p100x4"}, {"--cluster"});
  refused({"--resume"}, {"no training run", out});
  refused({"--config", folder.file("c.json", R"({"sede": 1})")}, {"c.json", "/sede", "seed"});
  refused({"--agent", "test-learner", "--config",
           folder.file("d.json", R"({"tasks": ["ffnn@p100x4"], "settings": {"nose": 1}})")},
          {"nose", "noise"});
}

TEST_CASE("a task of the test split is trained on only by name") {
  const TemporaryFolder folder;
  const Words line = {"train",         "--agent", "test-learner", "--task",          "ffnn@mesh",
                      "--evaluations", "8",       "--out",        folder.path("run")};
  check_refused_of_tests(line, 2, {"ffnn@mesh", "test split", "--allow-test-tasks"});
  check_refused_of_tests(with(line, {"--noise", "0.1"}), 2, {"test split"});
  CHECK(run_of_tests(with(line, {"--allow-test-tasks"})).exit_code == 0);
  const Json config = Json::parse(read_file(folder.path("run/config.json")));
  CHECK(config["allow_test_tasks"] == true);
  CHECK(config["record"]["trained_on"][0]["split"] == "test");
}

TEST_CASE("a run that goes on refuses other options") {
  const TemporaryFolder folder;
  const std::string out = folder.path("run");
  REQUIRE(run_of_tests(training("test-learner", out, {"--seconds", "0"})).exit_code == 0);
  const Words resume = {"train", "--resume", "--out", out};
  check_refused_of_tests(with(resume, {"--seed", "1"}), 2, {"seed 0", "not 1"});
  check_refused_of_tests(with(resume, {"--task", "chainmm@p100x4"}), 2, {"tasks", "chainmm"});
  check_refused_of_tests(with(resume, {"--evaluations", "7"}), 2, {"evaluations 10000", "7"});
  check_refused_of_tests(with(resume, {"--config", out + "/config.json"}), 2, {"--config"});
  CHECK(
      run_of_tests(with(resume, {"--seconds", "50", "--threads", "2", "--seed", "0"})).exit_code ==
      0);
  check_refused_of_tests({"train", "--agent", "test-learner", "--task", "ffnn@p100x4",
                          "--init-from", folder.path("none"), "--out", folder.path("b")},
                         1, {"none"});
}

}  // namespace
}  // namespace doppler::testing
