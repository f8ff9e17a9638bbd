#include "leaderboard/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "graphs/error.h"

namespace doppler {
namespace {

using Rows = std::span<const VerifiedRow* const>;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double score_of(const SuiteTask& task, const SubmissionRun& run) {
  const double makespan = mean_of(run.makespans);
  const double reference = task.critical_path.value_or(
      run.critical_path.empty() ? makespan : mean_of(run.critical_path));
  if (!std::isfinite(makespan) || !(reference > 0)) return kOutOfMemoryScore;
  return std::min(makespan / reference, kOutOfMemoryScore);
}

std::vector<double> scores_of(const SuiteTask& task, const SubmissionTask& results) {
  std::vector<double> scores;
  for (const SubmissionRun& run : results.runs) scores.push_back(score_of(task, run));
  return scores;
}

const SubmissionTask* results_of(const Submission& row, const std::string& task) {
  for (const SubmissionTask& results : row.tasks) {
    if (results.name == task) return &results;
  }
  return nullptr;
}

std::optional<BestDecision> best_known(const SuiteTask& task, Rows rows) {
  std::optional<BestDecision> best;
  for (const VerifiedRow* row : rows) {
    const SubmissionTask* results = results_of(row->row, task.name);
    if (results == nullptr) continue;
    for (const SubmissionRun& run : results->runs) {
      const double score = score_of(task, run);
      if (best && score >= best->score) continue;
      best = BestDecision{task.name, score, mean_of(run.makespans), row, run.seed};
    }
  }
  return best;
}

Headroom headroom_of(const SuiteTask& task, std::int64_t tier, Rows rows,
                     const std::optional<BestDecision>& best) {
  Headroom result{.task = task.name, .counts = task.exempt.empty()};
  double least = std::numeric_limits<double>::infinity();
  for (const VerifiedRow* row : rows) {
    const SubmissionTask* results = results_of(row->row, task.name);
    if (results == nullptr || row->row.tier > tier || !row->row.training.is_empty()) {
      continue;
    }
    const double score = mean_of(scores_of(task, *results));
    if (score >= least) continue;
    least = score;
    result.untaught = row;
  }
  if (best && result.untaught != nullptr && best->score > 0) {
    result.headroom = least / best->score - 1;
    result.saturated = *result.headroom < kSaturation;
  }
  result.counts = result.counts && !result.saturated;
  return result;
}

TaskScore task_score(const SuiteTask& task, const SubmissionTask& results,
                     const BootstrapOptions& options) {
  TaskScore score{.task = task.name};
  std::vector<double> makespans;
  std::vector<double> evaluations;
  std::vector<double> seconds;
  for (const SubmissionRun& run : results.runs) {
    makespans.push_back(mean_of(run.makespans));
    evaluations.push_back(static_cast<double>(run.evaluations));
    seconds.push_back(run.seconds);
  }
  score.makespan = mean_interval(makespans, options);
  score.ratio = mean_interval(scores_of(task, results), options);
  if (task.lower_bound > 0 && std::isfinite(score.makespan.value)) {
    score.gap = score.makespan.value / task.lower_bound - 1;
  }
  score.evaluations = mean_of(evaluations);
  score.seconds = mean_of(seconds);
  return score;
}

// The scores of a row on the tasks that count (or on all that every kind has).
ScoreTable score_table(const Suite& suite, const Submission& row,
                       std::span<const Headroom> headroom, bool all) {
  ScoreTable table;
  for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
    const SuiteTask& task = suite.tasks[t];
    if (all ? !task.exempt.empty() : !headroom[t].counts) continue;
    if (const SubmissionTask* results = results_of(row, task.name)) {
      table.push_back(scores_of(task, *results));
    }
  }
  return table;
}

std::optional<double> gap_of(const Suite& suite, const Submission& row,
                             std::span<const Headroom> headroom) {
  std::vector<double> gaps;
  for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
    const SubmissionTask* results = results_of(row, suite.tasks[t].name);
    if (!headroom[t].counts || results == nullptr || !(suite.tasks[t].lower_bound > 0)) continue;
    for (const SubmissionRun& run : results->runs) {
      const double makespan = mean_of(run.makespans);
      if (!std::isfinite(makespan)) return std::nullopt;
      gaps.push_back(makespan / suite.tasks[t].lower_bound - 1);
    }
  }
  if (gaps.empty()) return std::nullopt;
  return interquartile_mean(std::move(gaps));
}

