// How far a run by REINFORCE is: everything that an update changes but the networks.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "agents/training.h"

namespace doppler {

// What is known of a task.
struct TaskRecord {
  Assignment best = {};
  double best_makespan = std::numeric_limits<double>::infinity();  // seconds
  bool measured = false;
  double reward_sum = 0;  // of all episodes of the stage
  std::int64_t n_rewards = 0;
  std::vector<double> return_sums = {};             // the same by step, of a policy that refines
  std::optional<Assignment> taught = std::nullopt;  // by a teacher without steps
  // Of stage III, which begins with reward sums of its own.
  std::int64_t n_executions = 0;
  Assignment best_executed = {};
  double best_cost = std::numeric_limits<double>::infinity();  // seconds, ExecutionResult::cost
};

struct ReinforceProgress {
  std::size_t stage_index = 0;      // in the run's stages
  std::int64_t stage_episodes = 0;  // of that stage that are done
  TrainProgress shown = {};
  std::vector<TaskRecord> tasks = {};

  [[nodiscard]] nlohmann::json json() const;
  // Of json(), bit for bit. Throws nlohmann::json::exception for anything else.
  static ReinforceProgress parse(const nlohmann::json& json);
};

}  // namespace doppler
