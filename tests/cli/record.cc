// doppler-gym record and dataset, killed at random moments.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "datasets/trajectories/episode_file.h"
#include "graphs/file.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words with(Words line, const Words& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

Words recording(const std::string& root, int n_episodes, const Words& more = {}) {
  return with({"record", "--task", "chainmm@p100x4", "--agent", "critical-path", "--episodes",
               std::to_string(n_episodes), "--out", root},
              more);
}

const std::string kName = "/dopplergym/chainmm_p100x4/critical-path-v0";

// Whether two main files hold the same episodes; HDF5 leaves what it does not use as it was.
void check_equal(const std::string& root, const std::string& other) {
  EpisodeFileReader a(root + kName + "/data/main_data.hdf5");
  EpisodeFileReader b(other + kName + "/data/main_data.hdf5");
  REQUIRE(a.n_episodes() == b.n_episodes());
  for (std::int64_t i = 0; i < a.n_episodes(); ++i) {
    const Episode x = a.read(i);
    const Episode y = b.read(i);
    CHECK((x.attributes == y.attributes && x.arrays == y.arrays && x.links == y.links));
    CHECK(*x.fixed == *y.fixed);
  }
}

nlohmann::json checked(const std::string& root) {
  const nlohmann::json list = run_json({"dataset", "check", root, "--json"});
  REQUIRE(list.size() == 1);
  CHECK(list[0]["faults"].empty());
  return list[0];
}

TEST_CASE("record writes a data set that check finds whole") {
  const TemporaryFolder folder;
  const std::string root = folder.path("data");
  const nlohmann::json made = run_json(recording(root, 12, {"--json"}));
  CHECK(made["id"] == "dopplergym/chainmm_p100x4/critical-path-v0");
  CHECK(made["episodes"] == 12);
  CHECK(checked(root)["episodes"] == 12);
  CHECK(checked(root)["steps"] == 12 * 2 * 76);
  const nlohmann::json metadata =
      nlohmann::json::parse(read_file(root + kName + "/data/metadata.json"));
  CHECK(metadata["total_episodes"] == 12);
  CHECK(metadata["dopplergym"]["agent"] == "critical-path");
  const nlohmann::json stats = run_json({"dataset", "stats", root, "--json"});
  // Each episode is what assign() gives for its seed.
  double least = 1e9;
  for (int seed = 0; seed < 12; ++seed) {
    const nlohmann::json one =
        run_json({"assign", "--task", "chainmm@p100x4", "--agent", "critical-path", "--seed",
                  std::to_string(seed), "--json"});
    least = std::min(least, one["makespan"].get<double>());
  }
  CHECK(stats[0]["makespan"]["least"] == least);
}

TEST_CASE("record refuses what would write over something, and tells slips") {
  const TemporaryFolder folder;
  const std::string root = folder.path("data");
  CHECK(run(recording(root, 2)).exit_code == 0);
  check_refused(recording(root, 2), 2, {"already", "--resume", "--id"});
  check_refused(recording(root, 2, {"--resume", "--mode", "place"}), 2, {"recorded otherwise"});
  check_refused(recording(root, 2, {"--id", "no version"}), 2, {"data set id", "-vVERSION"});
  check_refused(recording(root, 2, {"--mode", "plaice"}), 2, {"place"});
  check_refused(recording("/proc/nothing", 2), 1, {"/proc/nothing", "cannot make this folder"});
  check_refused({"dataset", "check", folder.path("none")}, 1, {"no such folder"});
  check_refused({"dataset", "split", root, "--out", root, "--fractions", "0.6,0.6", "--ids",
                 "ab/a-v0,ab/b-v0"},
                2, {"more than 1"});
  CHECK(run_json(recording(root, 5, {"--resume", "--json"}))["recorded"] == 3);
  CHECK(checked(root)["episodes"] == 5);
}

TEST_CASE("Threads and parts play no part in what is recorded") {
  const TemporaryFolder folder;
  CHECK(run(recording(folder.path("a"), 9)).exit_code == 0);
  CHECK(run(recording(folder.path("b"), 9, {"--flush-episodes", "256"})).exit_code == 0);
  check_equal(folder.path("a"), folder.path("b"));
  CHECK(run(recording(folder.path("c"), 9, {"--jobs", "3"})).exit_code == 0);
  CHECK(checked(folder.path("c"))["steps"] == checked(folder.path("a"))["steps"]);
}

// Kills a recording at random moments, again and again, and looks at what is there each time.
void kill_and_resume(int n_kills, int n_episodes, int longest_ms, const Words& more) {
  std::mt19937 random(static_cast<unsigned>(n_kills));
  const TemporaryFolder folder;
  const std::string root = folder.path("data");
  std::int64_t finished = 0;
  int n_killed = 0;
  for (int k = 0; n_killed < n_kills; ++k) {
    REQUIRE(k < 20 * n_kills);
    Process process(recording(root, n_episodes, with({"--resume"}, more)));
    std::this_thread::sleep_for(std::chrono::microseconds(
        std::uniform_int_distribution<int>(0, longest_ms * 1000)(random)));
    process.send(SIGKILL);
    const Answer answer = process.wait();
    if (answer.exit_code == 128 + SIGKILL) {
      ++n_killed;
    } else {
      INFO(answer.err);
      REQUIRE(answer.exit_code == 0);
    }
    std::int64_t now = 0;
    if (fs::exists(root + kName + "/.parts") || fs::exists(root + kName + "/data")) {
      const Answer check = run({"dataset", "check", root, "--json"});
      const nlohmann::json one = nlohmann::json::parse(check.out)[0];
      now = one["episodes"].get<std::int64_t>() + one["waiting"].get<std::int64_t>();
      for (const auto& fault : one["faults"]) {
        const auto text = fault.get<std::string>();
        INFO(text);
        CHECK((text.find("not built in yet") != std::string::npos ||
               text.find("is behind") != std::string::npos));
      }
    }
    CHECK(now >= finished);  // what was finished stays
    finished = now;
    if (finished == n_episodes && answer.exit_code == 0) {
      // It is whole: begin another, so that every moment of a recording is met again.
      CHECK(checked(root)["episodes"] == n_episodes);
      fs::remove_all(root);
      finished = 0;
    }
  }
  REQUIRE(run(recording(root, n_episodes, {"--resume"})).exit_code == 0);
  CHECK(checked(root)["episodes"] == n_episodes);
  const TemporaryFolder other;
  REQUIRE(run(recording(other.path("data"), n_episodes)).exit_code == 0);
  check_equal(root, other.path("data"));
}

TEST_CASE("Nothing finished is lost by kill -9, and nothing unfinished appears") {
  kill_and_resume(25, 12, 120, {});
}

TEST_CASE("The same after hundreds of kills", "[.long]") {
  kill_and_resume(300, 40, 400, {});
  kill_and_resume(300, 40, 200, {"--flush-episodes", "16"});
}

TEST_CASE("Ctrl-C ends a recording that can go on") {
  const TemporaryFolder folder;
  const std::string root = folder.path("data");
  Process process(recording(root, 100'000));
  process.await_ready();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  process.send(SIGINT);
  const Answer answer = process.wait();
  CHECK(answer.exit_code == 128 + SIGINT);
  CHECK(answer.err.find("--resume") != std::string::npos);
  check_refused(recording(root, 3), 2, {"already"});
  CHECK(run({"dataset", "repair", root}).exit_code == 0);
  CHECK(checked(root)["episodes"].get<int>() > 0);
}

}  // namespace
}  // namespace doppler::testing
