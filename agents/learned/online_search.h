// Stage III of `doppler`: learning on the system itself, with care.
//
// Runs of the system are few and noisy, so each teaches as much as it can: its timeline corrects
// the cost model (agents/online/system_model.h), stage II's search goes on for a moment on the
// corrected model from the heads that it has come to, and what the search finds joins the
// assignments of which one is run next (agents/online/arms.h). What runs is the incumbent or the
// assignment that promises most; runs that explore are interleaved with runs of the incumbent.
//
// Care: exploring may cost `max_regret` x max_executions runs of the first assignment in all, and a
// run that could exceed that is not made. A failed run costs its penalty and is never repeated. The
// last runs compare the incumbent with the first assignment in turns; the one of the smaller mean
// is the result.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "agents/draws.h"
#include "agents/learned/doppler_network.h"
#include "agents/learned/policy_heads.h"
#include "agents/online/arms.h"
#include "agents/online/executions.h"
#include "agents/online/system_model.h"

namespace doppler {

struct OnlineSearchOptions {
  std::string engine = "cpu";
  std::int64_t max_executions = 500;
  double max_regret = 0.1;
  std::vector<DeviceId> pattern = {};  // that heads are pulled to, and a candidate; empty: none
  std::uint64_t seed = 0;
  // The most that learning may take, as a share of the time of the runs: seconds that they took on
  // a real engine, makespans on a simulator.
  double learning_share = 0.05;
  std::int64_t max_head_evaluations = 1500;  // of one search on the corrected model
  std::int64_t max_moves = 20'000;           // of its best assignments
};

class OnlineSearch {
 public:
  // `network` gives the latents and must outlive the search; `heads` and `start` are what stage II
  // has come to. Throws UsageError for an unknown engine.
  OnlineSearch(std::shared_ptr<const PlacementModel> model, const DopplerNetwork& network,
               std::pair<std::vector<Head>, Assignment> begin, OnlineSearchOptions options);

  // A few runs of the system, after a search on the corrected model if one is due. Returns false,
  // and does nothing, when the runs are used or nothing is left to explore.
  bool update();

  [[nodiscard]] const Assignment& best() const;  // of what was run; see above
  [[nodiscard]] const std::vector<Head>& heads() const { return heads_; }
  [[nodiscard]] std::int64_t n_executions() const { return executions_.n_runs(); }
  [[nodiscard]] double share() const;  // of the runs that are made
  [[nodiscard]] double best_mean() const;
  // For the metrics.
  [[nodiscard]] std::vector<std::pair<std::string, double>> values() const;

  [[nodiscard]] nlohmann::json state() const;
  void restore(const nlohmann::json& state);  // requires state() of an equal search

 private:
  void run(std::size_t arm);
  void plan();
  // Whether there was time for a search.
  bool find_candidates(const std::shared_ptr<const PlacementModel>& corrected);
  void improve(const std::shared_ptr<const PlacementModel>& corrected, const Assignment& from,
               std::int64_t n_moves);
  [[nodiscard]] std::size_t choose() const;
  [[nodiscard]] bool may_explore(std::size_t arm) const;
  [[nodiscard]] double allowed_regret() const;
  [[nodiscard]] std::int64_t n_last_runs() const;
  [[nodiscard]] double learning_left() const;

  std::shared_ptr<const PlacementModel> model_;
  const DopplerNetwork* network_;
  OnlineSearchOptions options_;
  Executions executions_;
  bool virtual_time_;
  SystemModel system_;
  std::vector<Head> heads_;
  Arms arms_;
  Draws draws_;
  std::size_t incumbent_ = 0;
  std::int64_t next_plan_ = 0;          // runs after which a search is due
  std::int64_t n_idle_ = 0;             // searches in a row after which nothing was explored
  std::int64_t n_explored_ = 0;         // runs that were not the incumbent's
  std::int64_t n_explored_before_ = 0;  // the last search
  std::int64_t n_failures_ = 0;
  std::int64_t n_last_ = -1;  // runs of the final comparison that are made; -1: not begun
  bool over_ = false;
  double regret_ = 0;  // seconds
  double last_makespan_ = 0;
  double executing_seconds_ = 0;  // of the runs
  double planned_seconds_ = 0;    // that learning should have taken
  double learning_seconds_ = 0;   // that it computed
};

}  // namespace doppler
