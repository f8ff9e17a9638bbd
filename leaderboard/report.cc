#include "leaderboard/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "graphs/hash.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

const SubmissionRun& best_run(const SubmissionTask& task) {
  return *std::min_element(task.runs.begin(), task.runs.end(),
                           [](const SubmissionRun& a, const SubmissionRun& b) {
                             return mean_of(a.makespans) < mean_of(b.makespans);
                           });
}

// At most so many points, the first and the last among them, six digits each.
Json thinned_curve(const std::vector<Improvement>& curve, std::size_t max_points) {
  std::vector<Improvement> kept;
  const std::size_t n = std::min(curve.size(), std::max<std::size_t>(max_points, 2));
  for (std::size_t i = 0; i < n; ++i) {
    Improvement point = curve[n == 1 ? 0 : i * (curve.size() - 1) / (n - 1)];
    point.seconds = rounded(point.seconds);
    point.makespan = rounded(point.makespan);
    kept.push_back(point);
  }
  return curve_json(kept);
}

Json row_json(const Suite& suite, const VerifiedRow& verified, const Timelines& timelines,
              const ReportLimits& limits) {
  const Submission& row = verified.row;
  Json tasks = Json::array();
  for (const SubmissionTask& task : row.tasks) {
    Json runs = Json::array();
    for (const SubmissionRun& run : task.runs) {
      Json makespans = Json::array();
      for (const double makespan : run.makespans) {
        makespans.push_back(std::isfinite(makespan) ? Json(makespan) : Json(nullptr));
      }
      runs.push_back({{"seed", run.seed},
                      {"assignment_hash", hash_text(run.assignment.hash())},
                      {"makespans", std::move(makespans)},
                      {"evaluations", run.evaluations},
                      {"seconds", run.seconds},
                      {"curve", thinned_curve(run.curve, limits.max_curve_points)}});
    }
    const SubmissionRun& best = best_run(task);
    Json timeline = timelines.key(suite, suite.task(task.name), best);
    Json schedule = nullptr;
    if (!timeline.is_null()) schedule = {{"seed", best.seed}, {"timeline", std::move(timeline)}};
    tasks.push_back(
        {{"task", task.name}, {"runs", std::move(runs)}, {"schedule", std::move(schedule)}});
  }
  return {{"file", verified.file},
          {"suite", row.suite},
          {"tier", row.tier},
          {"agent", row.agent},
          {"kind", row.kind},
          {"parameters", parameters_json(row.parameters)},
          {"hardware", hardware_json(row.hardware)},
          {"tasks", std::move(tasks)}};
}

// The rows of a suite, each once, those first that are best in some tier, the largest tier first.
std::vector<const VerifiedRow*> by_best_place(const SuiteRanking& ranking) {
  std::size_t n_places = 0;
  for (const TierRanking& tier : ranking.tiers) n_places = std::max(n_places, tier.entries.size());
  std::vector<const VerifiedRow*> rows;
  std::set<const VerifiedRow*> seen;
  for (std::size_t place = 0; place < n_places; ++place) {
    for (auto tier = ranking.tiers.rbegin(); tier != ranking.tiers.rend(); ++tier) {
      if (place < tier->entries.size() && seen.insert(tier->entries[place].row).second) {
        rows.push_back(tier->entries[place].row);
      }
    }
  }
  return rows;
}

// The suites in turns, so that none takes all that there is.
Timelines timelines_of(std::span<const SuiteRanking> rankings, const TimelineLimits& limits) {
  Timelines timelines(limits);
  std::vector<std::vector<const VerifiedRow*>> rows;
  std::size_t n_most = 0;
  for (const SuiteRanking& ranking : rankings) {
    rows.push_back(by_best_place(ranking));
    n_most = std::max(n_most, rows.back().size());
  }
  for (std::size_t i = 0; i < n_most; ++i) {
    for (std::size_t r = 0; r < rankings.size(); ++r) {
      if (i >= rows[r].size()) continue;
      for (const SubmissionTask& task : rows[r][i]->row.tasks) {
        const Suite& suite = rankings[r].suite;
        timelines.add(suite, suite.task(task.name), best_run(task));
      }
    }
  }
  return timelines;
}

}  // namespace

std::vector<SuiteRanking> rank_all(std::span<const Suite> suites, const LeaderboardRows& rows,
                                   const BootstrapOptions& options) {
  std::vector<SuiteRanking> rankings;
  for (const Suite& suite : suites) {
    const bool has_rows =
        std::any_of(rows.verified.begin(), rows.verified.end(),
                    [&](const VerifiedRow& row) { return row.row.suite == suite.name; });
    if (has_rows) rankings.push_back(rank(suite, rows.verified, options));
  }
  return rankings;
}

Json leaderboard_json(std::span<const SuiteRanking> rankings, const LeaderboardRows& rows,
                      const BootstrapOptions& options, const std::string& code_version) {
  Json suites = Json::array();
  for (const SuiteRanking& ranking : rankings) suites.push_back(ranking_json(ranking));
  Json refused = Json::array();
  for (const RefusedSubmission& row : rows.refused) {
    refused.push_back({{"file", row.file}, {"faults", row.faults}});
  }
  Json failed = Json::array();
  for (const FailedSubmission& row : rows.failed) {
    failed.push_back({{"suite", row.suite},
                      {"agent", row.agent},
                      {"kind", row.kind},
                      {"tier", row.tier},
                      {"task", row.task},
                      {"reason", row.reason}});
  }
  return {{"format", "doppler-leaderboard"},
          {"version", 1},
          {"code_version", code_version},
          {"ranking_metric", kRankingMetric},
          {"lower_is_better", true},
          {"confidence", options.confidence},
          {"bootstrap_samples", options.n_samples},
          {"saturation", kSaturation},
          {"out_of_memory_score", kOutOfMemoryScore},
          {"suites", std::move(suites)},
          {"refused", std::move(refused)},
          {"failed", std::move(failed)}};
}

Json report_json(std::span<const SuiteRanking> rankings, const LeaderboardRows& rows,
                 const BootstrapOptions& options, const std::string& code_version,
                 const ReportLimits& limits) {
  Json json = leaderboard_json(rankings, rows, options, code_version);
  const Timelines timelines = timelines_of(rankings, limits.timelines);
  Json list = Json::array();
  for (const SuiteRanking& ranking : rankings) {
    for (const VerifiedRow& row : rows.verified) {
      if (row.row.suite == ranking.suite.name) {
        list.push_back(row_json(ranking.suite, row, timelines, limits));
      }
    }
  }
  json["rows"] = std::move(list);
  json["schedules"] = {{"parts", Timelines::kParts},
                       {"max_nodes_of_one", limits.timelines.max_nodes_of_one},
                       {"max_nodes", limits.timelines.max_nodes},
                       {"left_out", timelines.n_left_out()}};
  json["graphs"] = timelines.graphs();
  json["timelines"] = timelines.timelines();
  return json;
}

}  // namespace doppler
