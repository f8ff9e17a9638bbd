// Stage II of `doppler`: exploration in the parameter space of the heads, then improvement of the
// best assignment by small moves; each measured assignment is one evaluation.
//
// A steady-state evolution strategy as in agents/search/rule_search.cc, with these differences. A
// head has rows for the network's latents, so that weights differ between nodes, and may be pulled
// to an assignment from elsewhere (policy_heads.h), so that the search goes on from it in the space
// of policies. Of a few children only the one is measured whose partial schedule promises most: the
// policy's own estimate, which costs no run of the engine. And the last part of a long run anneals
// the best assignment (moves of agents/search/moves.h).
//
// Where a task has luck (noise, random choice), what is best by the luck of the seed was lucky in
// part. The last evaluations then measure the best few assignments again, by other lucks, and the
// one of the least mean is returned; no moves improve it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agents/draws.h"
#include "agents/learned/policy_gradient.h"
#include "agents/learned/policy_heads.h"
#include "agents/search/evaluations.h"
#include "agents/search/evolution.h"
#include "agents/search/moves.h"
#include "agents/search/walk.h"
#include "env/thread_pool.h"

namespace doppler {

struct HeadSearchOptions {
  std::size_t n_parents = 20;  // heads of different makespan that are kept
  std::size_t n_screened = 4;  // children that are decided for one that is measured
  std::size_t n_batch = 4;     // children that are measured in one update
  // Share of the evaluations that improve the best assignment by moves, of a run of 10,000 or more;
  // 0 up to 1,000, between them by the logarithm.
  double improve_share = 0.4;
  double hot = 0.001;  // first temperature of that, over the makespan
  // What evolves. If it is not both, no moves improve the assignment: every one that is measured is
  // what such a policy decides.
  HeadHalf half = HeadHalf::both;
};

class HeadSearch {
 public:
  struct Parent {
    Head head = {};
    double makespan = 0;  // seconds
    friend bool operator==(const Parent&, const Parent&) = default;
  };

  // `first` heads are measured first, in their order. Everything depends on the seed alone,
  // whatever the number of threads, unless options.max_seconds ends it.
  HeadSearch(std::shared_ptr<const PlacementModel> model, Latents latents, std::vector<Head> first,
             const AssignOptions& options);

  // What heads are pulled to, [n_nodes]; before the first update. Empty: nothing.
  void set_pattern(std::vector<DeviceId> pattern) { pattern_ = std::move(pattern); }
  void set_options(const HeadSearchOptions& options) { options_ = options; }
  void set_threads(ThreadPool* pool) { pool_ = pool; }  // nullptr: the caller's thread alone

  // A batch of evaluations. Returns false, and does nothing, when the budget is used.
  bool update();

  [[nodiscard]] const Evaluations& evaluations() const { return evaluations_; }
  // The best assignment; requires an evaluation. With luck the one of the least mean.
  [[nodiscard]] Decision decision() const;
  [[nodiscard]] std::int64_t n_episodes() const { return n_episodes_; }
  // Mean over the assignments that the last update measured; seconds.
  [[nodiscard]] double mean_makespan() const { return mean_makespan_; }
  [[nodiscard]] bool improving() const { return improving_; }
  // The best first; makespans differ.
  [[nodiscard]] std::span<const Parent> parents() const { return parents_; }
  [[nodiscard]] const Latents& latents() const { return latents_; }

  [[nodiscard]] nlohmann::json state() const;
  void restore(const nlohmann::json& state);  // requires state() of an equal search

 private:
  struct Child {
    std::uint64_t seed = 0;
    Head head = {};
    std::vector<DeviceId> assignment = {};
    double estimate = 0;
    bool is_new = false;
  };
  // An assignment that is measured by several lucks.
  struct Leader {
    std::vector<DeviceId> assignment = {};
    double makespan = 0;  // by the luck of the seed
    double sum = 0;       // over all lucks
    std::int64_t n_lucks = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(n_lucks); }
  };
  class Lease;

  void measure(const Head& head, std::span<const DeviceId> assignment);
  void lead(std::span<const DeviceId> assignment, double makespan);
  void settle();
  void explore();
  void improve();
  void make_child(Child& child, HeadRollout& rollout) const;
  [[nodiscard]] const Head& draw_parent(Draws& draws) const;
  [[nodiscard]] std::size_t n_row_weights() const;  // of a head, without its pull
  void mutate(Head& head, Draws& draws) const;
  void add_parent(const Head& head, double makespan);
  [[nodiscard]] double improve_share() const;
  [[nodiscard]] double settle_share() const;
  [[nodiscard]] std::size_t n_leaders() const;

  std::shared_ptr<const PlacementModel> model_;
  Latents latents_;
  std::vector<Head> first_;  // not measured yet
  std::vector<DeviceId> pattern_;
  HeadSearchOptions options_;
  std::int64_t max_evaluations_;
  ThreadPool* pool_ = nullptr;
  Evaluations evaluations_;
  Draws draws_;
  std::vector<Parent> parents_;
  Measured measured_;
  std::int64_t n_repeats_ = 0;  // batches in a row that found nothing new
  std::int64_t n_episodes_ = 0;
  double mean_makespan_ = 0;
  bool has_luck_;
  std::vector<Leader> leaders_;  // with luck; by the makespan of the seed's luck
  double sum_makespans_ = 0;     // of this update
  std::int64_t n_measured_ = 0;

  bool improving_ = false;
  std::int64_t improve_begin_ = 0;  // evaluations used before
  double improve_unit_ = 0;         // seconds
  Moves moves_;
  std::optional<Walk> walk_;

  std::mutex rollouts_mutex_;
  std::vector<std::unique_ptr<HeadRollout>> rollouts_;  // that nobody uses
};

}  // namespace doppler
