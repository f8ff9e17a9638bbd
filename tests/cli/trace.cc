#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graphs/file.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Json trace_of(const Words& problem) {
  Words line = {"trace"};
  line.insert(line.end(), problem.begin(), problem.end());
  return run_json(line);
}

// The slices of each thread, by start.
using Track = std::pair<int, int>;
std::map<Track, std::vector<std::pair<double, double>>> slices(const Json& trace) {
  std::map<Track, std::vector<std::pair<double, double>>> result;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double start = event["ts"];
    result[{event["pid"], event["tid"]}].emplace_back(start, start + event["dur"].get<double>());
  }
  for (auto& [track, list] : result) std::sort(list.begin(), list.end());
  return result;
}

void check_consistent(const Json& trace, double makespan) {
  const double shown =
      makespan / trace["otherData"]["seconds_per_second_shown"].get<double>() * 1e6;
  double last = 0;
  for (const auto& [track, list] : slices(trace)) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(list[i].first >= 0);
      CHECK(list[i].second >= list[i].first);
      if (i > 0) CHECK(list[i].first >= list[i - 1].second - 1e-9 * shown);
      last = std::max(last, list[i].second);
    }
  }
  CHECK(last == Approx(shown));
  std::map<int, std::vector<Json>> flows;
  std::map<Track, int> names;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") flows[event["id"]].push_back(event);
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      ++names[{event["pid"], event["tid"]}];
    }
  }
  for (const auto& [id, ends] : flows) {
    REQUIRE(ends.size() == 2);
    CHECK(ends[0]["ph"] == "s");
    CHECK(ends[1]["ph"] == "f");
    CHECK(ends[0]["ts"] <= ends[1]["ts"]);
  }
  for (const auto& [track, list] : slices(trace)) CHECK(names[track] == 1);
}

TEST_CASE("trace shows each node and transfer once, at the times of the simulation") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const std::string file = folder.file("a.json", "{\"assignment\": [0, 0, 1, 0]}");
  const Json trace = trace_of({"--graph", graph, "--cluster", "uniform(2)", "--network",
                               "independent", "--assignment", file});
  check_consistent(trace, 7);
  std::size_t n_nodes = 0;
  std::size_t n_transfers = 0;
  std::size_t n_flows = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["cat"] == "node") ++n_nodes;
    if (event["ph"] == "X" && event["cat"] == "transfer") ++n_transfers;
    if (event["ph"] == "s") ++n_flows;
    if (event["ph"] == "X" && event["cat"] == "node" && event["args"]["node"] == 2) {
      CHECK(event["pid"] == 1);
      CHECK(event["ts"] == 2e6);
      CHECK(event["dur"] == 3e6);
    }
  }
  CHECK(n_nodes == 4);
  CHECK(n_transfers == 2);
  CHECK(n_flows == 4);  // to each of two transfers, and on to its reader
}

TEST_CASE("trace is consistent for every network, with several slots and placed inputs") {
  for (const std::string network : {"independent", "channel", "fair"}) {
    const Words problem = {"--task", "ffnn@p100x4", "--agent", "critical-path", "--network",
                           network,  "--streams",   "2",       "--inputs",      "1"};
    Words line = {"simulate", "--json"};
    line.insert(line.end(), problem.begin(), problem.end());
    check_consistent(trace_of(problem), run_json(line)["makespan"]);
  }
}

TEST_CASE("trace shows raw costs at a readable scale and writes a file") {
  const TemporaryFolder folder;
  const std::string graph =
      folder.file("raw.txt", "3\n2\n0\n1\n1000000000000,4000000000000\n1000000000000,1\n");
  const std::string out = folder.path("trace.json");
  const Answer answer = run({"trace", "--graph", graph, "--cluster", "uniform(2)", "--agent",
                             "single-device", "--out", out});
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.empty());
  const Json trace = Json::parse(read_file(out));
  CHECK(trace["otherData"]["makespan"] == 2e12);
  check_consistent(trace, 2e12);
}

TEST_CASE("trace refuses an execution that has no memory, naming the device") {
  const Words line = {"trace", "--task", "chainmm(n=200000)@p100x4", "--agent", "single-device"};
  check_refused(line, 1, {"device 0", "--no-enforce-memory"});
}

}  // namespace
}  // namespace doppler::testing
