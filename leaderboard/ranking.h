// The ranking: verified rows of a suite against each other, each tier by itself.
//
// Score of a decision: the mean of its makespans over the mean of critical-path's on the same task
// (in the simulator the suite's figure, on a real engine the executions in between); out of memory
// is kOutOfMemoryScore. The ranking metric is the interquartile mean of these scores over the tasks
// and seeds, less is better. An agent without a row in a tier is represented by its row of the
// largest smaller tier.
//
// Headroom of a task in a tier: the mean score of the best agent that had learnt nothing
// beforehand, over the best known score of one decision in any row, minus 1. Below kSaturation the
// task is saturated and does not count.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leaderboard/score.h"
#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler {

inline constexpr double kOutOfMemoryScore = 10;
inline constexpr double kSaturation = 0.01;
inline constexpr const char* kRankingMetric = "iqm_ratio_to_critical_path";

// A row that was verified, and its file's name below the folder of rows.
struct VerifiedRow {
  Submission row = {};
  std::string file = {};
};

// The best decision that any row has for a task.
struct BestDecision {
  std::string task = {};
  double score = 0;
  double makespan = 0;  // seconds, the mean over the runs
  const VerifiedRow* row = nullptr;
  std::uint64_t seed = 0;
};

struct Headroom {
  std::string task = {};
  std::optional<double> headroom = {};    // nothing: no row of an agent that had learnt nothing
  const VerifiedRow* untaught = nullptr;  // the best such row
  bool saturated = false;
  bool counts = true;  // in the rank: neither saturated nor exempt for some kind
};

struct TaskScore {
  std::string task = {};
  Interval makespan = {};          // seconds; infinite if a run was out of memory
  Interval ratio = {};             // the score
  std::optional<double> gap = {};  // mean makespan / lower bound - 1; with luck a reference only
  double evaluations = 0;          // used, mean over the seeds
  double seconds = 0;              // to decide, mean over the seeds
};

struct RankEntry {
  const VerifiedRow* row = nullptr;
  std::optional<std::int64_t> rank = {};  // 1 + the entries whose interval lies wholly below
  std::string unranked = {};              // why there is no rank
  std::optional<Interval> score = {};     // the ranking metric; nothing: no task counts
  Interval score_of_all = {};             // the same over saturated tasks, too
  std::optional<double> gap = {};         // interquartile mean of the gaps of what counts
  double evaluations = 0;                 // used, mean over tasks and seeds
  double seconds = 0;                     // to decide, mean over tasks and seeds
  std::vector<TaskScore> tasks = {};
};

struct TierRanking {
  Tier tier = {};
  std::vector<Headroom> headroom = {};  // by the suite's tasks
  std::vector<RankEntry> entries = {};  // by rank, then score
  // improvement[i][j]: the probability that entry i is better than j on the tasks that count.
  std::vector<std::vector<double>> improvement = {};
};

struct SuiteRanking {
  Suite suite = {};
  std::vector<BestDecision> best = {};  // by the suite's tasks that a row has
  std::vector<TierRanking> tiers = {};
};

// Of the verified rows those of the suite. Refers to them. Throws InvalidError for two rows of one
// agent, its authors and tier.
SuiteRanking rank(const Suite& suite, std::span<const VerifiedRow> rows,
                  const BootstrapOptions& options = {});

// The ranking as `rank --json` and the report show it (docs/leaderboard.md).
nlohmann::ordered_json ranking_json(const SuiteRanking& ranking);

}  // namespace doppler
