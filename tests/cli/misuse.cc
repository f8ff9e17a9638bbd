// Slips on the command line and streams that are not what they should be.
#include <sys/resource.h>

#include <string>

#include "cli/output.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

TEST_CASE("An option whose value was forgotten does not take the next option for it") {
  const std::vector<std::string> start = {"assign", "--task", "chainmm@p100x4", "--agent", "heft"};
  for (const char* forgotten : {"--out", "--seed", "--network", "--profile"}) {
    for (const char* next : {"--json", "--help", "-h", "--no-enforce-memory"}) {
      std::vector<std::string> words = start;
      words.insert(words.end(), {forgotten, next});
      check_refused(words, 2, {forgotten, next, "needs a value"});
    }
    std::vector<std::string> words = start;
    words.insert(words.end(), {std::string(forgotten) + "=", "--json"});
    check_refused(words, 2, {forgotten, "empty"});
  }
  check_refused({"simulate", "--task=", "--agent", "heft"}, 2, {"--task", "empty"});
}

TEST_CASE("Options that exclude each other are refused, and none is passed over in silence") {
  const TemporaryFolder folder;
  const std::string file = folder.file("diamond.txt", kDiamond);
  check_refused({"graph", "show", file, "--dot", "--json"}, 2, {"--dot", "--json"});
  check_refused({"graph", "show", file, "--devices", "8"}, 2, {"--devices", "--workload"});
}

TEST_CASE("A graph's output is refused before the graph is made") {
  const TemporaryFolder folder;
  // A graph that cannot be made: its fault would be told if it came first.
  const std::string impossible = "chainmm(n=1,shards=100)";
  check_refused({"graph", "generate", impossible, "--to", "msr"}, 2, {"--to", "msr"});
  check_refused({"graph", "generate", impossible, "--to", "onnx"}, 2, {"onnx"});
  check_refused({"graph", "generate", impossible, "--out", folder.path("none/g.json")}, 1,
                {"none", "folder"});
  check_refused({"graph", "convert", folder.path("absent"), folder.path("none/g.json")}, 1,
                {"none", "folder"});
  check_refused({"graph", "generate", impossible}, 2, {"chainmm", "parts"});
}

TEST_CASE("A limit on file sizes is a refusal and leaves no file") {
  const TemporaryFolder folder;
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 8192;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Answer answer =
      run({"graph", "generate", "llama-layer", "--out", folder.path("layer.json")});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(answer.exit_code == 1);
  CHECK(!answer.signalled);
  CHECK(answer.err.find("layer.json: cannot write") != std::string::npos);
  CHECK(folder.names().empty());
}

TEST_CASE("A message is text, whatever bytes it tells of") {
  CHECK(cli::readable_message("a\xbb\x1b") == "a\\xbb\\x1b");
  CHECK(cli::readable_message("\u00e9\n") == "\u00e9");
  const TemporaryFolder folder;
  check_refused(
      {"assign", "--task", "chainmm@" + folder.file("noise.json", "n\xbb"), "--agent", "heft"}, 2,
      {"noise.json", "\\xbb"});
}

TEST_CASE("bench measures a large graph in short batches too") {
  const auto json = run_json({"bench", "--task", "random-dag(n=60000)@uniform(2)", "--network",
                              "independent", "--seconds", "0", "--threads", "3", "--json"});
  CHECK(json["random_assignments"]["makespans"] == 17);  // 2^20 / 60,000 nodes, at least 3
  CHECK(json["one_node_changes"]["makespans"] == 17);
}

}  // namespace
}  // namespace doppler::testing
