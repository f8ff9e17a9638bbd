#include <string>

#include "graphs/assignment.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"
#include "tests/support/reference.h"

namespace doppler::testing {
namespace {

TEST_CASE("assign and simulate agree, by its file and by its JSON") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  for (const std::string agent : {"random", "critical-path", "heft", "partner-list"}) {
    const std::string out = folder.path(agent + ".json");
    const auto decided = run_json({"assign", "--graph", graph, "--cluster", "uniform(3)", "--agent",
                                   agent, "--seed", "5", "--out", out, "--json"});
    CHECK(decided["evaluations"] == 1);
    CHECK(decided["seconds"].get<double>() >= 0);
    REQUIRE(decided["assignment"].size() == 4);
    const auto again = run_json(
        {"simulate", "--graph", graph, "--cluster", "uniform(3)", "--assignment", out, "--json"});
    CHECK(again["makespan"] == decided["makespan"]);
    const Assignment written = read_assignment(out);
    for (std::size_t v = 0; v < 4; ++v) {
      CHECK(written.devices[v].value == decided["assignment"][v].get<int>());
    }
  }
}

TEST_CASE("partner-list reaches its known makespan on a published graph") {
  const auto file = reference_file("graphs/gdp_full_transformer_layer_261nodes.txt");
  if (!file) return;
  const auto decided = run_json({"assign", "--graph", *file, "--cluster", "uniform(4)", "--network",
                                 "independent", "--agent", "partner-list", "--json"});
  CHECK(decided["assignment"].size() == 229);
  CHECK(decided["makespan"].get<double>() == Approx(173.867e10).margin(6e6));
}

TEST_CASE("assign prints the assignment for people, or says where it is") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const Answer printed =
      run({"assign", "--graph", graph, "--cluster", "uniform(2)", "--agent", "single-device"});
  CHECK(printed.exit_code == 0);
  CHECK(printed.err.empty());
  CHECK(printed.out.find("makespan     7.000 raw\n") != std::string::npos);
  CHECK(printed.out.find("assignment   0 0 0 0\n") != std::string::npos);
  const std::string out = folder.path("a.json");
  const Answer saved = run({"assign", "--graph", graph, "--cluster", "uniform(2)", "--agent",
                            "single-device", "--out", out});
  CHECK(saved.out.find("written to " + out) != std::string::npos);
}

TEST_CASE("assign refuses unknown agents and places where nothing can be written") {
  const TemporaryFolder folder;
  const std::string graph = folder.file("diamond.txt", kDiamond);
  const auto line = [&](const std::string& agent, const std::string& out) {
    return std::vector<std::string>{"assign",  "--graph", graph,   "--cluster", "uniform(2)",
                                    "--agent", agent,     "--out", out};
  };
  check_refused(line("critical-pth", folder.path("a.json")), 2, {"critical-pth", "critical-path"});
  check_refused(line("of-python", folder.path("a.json")), 2,
                {"unknown agent 'of-python'", "Python package's doppler-gym"});
  check_refused(line("heft(x=1)", folder.path("a.json")), 2, {"x"});
  check_refused(line("heft", folder.path("none/a.json")), 1, {"none"});
  check_refused(line("heft", folder.path("")), 1, {"directory"});
  CHECK(folder.names() == std::vector<std::string>{"diamond.txt"});
}

}  // namespace
}  // namespace doppler::testing
