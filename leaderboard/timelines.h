// Schedules for pictures: where and when the nodes of a row's best decision ran. What they take of
// a report is bounded.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler {

struct TimelineLimits {
  std::int64_t max_nodes_of_one = 5000;  // larger graphs have none
  std::int64_t max_nodes = 400'000;      // of all timelines together; about 16 bytes each
};

// The simulator's schedules of decisions, each kept once, tasks built once. For one thread.
class Timelines {
 public:
  // Instants are whole parts of the makespan: enough for a picture.
  static constexpr std::int64_t kParts = 100'000;

  explicit Timelines(const TimelineLimits& limits = {}) : limits_(limits) {}

  // Keeps the schedule of the run's first execution; on tasks with luck by the luck of the suite's
  // `first_luck`. The simulator's also where the suite has a real engine. None is kept for graphs
  // beyond the limits, or what is out of memory.
  void add(const Suite& suite, const SuiteTask& task, const SubmissionRun& run);

  // The key of a run's timeline in `timelines`, or null if none was kept.
  [[nodiscard]] nlohmann::ordered_json key(const Suite& suite, const SuiteTask& task,
                                           const SubmissionRun& run) const;

  // {KEY: {"makespan": seconds, "busy": [seconds by device], "device": [by node],
  //        "start": [parts by node], "end": [parts by node]}}
  [[nodiscard]] nlohmann::ordered_json timelines() const { return timelines_; }
  // {TASK HASH: {"nodes": [names], "kinds": [names], "kind": [index by node],
  //              "devices": [kinds]}} of the tasks that have timelines.
  [[nodiscard]] nlohmann::ordered_json graphs() const { return graphs_; }
  // Schedules that were left out for `max_nodes`.
  [[nodiscard]] std::int64_t n_left_out() const { return n_left_out_; }

 private:
  Simulator& simulator_of(const SuiteTask& task);

  TimelineLimits limits_;
  std::int64_t n_nodes_ = 0;
  std::int64_t n_left_out_ = 0;
  std::map<std::uint64_t, Simulator> simulators_;  // by SuiteTask::hash
  std::map<std::string, nlohmann::ordered_json> timelines_;
  std::map<std::string, nlohmann::ordered_json> graphs_;
};

}  // namespace doppler
