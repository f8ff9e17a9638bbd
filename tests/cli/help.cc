#include <string>
#include <vector>

#include "tests/cli/process.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

using Words = std::vector<std::string>;

const std::vector<Words> kCommands = {{"tasks"},
                                      {"graph"},
                                      {"graph", "show"},
                                      {"graph", "generate"},
                                      {"graph", "convert"},
                                      {"graph", "check"},
                                      {"simulate"},
                                      {"assign"},
                                      {"evaluate"},
                                      {"trace"},
                                      {"execute"},
                                      {"profile"},
                                      {"calibrate"},
                                      {"compare"},
                                      {"train"},
                                      {"record"},
                                      {"dataset"},
                                      {"dataset", "check"},
                                      {"dataset", "repair"},
                                      {"dataset", "merge"},
                                      {"dataset", "stats"},
                                      {"dataset", "split"},
                                      {"results"},
                                      {"results", "run"},
                                      {"results", "table"},
                                      {"results", "plot"},
                                      {"results", "check"},
                                      {"bench"}};

TEST_CASE("Every subcommand explains itself with examples") {
  for (const Words& command : kCommands) {
    for (const char* flag : {"--help", "-h"}) {
      Words line = command;
      line.emplace_back(flag);
      const Answer answer = run(line);
      std::string name = "doppler-gym";
      for (const std::string& word : command) name += " " + word;
      INFO(name << "\n" << answer.out);
      CHECK(answer.exit_code == 0);
      CHECK(answer.err.empty());
      CHECK(answer.out.find("Usage: " + name) != std::string::npos);
      CHECK(answer.out.find("Examples:\n  doppler-gym " + command.front()) != std::string::npos);
    }
  }
}

TEST_CASE("Help fits a terminal of 100 columns") {
  for (Words line : kCommands) {
    line.emplace_back("--help");
    std::string row;
    for (char c : run(line).out + "\n") {
      if (c != '\n') {
        row += c;
        continue;
      }
      CHECK(row.size() <= 100);
      row.clear();
    }
  }
}

TEST_CASE("The program lists its subcommands and its version") {
  const Answer help = run({"--help"});
  CHECK(help.exit_code == 0);
  for (const Words& command : kCommands) {
    CHECK(help.out.find("\n  " + command.front() + " ") != std::string::npos);
  }
  const Answer version = run({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("doppler-gym "));
  CHECK(version.out.find('.') != std::string::npos);
}

TEST_CASE("Unknown commands and options are refused with the nearest name") {
  check_refused({}, 2, {"evaluate"});
  check_refused({"graph"}, 2, {"check", "convert"});
  check_refused({"evalute"}, 2, {"evalute", "evaluate"});
  check_refused({"graph", "chek", "x"}, 2, {"chek", "check"});
  check_refused({"evaluate", "--sede", "3"}, 2, {"--sede", "--seed"});
  check_refused({"tasks", "--jsn"}, 2, {"--jsn", "--json"});
  check_refused({"tasks", "--jsn=1"}, 2, {"--jsn", "--json"});
  check_refused({"tasks", "surplus"}, 2, {"surplus", "tasks --help"});
  check_refused({"--verson"}, 2, {"--verson", "--version"});
}

TEST_CASE("Values that are missing, repeated, no numbers or out of range are refused") {
  const Words bench = {"bench", "--seconds"};
  const auto with = [](Words line, const Words& more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  check_refused(bench, 2, {"--seconds", "needs a value"});
  check_refused(with(bench, {"1", "--seconds", "2"}), 2, {"--seconds", "once"});
  check_refused(with(bench, {"soon"}), 2, {"--seconds", "soon"});
  check_refused(with(bench, {"nan"}), 2, {"--seconds", "nan"});
  check_refused(with(bench, {"inf"}), 2, {"--seconds", "inf"});
  check_refused(with(bench, {"1e999"}), 2, {"--seconds", "1e999"});
  check_refused(with(bench, {"1x"}), 2, {"--seconds", "1x"});
  check_refused({"bench", "--seconds=-1"}, 2, {"--seconds", "-1", "0"});
  check_refused({"evaluate", "--seeds", "0"}, 2, {"--seeds", "1"});
  check_refused({"evaluate", "--seeds", "2.5"}, 2, {"--seeds", "2.5", "whole"});
  check_refused({"evaluate", "--seeds", "99999999999999999999"}, 2, {"--seeds", "9999"});
  check_refused({"evaluate", "--seeds", ""}, 2, {"--seeds"});
  check_refused({"evaluate", "--tasks", "a,,b"}, 2, {"--tasks", "a,,b"});
  check_refused({"evaluate", "--tasks", "chainmm(n=4"}, 2, {"--tasks", "chainmm(n=4"});
  check_refused({"assign", "--task", "chainmm@p100x4"}, 2, {"--agent", "required"});
}

}  // namespace
}  // namespace doppler::testing
