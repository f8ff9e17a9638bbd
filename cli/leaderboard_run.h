// Rows of the leaderboard made here: every decision in a process of its own, kept as it comes, so
// that a run that was broken off goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leaderboard/isolation.h"
#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler::cli {

struct LeaderboardRun {
  std::string suite = {};                // a name or a file
  std::vector<std::string> agents = {};  // spellings; empty: all of the plugin
  std::vector<std::int64_t> tiers = {};  // empty: all
  std::string rows = {};                 // folder
  std::string plugin = {};               // shared library with agents; empty: none
  std::string training = {};             // what the agents had learnt: a file, or a run's folder
  std::string kind = {};                 // empty: as the registry or the plugin says
  std::vector<std::string> authors = {};
  std::string link = {};
  std::string note = {};
  bool resume = false;
  int jobs = 1;
  IsolationLimits limits = {};
  // Where decisions are made; nothing: this machine.
  std::optional<Hardware> hardware = {};
  std::string command = {};  // what the rows say made them; empty: the command line
  // Starts a process for decisions; empty: this very command. Must be thread safe if jobs > 1.
  std::function<DecisionProcess(std::span<const DecisionKey>)> start = {};
};

// A row that could not be made.
struct FailedRow {
  std::string file = {};  // below the folder of rows, "SUITE/....failed"
  std::string agent = {};
  std::int64_t tier = 0;
  std::string task = {};
  std::uint64_t seed = 0;
  std::string reason = {};
};

struct LeaderboardRunDone {
  std::vector<std::string> made = {};   // files below the folder of rows
  std::vector<std::string> found = {};  // that were there
  std::vector<FailedRow> failed = {};
};

// Makes the rows of every agent and tier; heuristics have the smallest tier only, for they use one
// evaluation. Throws UsageError before anything runs for a row that is there, unless `resume` is
// set. A row that fails does not stop the others; its reason is also kept beside the rows until it
// succeeds.
LeaderboardRunDone run_leaderboard(const LeaderboardRun& run);

// {"tasks": ["ffnn@p100x4", ...], "evaluations": N, "seconds": S}, or the folder of a training run.
Training read_training(const std::string& path, const Suite& suite);

}  // namespace doppler::cli
