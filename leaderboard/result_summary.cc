#include "leaderboard/result_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "graphs/error.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json summary_json(const ResultSummary& summary) {
  Json makespans = Json::array();
  Json seeds = Json::array();
  for (const ResultRow* row : summary.rows) {
    makespans.push_back(number_or_null(row->makespan));
    seeds.push_back(row->key.seed);
  }
  return {{"task", summary.task},
          {"agent", summary.agent},
          {"max_evaluations", summary.max_evaluations},
          {"max_seconds", number_or_null(summary.max_seconds)},
          {"median", number_or_null(summary.median_makespan)},
          {"least", number_or_null(summary.least_makespan)},
          {"largest", number_or_null(summary.largest_makespan)},
          {"over_best", or_null(summary.over_best)},
          {"over_bound", or_null(summary.over_bound)},
          {"lower_bound", summary.lower_bound},
          {"evaluations", summary.median_evaluations},
          {"seconds", summary.median_seconds},
          {"seeds", std::move(seeds)},
          {"makespans", std::move(makespans)}};
}

// The share by which a value exceeds `least`; nothing where that means nothing.
std::optional<double> excess(double value, double least) {
  if (!std::isfinite(value) || !(least > 0) || !std::isfinite(least)) return std::nullopt;
  return value / least - 1;
}

void sum_up(ResultSummary& summary, double best) {
  std::sort(summary.rows.begin(), summary.rows.end(),
            [](const ResultRow* a, const ResultRow* b) { return a->key.seed < b->key.seed; });
  std::vector<double> makespans;
  std::vector<double> evaluations;
  std::vector<double> seconds;
  for (const ResultRow* row : summary.rows) {
    makespans.push_back(row->makespan);
    evaluations.push_back(static_cast<double>(row->evaluations));
    seconds.push_back(row->seconds);
  }
  const auto [least, largest] = std::minmax_element(makespans.begin(), makespans.end());
  summary.least_makespan = *least;
  summary.largest_makespan = *largest;
  summary.median_makespan = median(makespans);
  summary.median_evaluations = median(evaluations);
  summary.median_seconds = median(seconds);
  summary.lower_bound = summary.rows.front()->lower_bound;
  summary.over_best = excess(summary.median_makespan, best);
  summary.over_bound = excess(summary.median_makespan, summary.lower_bound);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] / 2 + values[middle] / 2;
}

std::vector<ResultSummary> summarise(std::span<const ResultRow> rows) {
  std::map<std::tuple<std::string, std::int64_t, double, std::string>, ResultSummary> groups;
  std::map<std::string, double> best;  // by task
  for (const ResultRow& row : rows) {
    const ResultKey& key = row.key;
    ResultSummary& group =
        groups[{key.task_text(), key.max_evaluations, key.max_seconds, key.agent}];
    for (const ResultRow* other : group.rows) {
      if (other->key.seed != key.seed) continue;
      throw InvalidError("two rows are of task '" + key.task_text() + "', agent '" + key.agent +
                         "', seed " + std::to_string(key.seed) + " and " +
                         std::to_string(key.max_evaluations) + " evaluations; keep one of them");
    }
    group.task = key.task_text();
    group.agent = key.agent;
    group.max_evaluations = key.max_evaluations;
    group.max_seconds = key.max_seconds;
    group.rows.push_back(&row);
    const auto [place, is_new] = best.emplace(group.task, row.makespan);
    if (!is_new) place->second = std::min(place->second, row.makespan);
  }
  std::vector<ResultSummary> summaries;
  for (auto& [key, group] : groups) {
    sum_up(group, best.at(group.task));
    summaries.push_back(std::move(group));
  }
  std::stable_sort(summaries.begin(), summaries.end(),
                   [](const ResultSummary& a, const ResultSummary& b) {
                     return std::tie(a.task, a.max_evaluations, a.max_seconds, a.median_makespan) <
                            std::tie(b.task, b.max_evaluations, b.max_seconds, b.median_makespan);
                   });
  return summaries;
}

Json table_json(std::size_t n_rows, std::span<const ResultSummary> summaries) {
  Json list = Json::array();
  for (const ResultSummary& summary : summaries) list.push_back(summary_json(summary));
  return {{"rows", n_rows}, {"summaries", std::move(list)}};
}

}  // namespace doppler