RankEntry entry_of(const Suite& suite, const VerifiedRow& row, std::span<const Headroom> headroom,
                   const BootstrapOptions& options) {
  RankEntry entry{.row = &row};
  const ScoreTable counting = score_table(suite, row.row, headroom, false);
  if (!counting.empty()) entry.score = interquartile_mean_interval(counting, options);
  entry.score_of_all =
      interquartile_mean_interval(score_table(suite, row.row, headroom, true), options);
  entry.gap = gap_of(suite, row.row, headroom);
  std::vector<double> evaluations;
  std::vector<double> seconds;
  for (const SuiteTask& task : suite.tasks) {
    const SubmissionTask* results = results_of(row.row, task.name);
    if (results == nullptr) continue;
    entry.tasks.push_back(task_score(task, *results, options));
    evaluations.push_back(entry.tasks.back().evaluations);
    seconds.push_back(entry.tasks.back().seconds);
  }
  entry.evaluations = mean_of(evaluations);
  entry.seconds = mean_of(seconds);
  if (!entry.score) {
    entry.unranked = "every task is saturated in this tier";
  } else if (suite.training.held_out && row.row.training.on_suite_tasks) {
    entry.unranked = "trained on tasks of the suite, which are held out";
  }
  return entry;
}

// The rows that stand for their agents in a tier: of each the one of the largest tier up to it.
std::vector<const VerifiedRow*> rows_of_tier(std::int64_t tier, Rows rows) {
  std::map<std::pair<std::string, std::vector<std::string>>, const VerifiedRow*> chosen;
  for (const VerifiedRow* row : rows) {
    if (row->row.tier > tier) continue;
    const VerifiedRow*& slot = chosen[{row->row.agent, row->row.authors}];
    if (slot == nullptr || slot->row.tier < row->row.tier) slot = row;
  }
  std::vector<const VerifiedRow*> result;
  for (const auto& [agent, row] : chosen) result.push_back(row);
  return result;
}

void set_ranks(std::vector<RankEntry>& entries) {
  for (RankEntry& entry : entries) {
    if (!entry.unranked.empty()) continue;
    entry.rank = 1 + std::count_if(entries.begin(), entries.end(), [&](const RankEntry& other) {
                   return other.unranked.empty() && other.score->high < entry.score->low;
                 });
  }
  const auto key = [](const RankEntry& entry) {
    return std::make_tuple(entry.rank.value_or(std::numeric_limits<std::int64_t>::max()),
                           entry.score.value_or(entry.score_of_all).value, entry.row->row.agent);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const RankEntry& a, const RankEntry& b) { return key(a) < key(b); });
}

std::vector<std::vector<double>> improvements(const Suite& suite, const TierRanking& ranking) {
  std::vector<ScoreTable> tables;
  for (const RankEntry& entry : ranking.entries) {
    tables.push_back(score_table(suite, entry.row->row, ranking.headroom, false));
  }
  std::vector<std::vector<double>> result;
  if (tables.empty() || tables.front().empty()) return result;
  for (const ScoreTable& x : tables) {
    result.emplace_back();
    for (const ScoreTable& y : tables) result.back().push_back(probability_of_improvement(x, y));
  }
  return result;
}

void check_keys(Rows rows) {
  std::map<std::tuple<std::string, std::vector<std::string>, std::int64_t>, std::string> files;
  for (const VerifiedRow* row : rows) {
    const auto [place, is_new] =
        files.emplace(std::make_tuple(row->row.agent, row->row.authors, row->row.tier), row->file);
    if (is_new) continue;
    throw InvalidError("two rows are of agent '" + row->row.agent + "' in the tier of " +
                       std::to_string(row->row.tier) + " evaluations: " + place->second + " and " +
                       row->file + "; keep one of them");
  }
}

}  // namespace

SuiteRanking rank(const Suite& suite, std::span<const VerifiedRow> all_rows,
                  const BootstrapOptions& options) {
  std::vector<const VerifiedRow*> rows;
  for (const VerifiedRow& row : all_rows) {
    if (row.row.suite == suite.name) rows.push_back(&row);
  }
  check_keys(rows);
  SuiteRanking ranking{.suite = suite};
  std::vector<std::optional<BestDecision>> best;
  for (const SuiteTask& task : suite.tasks) {
    best.push_back(best_known(task, rows));
    if (best.back()) ranking.best.push_back(*best.back());
  }
  for (const Tier& tier : suite.tiers) {
    TierRanking tier_ranking{.tier = tier};
    for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
      tier_ranking.headroom.push_back(headroom_of(suite.tasks[t], tier.evaluations, rows, best[t]));
    }
    for (const VerifiedRow* row : rows_of_tier(tier.evaluations, rows)) {
      tier_ranking.entries.push_back(entry_of(suite, *row, tier_ranking.headroom, options));
    }
    set_ranks(tier_ranking.entries);
    tier_ranking.improvement = improvements(suite, tier_ranking);
    ranking.tiers.push_back(std::move(tier_ranking));
  }
  return ranking;
}

}  // namespace doppler
