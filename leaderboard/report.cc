#include "leaderboard/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graphs/hash.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

// Instants of a schedule are whole parts of its makespan: enough for a picture.
constexpr double kParts = 100'000;

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

// Tasks of the report, each built once.
class Scheduler {
 public:
  Json schedule(const SuiteTask& suite_task, const SubmissionRun& run) {
    if (suite_task.has_luck() || suite_task.n_nodes > kMostScheduledNodes) return nullptr;
    Simulator& simulator = simulator_of(suite_task);
    const Execution execution = simulator.run(run.assignment);
    if (!std::isfinite(execution.makespan) || execution.makespan <= 0) return nullptr;
    Json starts = Json::array();
    Json ends = Json::array();
    for (const NodeRun& node : execution.nodes) {
      starts.push_back(std::llround(node.start / execution.makespan * kParts));
      ends.push_back(std::llround(node.end / execution.makespan * kParts));
    }
    Json busy = Json::array();
    for (const DeviceUse& device : execution.devices) busy.push_back(device.busy);
    return {{"seed", run.seed},           {"makespan", execution.makespan},
            {"busy", std::move(busy)},    {"device", assignment_json(run.assignment)},
            {"start", std::move(starts)}, {"end", std::move(ends)}};
  }

  // Names of nodes and devices of every task that a schedule was asked for.
  [[nodiscard]] Json graphs() const {
    Json json = Json::object();
    for (const auto& [hash, simulator] : simulators_) {
      Json nodes = Json::array();
      const Graph& graph = simulator.graph();
      for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
        nodes.push_back(graph.name(NodeId(static_cast<std::int64_t>(v))));
      }
      Json devices = Json::array();
      for (const Device& device : simulator.cluster().parts().devices) {
        devices.push_back(device.kind);
      }
      json[hash_text(hash)] = {{"nodes", std::move(nodes)}, {"devices", std::move(devices)}};
    }
    return json;
  }

 private:
  Simulator& simulator_of(const SuiteTask& suite_task) {
    auto place = simulators_.find(suite_task.hash);
    if (place == simulators_.end()) {
      Task task = make_suite_task(suite_task);
      task.options.record_timeline = true;
      place = simulators_.emplace(suite_task.hash, task.simulator()).first;
    }
    return place->second;
  }

  std::map<std::uint64_t, Simulator> simulators_;
};

Json row_json(const Suite& suite, const VerifiedRow& verified, Scheduler& scheduler) {
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
                      {"curve", curve_json(run.curve)}});
    }
    tasks.push_back({{"task", task.name},
                     {"runs", std::move(runs)},
                     {"schedule", scheduler.schedule(suite.task(task.name), best_run(task))}});
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
                 const BootstrapOptions& options, const std::string& code_version) {
  Json json = leaderboard_json(rankings, rows, options, code_version);
  Scheduler scheduler;
  Json list = Json::array();
  for (const SuiteRanking& ranking : rankings) {
    for (const VerifiedRow& row : rows.verified) {
      if (row.row.suite == ranking.suite.name) {
        list.push_back(row_json(ranking.suite, row, scheduler));
      }
    }
  }
  json["schedule_parts"] = kParts;
  json["rows"] = std::move(list);
  json["graphs"] = scheduler.graphs();
  return json;
}

}  // namespace doppler
