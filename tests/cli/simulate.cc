#include <string>
#include <vector>

#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Words = std::vector<std::string>;

struct Diamond {
  TemporaryFolder folder;
  std::string graph = folder.file("diamond.txt", kDiamond);

  // The command line that simulates an assignment on two devices, and more words.
  [[nodiscard]] Words line(const std::string& devices, const Words& more) const {
    const std::string file = folder.file("a.json", "{\"assignment\": [" + devices + "]}");
    Words words = {"simulate",  "--graph",     graph,          "--cluster", "uniform(2)",
                   "--network", "independent", "--assignment", file};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_CASE("simulate gives the makespan, devices and bytes of an assignment") {
  const Diamond diamond;
  // Node 0: 0 to 1 on device 0; node 1: 1 to 3 there; node 2: 2 to 5 on device 1; node 3: 6 to 7.
  const auto json = run_json(diamond.line("0, 0, 1, 0", {"--json"}));
  CHECK(json["makespan"] == 7.0);
  CHECK(json["bytes_moved"] == 2.0);
  CHECK(json["bytes_local"] == 2.0);
  CHECK(json["out_of_memory"].is_null());
  CHECK(json["lower_bound"].get<double>() >= 5.0);
  CHECK(json["lower_bound"].get<double>() <= 6.0);
  REQUIRE(json["devices"].size() == 2);
  CHECK(json["devices"][0]["busy"] == 4.0);
  CHECK(json["devices"][1]["busy"] == 3.0);
  CHECK(json["devices"][0]["nodes"] == 3);
  CHECK(json["devices"][1]["nodes"] == 1);
  CHECK_FALSE(json.contains("timeline"));
  CHECK(run_json(diamond.line("0, 1, 0, 0", {"--json"}))["makespan"] == 6.0);
  CHECK(run_json(diamond.line("1, 1, 1, 1", {"--json"}))["makespan"] == 7.0);

  const Answer text = run(diamond.line("0, 0, 1, 0", {}));
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  CHECK(text.out.find("makespan     7.000 raw\n") != std::string::npos);
}

TEST_CASE("simulate adds the timeline on request") {
  const Diamond diamond;
  const auto json = run_json(diamond.line("0, 0, 1, 0", {"--json", "--timeline"}));
  const auto& nodes = json["timeline"]["nodes"];
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[2]["device"] == 1);
  CHECK(nodes[2]["start"] == 2.0);
  CHECK(nodes[2]["end"] == 5.0);
  CHECK(nodes[3]["ready"] == 6.0);
  const auto& transfers = json["timeline"]["transfers"];
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0]["producer"] == 0);
  CHECK(transfers[0]["from"] == 0);
  CHECK(transfers[0]["to"] == 1);
  CHECK(transfers[0]["start"] == 1.0);
  CHECK(transfers[0]["end"] == 2.0);
  check_refused(diamond.line("0, 0, 1, 0", {"--timeline"}), 2, {"--timeline", "--json"});
}

TEST_CASE("simulate takes every engine setting") {
  const Diamond diamond;
  const auto makespan = [&](const Words& more) {
    Words words = {"--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_json(diamond.line("0, 0, 0, 0", words))["makespan"].get<double>();
  };
  CHECK(makespan({}) == 7.0);
  CHECK(makespan({"--streams", "2"}) == 5.0);  // nodes 1 and 2 side by side
  CHECK(makespan({"--choice", "priority"}) == 7.0);
  CHECK(makespan({"--choice", "random", "--seed", "3"}) == 7.0);
  CHECK(makespan({"--schedule", "bulk_synchronous"}) == 7.0);
  const double lucky = makespan({"--noise", "0.3", "--seed", "1"});
  CHECK(lucky != 7.0);
  CHECK(makespan({"--noise", "0.3", "--seed", "1"}) == lucky);
  CHECK(makespan({"--noise", "0.3", "--seed", "2"}) != lucky);
  // A barrier waits for the longest node of the level and then for the transfers.
  const auto barrier =
      run_json(diamond.line("0, 1, 0, 0", {"--json", "--schedule", "bulk_synchronous"}));
  CHECK(barrier["makespan"] == 7.0);  // 0-1, transfer to 2, level 1 to 5, transfer to 6, to 7
  CHECK(barrier["settings"]["schedule"] == "bulk_synchronous");
}

TEST_CASE("simulate names the device that has too little memory, in valid JSON") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("large.json", [] {
    const Answer made = run({"graph", "generate", "chainmm(n=200000)"});
    return made.out;
  }());
  const Words line = {"simulate", "--graph", graph,          "--cluster",
                      "p100x4",   "--agent", "single-device"};
  const auto with = [&](const Words& more) {
    Words words = line;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto json = run_json(with({"--json"}));
  CHECK(json["makespan"].is_null());
  const auto& lack = json["out_of_memory"];
  CHECK(lack["device"] == 0);
  CHECK(lack["available"] == 16e9);
  CHECK(lack["needed"].get<double>() > 16e9);
  CHECK(lack["needed"] == json["devices"][0]["peak_memory"]);
  const Answer text = run(line);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("device 0 needs ") != std::string::npos);
  CHECK(text.out.find("has 16.00 GB") != std::string::npos);
  const auto allowed = run_json(with({"--json", "--no-enforce-memory"}));
  CHECK(allowed["makespan"].is_number());
  CHECK(allowed["out_of_memory"].is_null());
}

