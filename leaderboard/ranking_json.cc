// A ranking as JSON: what `rank --json` prints and the report holds.
#include <cmath>
#include <nlohmann/json.hpp>

#include "graphs/hash.h"
#include "leaderboard/ranking.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json interval_json(const Interval& interval) {
  return {{"value", number(interval.value)},
          {"low", number(interval.low)},
          {"high", number(interval.high)}};
}

Json suite_task_json(const SuiteTask& task, const SuiteRanking& ranking) {
  Json json = {{"name", task.name},
               {"task", task.task},
               {"nodes", task.n_nodes},
               {"devices", task.n_devices},
               {"noise", task.settings.noise.value_or(0)},
               {"raw_costs", task.raw_costs},
               {"hash", hash_text(task.hash)},
               {"lower_bound", task.lower_bound},
               {"critical_path", or_null(task.critical_path)},
               {"exempt", task.exempt},
               {"best_known", nullptr}};
  for (const BestDecision& best : ranking.best) {
    if (best.task != task.name) continue;
    json["best_known"] = {
        {"makespan", number(best.makespan)}, {"ratio", best.score}, {"agent", best.row->row.agent},
        {"tier", best.row->row.tier},        {"seed", best.seed},   {"file", best.row->file}};
  }
  return json;
}

Json headroom_json(const Headroom& headroom) {
  return {{"task", headroom.task},
          {"headroom", or_null(headroom.headroom)},
          {"best_untaught",
           headroom.untaught != nullptr ? Json(headroom.untaught->row.agent) : Json(nullptr)},
          {"saturated", headroom.saturated},
          {"counts", headroom.counts}};
}

Json task_score_json(const TaskScore& score) {
  return {{"task", score.task},
          {"makespan", interval_json(score.makespan)},
          {"ratio", interval_json(score.ratio)},
          {"gap", or_null(score.gap)},
          {"evaluations", score.evaluations},
          {"seconds", score.seconds}};
}

Json entry_json(const RankEntry& entry) {
  const Submission& row = entry.row->row;
  Json tasks = Json::array();
  for (const TaskScore& score : entry.tasks) tasks.push_back(task_score_json(score));
  Json trained = Json::array();
  for (const TrainingTask& task : row.training.tasks) trained.push_back(task.name);
  return {{"rank", or_null(entry.rank)},
          {"agent", row.agent},
          {"kind", row.kind},
          {"file", entry.row->file},
          {"row_tier", row.tier},
          {"score", entry.score ? interval_json(*entry.score) : Json(nullptr)},
          {"score_of_all", interval_json(entry.score_of_all)},
          {"gap", or_null(entry.gap)},
          {"evaluations", entry.evaluations},
          {"seconds", entry.seconds},
          {"unranked", entry.unranked},
          {"authors", row.authors},
          {"link", row.link},
          {"note", row.note},
          {"code_version", row.code_version},
          {"command", row.command},
          {"training",
           {{"tasks", std::move(trained)},
            {"evaluations", row.training.evaluations},
            {"seconds", row.training.seconds},
            {"on_suite_tasks", row.training.on_suite_tasks}}},
          {"tasks", std::move(tasks)}};
}

Json tier_json(const TierRanking& ranking) {
  Json headroom = Json::array();
  for (const Headroom& item : ranking.headroom) headroom.push_back(headroom_json(item));
  Json entries = Json::array();
  for (const RankEntry& entry : ranking.entries) entries.push_back(entry_json(entry));
  return {{"evaluations", ranking.tier.evaluations},
          {"seconds", ranking.tier.seconds},
          {"headroom", std::move(headroom)},
          {"ranking", std::move(entries)},
          {"improvement", ranking.improvement}};
}

}  // namespace

Json ranking_json(const SuiteRanking& ranking) {
  const Suite& suite = ranking.suite;
  Json tasks = Json::array();
  for (const SuiteTask& task : suite.tasks) tasks.push_back(suite_task_json(task, ranking));
  Json tiers = Json::array();
  for (const TierRanking& tier : ranking.tiers) tiers.push_back(tier_json(tier));
  return {{"name", suite.name},
          {"revision", suite.revision},
          {"summary", suite.summary},
          {"engine", suite.engine},
          {"seeds", suite.seeds},
          {"runs", suite.n_runs},
          {"first_luck", suite.first_luck},
          {"training",
           {{"max_evaluations", suite.training.max_evaluations},
            {"max_seconds", suite.training.max_seconds},
            {"held_out", suite.training.held_out},
            {"tasks", suite.training.tasks}}},
          {"tasks", std::move(tasks)},
          {"tiers", std::move(tiers)}};
}

}  // namespace doppler
