// How far a training of the paper's policies is: everything that an update changes but the
// networks.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "agents/training.h"

namespace doppler {

// What is known of a task.
struct PaperTaskRecord {
  Assignment best = {};
  double best_makespan = std::numeric_limits<double>::infinity();  // seconds
  bool measured = false;
  double reward_sum = 0;  // of all episodes of stage II
  std::int64_t n_rewards = 0;
  std::optional<Assignment> taught = std::nullopt;  // by a teacher without steps
};

struct PaperProgress {
  std::size_t stage_index = 0;      // in the run's stages
  std::int64_t stage_episodes = 0;  // of that stage that are done
  TrainProgress shown = {};
  std::vector<PaperTaskRecord> tasks = {};

  [[nodiscard]] nlohmann::json json() const;
  // Of json(), bit for bit. Throws nlohmann::json::exception for anything else.
  static PaperProgress parse(const nlohmann::json& json);
};

}  // namespace doppler