TEST_CASE("simulate refuses assignments that do not fit") {
  const Diamond diamond;
  check_refused(diamond.line("0, 0, 1", {}), 2, {"a.json", "3", "4"});
  check_refused(diamond.line("0, 0, 1, 0, 0", {}), 2, {"a.json", "5", "4"});
  check_refused(diamond.line("0, 0, 2, 0", {}), 2, {"a.json", "node 2", "device 2"});
  check_refused(diamond.line("0, 0, -1, 0", {}), 2, {"a.json", "-1"});
  check_refused(diamond.line("0, 0, 0.5, 0", {}), 2, {"a.json", "0.5"});
  check_refused(diamond.line("0, 0, \"x\", 0", {}), 2, {"a.json"});
  check_refused(diamond.line("0, 0, 1, 0]", {}), 2, {"a.json"});
  check_refused(diamond.line("0, 0, 99999999999999, 0", {}), 2, {"a.json"});
}

TEST_CASE("simulate refuses problems that are not one") {
  const Diamond diamond;
  const std::string file = diamond.folder.file("b.json", "{\"assignment\": [0, 0, 0, 0]}");
  check_refused({"simulate", "--assignment", file}, 2, {"--task", "--graph"});
  check_refused({"simulate", "--task", "chainmm@p100x4"}, 2, {"--assignment", "--agent"});
  check_refused({"simulate", "--graph", diamond.graph, "--assignment", file}, 2, {"--cluster"});
  check_refused({"simulate", "--task", "chainmm@p100x4", "--graph", diamond.graph}, 2,
                {"--task", "--graph"});
  check_refused({"simulate", "--task", "chainmm@p100x4", "--cluster", "v100x8"}, 2,
                {"--cluster", "v100x8"});
  check_refused({"simulate", "--task", "chainm@p100x4", "--agent", "heft"}, 2,
                {"--task", "chainm", "chainmm"});
  check_refused({"simulate", "--task", "chainmm@p100x5", "--agent", "heft"}, 2,
                {"p100x5", "p100x4"});
  check_refused({"simulate", "--task", "chainmm(n=-4)@p100x4", "--agent", "heft"}, 2, {"n", "-4"});
  check_refused(diamond.line("0, 0, 0, 0", {"--choice", "fist"}), 2, {"--choice", "fist", "fifo"});
  check_refused(diamond.line("0, 0, 0, 0", {"--noise", "11"}), 2, {"--noise", "11"});
  check_refused(diamond.line("0, 0, 0, 0", {"--inputs", "2"}), 2, {"--inputs", "2"});
  check_refused(diamond.line("0, 0, 0, 0", {"--profile", diamond.folder.path("none.json")}), 1,
                {"none.json"});
  check_refused(diamond.line("0, 0, 0, 0", {"--enforce-memory", "--no-enforce-memory"}), 2,
                {"--enforce-memory"});
  const std::string cluster = diamond.folder.file("cluster.json", "{\"devices\": 3}");
  check_refused({"simulate", "--graph", diamond.graph, "--cluster", cluster, "--assignment", file},
                2, {"cluster.json"});
  check_refused(
      {"simulate", "--graph", diamond.graph, "--cluster", "uniform(0)", "--assignment", file}, 2,
      {"uniform"});
  check_refused({"simulate", "--graph", diamond.graph, "--cluster", "uniform(2)", "--assignment",
                 diamond.folder.path("c.json")},
                1, {"c.json"});
}

}  // namespace
}  // namespace doppler::testing
