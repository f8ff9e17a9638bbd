// The three stages of `doppler` on one task.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/learned/doppler_policy.h"
#include "agents/learned/head_search.h"
#include "agents/learned/imitation.h"
#include "agents/learned/online_search.h"
#include "agents/training.h"

namespace doppler {

struct DopplerTrainerOptions {
  std::string teacher = {};       // of stage I; empty: see DopplerTrainer
  HeadSearchOptions search = {};  // its `half` counts in stage I, too
  std::int64_t n_imitation_updates = 300;
  std::int64_t n_teacher_episodes = 16;  // of different seeds
  std::int64_t imitation_batch = 8;      // episodes of an update
};

// Stage I makes the network and one head imitate the teacher, without a run of the engine. Without
// a named teacher the linear rules of partner-list and of critical-path stand for it: they are
// heads themselves, so nothing needs to be learnt; with stage I alone it is critical-path.
// Demonstrations take the place of any teacher. Stage II
// is HeadSearch, which measures the pattern of the heads first (with one evaluation it measures
// that or the first head, whichever promises more); the network stays as stage I or the initial
// policy has it, so that heads that were measured keep their makespans. Stage III is OnlineSearch,
// from what stage II has come to, or without it from what the first head decides.
class DopplerTrainer : public Trainer {
 public:
  // Requires a problem of one task.
  DopplerTrainer(DopplerTrainerOptions options, const TrainProblem& problem, DopplerPolicy policy);

  bool update() override;
  [[nodiscard]] TrainProgress progress() const override;
  [[nodiscard]] Decision best(std::size_t task) const override;
  [[nodiscard]] std::string policy() const override;
  [[nodiscard]] std::string state() const override;
  void restore(std::string_view state) override;

 private:
  void take_lessons();
  void imitate();
  void start_search();
  void start_online();
  [[nodiscard]] Head imitating_head() const;

  DopplerTrainerOptions options_;
  TrainOptions run_;
  std::shared_ptr<const PlacementModel> model_;
  NetworkInputs inputs_;
  DopplerPolicy policy_;
  std::vector<DeviceId> pattern_;  // empty for one policy alone
  std::unique_ptr<ThreadPool> pool_;

  std::int64_t n_imitation_updates_ = 0;  // in all
  std::vector<Trajectory> lessons_;       // of the teacher
  PolicyGradient gradient_;
  std::optional<Imitation> imitation_;
  std::int64_t n_updates_ = 0;
  double loss_ = 0;
  std::optional<HeadSearch> search_;
  std::unique_ptr<OnlineSearch> online_;
};

// Throws UsageError for a device that `doppler` does not have.
void check_doppler_options(const TrainOptions& options);

}  // namespace doppler
