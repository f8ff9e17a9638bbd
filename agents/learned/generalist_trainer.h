// `doppler` over many tasks: one policy that decides on tasks it has not seen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/learned/doppler_policy.h"
#include "agents/learned/imitation.h"
#include "agents/training.h"
#include "env/thread_pool.h"

namespace doppler {

// Five phases; the first, third and fourth use the evaluations, in the shares below.
//   search     on each task, heads without latents are searched (HeadSearch);
//   imitate    network and one head imitate what the best of these decide, all tasks together
//              (stage I with its own best as the teacher): this is where the network learns;
//   refine     on each task, heads with latents are searched, from that head and the task's own;
//   compare    the best heads of all tasks are measured on every task;
//   choose     those n_heads are kept that together leave least of the logarithm of makespan over
//              the best of the task (greedily): of the head that is best there, plus of the one
//              that promises most; the gate learns which of them suits a task.
struct GeneralistOptions {
  double search_share = 0.3;
  double refine_share = 0.4;
  std::int64_t n_imitation_updates = 800;
  std::int64_t imitation_batch = 8;  // tasks of an update
  std::int64_t n_gate_updates = 500;
  std::int64_t gate_batch = 16;  // tasks of an update
  std::int64_t n_heads = 32;
  double promised_weight = 1;
};

class GeneralistTrainer : public Trainer {
 public:
  // Requires stages 1 and 2, and evaluations for at least some heads of each task; UsageError.
  GeneralistTrainer(GeneralistOptions options, const TrainProblem& problem, DopplerPolicy policy);

  bool update() override;
  [[nodiscard]] TrainProgress progress() const override;
  [[nodiscard]] Decision best(std::size_t task) const override;
  [[nodiscard]] std::string policy() const override;
  [[nodiscard]] std::string state() const override;
  void restore(std::string_view state) override;

 private:
  struct Place {
    std::shared_ptr<const PlacementModel> model;
    NetworkInputs inputs;
    PolicyGradient gradient;
    std::vector<Head> heads = {};  // its best, the best first
    std::vector<Trajectory> lessons = {};
    Decision best = {};
  };
  enum class Phase : std::uint8_t { search, imitate, refine, compare, gate, done };

  void search(Place& place);
  void start_imitation();
  void imitate();
  void refine(Place& place);
  void compare(Place& place);
  void choose_heads();
  void learn_gate();
  void note(Place& place, const Decision& decision);
  void make_pool();
  void next_phase(Phase phase);

  GeneralistOptions options_;
  TrainOptions run_;
  DopplerPolicy policy_;
  std::vector<Place> places_;
  std::unique_ptr<ThreadPool> pool_of_threads_;
  std::optional<Imitation> imitation_;
  Phase phase_ = Phase::search;
  std::int64_t step_ = 0;  // within the phase
  std::int64_t n_updates_ = 0;
  std::int64_t n_episodes_ = 0;
  std::int64_t n_evaluations_ = 0;
  double loss_ = 0;
  std::vector<Head> pool_;                    // that are compared
  std::vector<std::vector<double>> losses_;   // by task, by head of the pool: makespan, seconds
  std::vector<std::vector<float>> promises_;  // the same: the first of its estimates
  std::vector<GateExample> examples_;
};

}  // namespace doppler
