// A submission, a row of the leaderboard: what one agent found on every task of a suite within one
// tier, with the assignments themselves, so that anyone can run them again. One JSON file each
// (docs/leaderboard.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.h"
#include "graphs/assignment.h"
#include "graphs/registry.h"
#include "leaderboard/hardware.h"
#include "leaderboard/suite.h"

namespace doppler {

// What an agent decided for one task with one seed.
struct SubmissionRun {
  std::uint64_t seed = 0;
  Assignment assignment = {};
  std::vector<double> makespans = {};      // seconds, one an execution; infinity: out of memory
  std::int64_t evaluations = 0;            // runs of the engine that were used
  double seconds = 0;                      // to decide
  std::vector<Improvement> curve = {};     // as the agent measured it, by its own luck
  std::vector<double> critical_path = {};  // real engine: critical-path, executed in between
  friend bool operator==(const SubmissionRun&, const SubmissionRun&) = default;
};

struct SubmissionTask {
  std::string name = {};  // SuiteTask::name
  std::uint64_t hash = 0;
  std::vector<SubmissionRun> runs = {};  // by the suite's seeds
  friend bool operator==(const SubmissionTask&, const SubmissionTask&) = default;
};

// A task that an agent was trained on beforehand.
struct TrainingTask {
  std::string name = {};
  std::uint64_t graph_hash = 0;
  std::uint64_t cluster_hash = 0;
  friend bool operator==(const TrainingTask&, const TrainingTask&) = default;
};

// What the agent had learnt before it met the suite; empty: nothing.
struct Training {
  std::vector<TrainingTask> tasks = {};
  std::int64_t evaluations = 0;
  double seconds = 0;
  bool on_suite_tasks = false;  // the row says that tasks of the suite are among them

  [[nodiscard]] bool is_empty() const { return tasks.empty() && evaluations == 0; }
  friend bool operator==(const Training&, const Training&) = default;
};

struct Submission {
  std::string suite = {};
  std::int64_t revision = 1;
  std::int64_t tier = 1;  // Tier::evaluations
  std::string agent = {};
  std::string kind = {};  // "heuristic", "search", "learned", "other"
  std::map<std::string, ParameterValue> parameters = {};
  std::vector<std::string> authors = {};
  std::string link = {};
  std::string note = {};
  std::string code_version = {};
  std::string command = {};
  Hardware hardware = {};
  Training training = {};
  std::vector<SubmissionTask> tasks = {};

  // Of the row's file below the folder of rows: "SUITE/AGENT--TIER--DIGEST.json".
  [[nodiscard]] std::string file_name() const;
  friend bool operator==(const Submission&, const Submission&) = default;
};

// Kinds of agents that a row may name.
const std::vector<std::string>& submission_kinds();

// Throw UsageError for a kind that rows may not name, or an address that a page may not link to:
// one that does not begin with https:// or http://. An empty address is none.
void check_kind(const std::string& kind);
void check_link(const std::string& link);
// Throws UsageError for a name, an author, a link or a note that is too long for a table (200, 200,
// 2,000 and 10,000 bytes) or has control characters; a note may have lines.
void check_texts(const Submission& row);

// Whether a file holds what follows from the assignments: hashes, makespans, curves.
enum class Completeness { complete, draft };

// read(write(row)) == row. A draft may leave out revision, task_hash, assignment_hash, makespans,
// curve, code_version, command, hardware, parameters, authors, link, note and training. Throws
// ParseError that names `source` and the place.
Submission parse_submission(std::string_view content, const std::string& source,
                            Completeness completeness = Completeness::complete);
std::string to_json(const Submission& submission);

// The parts of the format that are used by themselves.
nlohmann::ordered_json training_json(const Training& training);
Training training_of(const JsonElement& element);
nlohmann::ordered_json run_json(const SubmissionRun& run);
SubmissionRun run_of(const JsonElement& element, Completeness completeness);

}  // namespace doppler
