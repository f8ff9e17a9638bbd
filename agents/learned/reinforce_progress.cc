#include "agents/learned/reinforce_progress.h"

#include <cmath>
#include <string>
#include <utility>

namespace doppler {

namespace {

using Json = nlohmann::json;

std::vector<std::int32_t> numbers_of(const Assignment& assignment) {
  std::vector<std::int32_t> numbers;
  for (DeviceId device : assignment.devices) numbers.push_back(device.value);
  return numbers;
}

Assignment assignment_of(const Json& numbers) {
  Assignment assignment;
  for (const Json& number : numbers) assignment.devices.emplace_back(number.get<std::int64_t>());
  return assignment;
}

Json json_of(const TaskRecord& task) {
  Json json = {{"reward_sum", task.reward_sum},
               {"n_rewards", task.n_rewards},
               {"measured", task.measured},
               {"best", numbers_of(task.best)}};
  // JSON has no infinity.
  if (!std::isinf(task.best_makespan)) json["best_makespan"] = task.best_makespan;
  if (!task.return_sums.empty()) json["return_sums"] = task.return_sums;
  if (task.n_executions > 0) {
    json["executions"] = task.n_executions;
    json["best_executed"] = numbers_of(task.best_executed);
    json["best_cost"] = task.best_cost;
  }
  if (task.taught) json["taught"] = numbers_of(*task.taught);
  return json;
}

TaskRecord record_of(const Json& json) {
  TaskRecord task;
  task.reward_sum = json.at("reward_sum").get<double>();
  task.n_rewards = json.at("n_rewards").get<std::int64_t>();
  task.measured = json.at("measured").get<bool>();
  task.best = assignment_of(json.at("best"));
  if (json.contains("best_makespan")) task.best_makespan = json.at("best_makespan").get<double>();
  if (json.contains("return_sums")) {
    task.return_sums = json.at("return_sums").get<std::vector<double>>();
  }
  if (json.contains("executions")) {
    task.n_executions = json.at("executions").get<std::int64_t>();
    task.best_executed = assignment_of(json.at("best_executed"));
    task.best_cost = json.at("best_cost").get<double>();
  }
  if (json.contains("taught")) task.taught = assignment_of(json.at("taught"));
  return task;
}

}  // namespace

Json ReinforceProgress::json() const {
  Json values = Json::array();
  for (const auto& [name, value] : shown.values) values.push_back({name, value});
  Json records = Json::array();
  for (const TaskRecord& task : tasks) records.push_back(json_of(task));
  return {{"stage_index", stage_index},
          {"stage_episodes", stage_episodes},
          {"stage", shown.stage},
          {"updates", shown.updates},
          {"episodes", shown.episodes},
          {"evaluations", shown.evaluations},
          {"share", shown.share},
          {"values", values},
          {"tasks", records}};
}

ReinforceProgress ReinforceProgress::parse(const Json& json) {
  ReinforceProgress progress;
  progress.stage_index = json.at("stage_index").get<std::size_t>();
  progress.stage_episodes = json.at("stage_episodes").get<std::int64_t>();
  progress.shown = {.stage = json.at("stage").get<int>(),
                    .updates = json.at("updates").get<std::int64_t>(),
                    .episodes = json.at("episodes").get<std::int64_t>(),
                    .evaluations = json.at("evaluations").get<std::int64_t>(),
                    .share = json.at("share").get<double>()};
  for (const Json& value : json.at("values")) {
    progress.shown.values.emplace_back(value.at(0).get<std::string>(), value.at(1).get<double>());
  }
  for (const Json& record : json.at("tasks")) {
    progress.tasks.push_back(record_of(record));
    progress.shown.executions += progress.tasks.back().n_executions;
  }
  if (!progress.tasks.empty()) progress.shown.best_makespan = progress.tasks[0].best_makespan;
  return progress;
}

}  // namespace doppler
