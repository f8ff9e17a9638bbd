#include <filesystem>
#include <string>

#include "graphs/assignment.h"
#include "graphs/file.h"
#include "graphs/formats.h"
#include "tests/cli/process.h"
#include "tests/support/catch.h"
#include "tests/support/reference.h"

namespace doppler::testing {
namespace {

TEST_CASE("graph check says in one line that a file is sound") {
  const TemporaryFolder folder;
  const std::string file = folder.file("diamond.txt", kDiamond);
  const Answer answer = run({"graph", "check", file});
  CHECK(answer.exit_code == 0);
  CHECK(answer.err.empty());
  CHECK(answer.out == file + ": sound, 4 nodes, 4 edges, 1 inputs\n");
  const auto json = run_json({"graph", "check", file, "--json"});
  CHECK(json["nodes"] == 4);
  CHECK(json["edges"] == 4);
}

TEST_CASE("graph check refuses damaged files with one message that names the file") {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& name, const std::string& content) {
    check_refused({"graph", "check", folder.file(name, content)}, 2, {name});
  };
  refuse("empty.txt", "");
  refuse("huge.txt", "1000000000000000000\n4\n0,0,1,2\n1,2,3,3\n1,1\n2,1\n3,1\n1,1\n");
  refuse("short.txt", "5\n4\n0,0,1,2\n1,2,3,3\n1,1\n");
  refuse("unequal.txt", "5\n4\n0,0,1,2,3\n1,2,3,3\n1,1\n2,1\n3,1\n1,1\n");
  refuse("word.txt", "5\n4\nx0,0,1,2\n1,2,3,3\n1,1\n2,1\n3,1\n1,1\n");
  refuse("nan.txt", "5\n4\n0,0,1,2\n1,2,3,3\nnan,nan\n2,1\n3,1\n1,1\n");
  refuse("trailing.txt", std::string(kDiamond) + "rubbish\n");
  refuse("cycle.txt", "5\n4\n0,1,1,2\n1,0,3,3\n1,1\n2,1\n3,1\n1,1\n");
  refuse("range.txt", "5\n4\n0,0,1,9\n1,2,3,3\n1,1\n2,1\n3,1\n1,1\n");
  refuse("open.json", "{\"nodes\": [");
  refuse("noise.bin", std::string("\x00\xff\x1b[31m\x07", 8));
  check_refused({"graph", "check", folder.path("absent.txt")}, 1, {"absent.txt", "No such file"});
  check_refused({"graph", "check", folder.path("")}, 1, {"directory"});
  check_refused({"graph", "check"}, 2, {"FILE"});
}

TEST_CASE("graph convert keeps the graph through every format that can be read") {
  const TemporaryFolder folder;
  const std::string text = folder.file("diamond.txt", kDiamond);
  const std::string json = folder.path("diamond.json");
  const std::string again = folder.path("again.txt");
  CHECK(run({"graph", "convert", text, json}).exit_code == 0);
  CHECK(run({"graph", "convert", json, again}).exit_code == 0);
  const Graph graph = read_graph(text);
  CHECK(read_graph(json) == graph);
  CHECK(read_graph(again) == graph);

  const Answer dot = run({"graph", "convert", json, "-", "--to", "dot"});
  CHECK(dot.exit_code == 0);
  CHECK(dot.out == to_dot(graph));
  const Answer piped = run({"graph", "convert", "-", "-"}, kDiamond);
  CHECK(piped.exit_code == 0);
  CHECK(parse_graph(piped.out, "output").n_nodes() == 4);
  check_refused({"graph", "convert", text, "-", "--to", "onnx"}, 2, {"onnx", "json"});
  check_refused({"graph", "convert", text, folder.path("no/such.json")}, 1, {"no/such.json"});
}

TEST_CASE("graph generate writes what the workload is, to a file or to standard output") {
  const TemporaryFolder folder;
  const std::string file = folder.path("chain.json");
  const Answer answer = run({"graph", "generate", "chainmm", "--devices", "4", "--out", file});
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.empty());
  CHECK(answer.err.empty());
  CHECK(read_graph(file).n_nodes() == 76);  // as the published graph
  const Answer printed = run({"graph", "generate", "chainmm", "--devices", "4"});
  CHECK(printed.out == read_file(file));
  check_refused({"graph", "generate", "chainm"}, 2, {"chainm", "chainmm"});
  check_refused({"graph", "generate", "chainmm(size=3)"}, 2, {"size"});
  check_refused({"graph", "generate", "chainmm", "--devices", "0"}, 2, {"--devices"});
}

TEST_CASE("graph show gives statistics and the critical path on a cluster") {
  const TemporaryFolder folder;
  const std::string file = folder.file("diamond.txt", kDiamond);
  const auto json = run_json({"graph", "show", file, "--cluster", "uniform(2)", "--json"});
  CHECK(json["nodes"] == 4);
  CHECK(json["edges"] == 4);
  CHECK(json["inputs"] == 1);
  CHECK(json["levels"] == 3);
  CHECK(json["width"] == 2);
  CHECK(json["flops"] == 7.0);
  CHECK(json["raw_costs"] == true);
  const auto& path = json["cluster"]["critical_path"];
  CHECK(path["seconds"] == 7.0);  // 1 + 1 + 3 + 1 + 1: nodes 0, 2, 3 and two mean transfers
  CHECK(path["nodes"] == nlohmann::json({0, 2, 3}));
  CHECK(json["cluster"]["critical_path_compute_only"]["seconds"] == 5.0);
  CHECK(json["cluster"]["lower_bound"].get<double>() >= 5.0);

  const Answer text = run({"graph", "show", file, "--cluster", "uniform(2)"});
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("4 nodes, 4 edges, 1 inputs, 3 levels, width 2") != std::string::npos);
  const Answer dot = run({"graph", "show", file, "--dot"});
  CHECK(dot.out == to_dot(read_graph(file)));
  check_refused({"graph", "show"}, 2, {"FILE", "--workload"});
  check_refused({"graph", "show", file, "--workload", "ffnn"}, 2, {"--workload"});
  check_refused({"graph", "show", file, "--cluster", "unifrm(2)"}, 2, {"unifrm", "uniform"});
}

}  // namespace
}  // namespace doppler::testing
