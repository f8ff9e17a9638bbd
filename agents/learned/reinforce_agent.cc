#include "agents/learned/reinforce_agent.h"

#include <limits>
#include <utility>

#include "agents/learned/torch_device.h"
#include "graphs/file.h"

namespace doppler {

namespace {

class ReinforceAgent : public Agent {
 public:
  explicit ReinforceAgent(ReinforceSetup setup) : setup_(std::move(setup)) {}

  [[nodiscard]] bool has_steps() const override { return false; }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    const auto begin = std::chrono::steady_clock::now();
    Decision first;
    if (!setup_.policy.empty()) {
      first.assignment = greedy(model);
      if (options.max_evaluations == 1) return first;
      first.makespan = model->task().simulator().makespan(first.assignment.devices);
      first.evaluations = 1;
    }
    return decide_by_training(setup_, std::move(first), model, options, begin);
  }

 private:
  Assignment greedy(const std::shared_ptr<const PlacementModel>& model) {
    const SingleThreadedTorch single_threaded;
    if (model != model_) {
      policy_ = setup_.make({model}, torch::kCPU, 0);
      read_policy(policy_->traits(), setup_.policy, setup_.policy_path);
      model_ = model;
    }
    return policy_->decide(0);
  }

  ReinforceSetup setup_;
  std::shared_ptr<const PlacementModel> model_;  // that the policy was made for
  std::unique_ptr<ReinforcePolicy> policy_;
};

}  // namespace

void read_parameters(const Parameters& parameters, ReinforceSetup& setup) {
  ReinforceOptions& training = setup.training;
  if (const auto teacher = parameters.get<std::string>("teacher"); !teacher.empty()) {
    training.teacher = teacher;
  }
  training.imitation_episodes = parameters.get<std::int64_t>("imitation_episodes");
  training.simulator_episodes = parameters.get<std::int64_t>("episodes");
  training.batch = parameters.get<std::int64_t>("batch");
  training.first_learning_rate = parameters.get<double>("learning_rate");
  training.simulator_entropy_weight = parameters.get<double>("entropy_weight");
  setup.policy_path = parameters.get<std::string>("policy");
  if (setup.policy_path.empty()) return;
  setup.policy = read_file(setup.policy_path);
  parse_policy(setup.policy, setup.kind, setup.policy_path);
}

Decision decide_by_training(const ReinforceSetup& setup, Decision first,
                            const std::shared_ptr<const PlacementModel>& model,
                            const AssignOptions& options, DecisionInstant begin) {
  double best = first.makespan.value_or(std::numeric_limits<double>::infinity());
  const auto tell = [&](std::int64_t evaluations, double makespan) {
    best = makespan;
    if (!options.on_better) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    options.on_better({evaluations, spent.count(), makespan});
  };
  if (first.makespan) tell(1, *first.makespan);
  const TrainProblem problem{
      .tasks = {model},
      .options = {.stages = setup.policy.empty() ? std::vector{1, 2} : std::vector{2},
                  .seed = options.seed,
                  .max_evaluations = options.max_evaluations - first.evaluations,
                  .max_seconds = options.max_seconds}};
  const auto trainer = make_setup_trainer(setup, problem);
  while (trainer->update()) {
    const TrainProgress progress = trainer->progress();
    if (progress.best_makespan < best) {
      tell(first.evaluations + progress.evaluations, progress.best_makespan);
    }
  }
  Decision last = trainer->best(0);
  last.evaluations += first.evaluations;
  if (!first.makespan || (last.makespan && *last.makespan < *first.makespan)) return last;
  first.evaluations = last.evaluations;
  return first;
}

std::unique_ptr<Agent> make_reinforce_agent(ReinforceSetup setup) {
  return std::make_unique<ReinforceAgent>(std::move(setup));
}

std::unique_ptr<Trainer> make_setup_trainer(const ReinforceSetup& setup,
                                            const TrainProblem& problem) {
  TrainProblem started = problem;
  if (started.options.initial_policy.empty()) started.options.initial_policy = setup.policy;
  return make_reinforce_trainer(setup.make, setup.training, started);
}

}  // namespace doppler
