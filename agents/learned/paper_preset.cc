// doppler(preset=paper) as an agent: a policy decides greedily, and what evaluations are left train
// it further; without a policy all of them do.
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "agents/learned/learned.h"
#include "agents/learned/paper_decoder.h"
#include "agents/learned/paper_trainer.h"
#include "graphs/file.h"

namespace doppler {

namespace {

PaperHyperparameters hyperparameters_of(const Parameters& parameters) {
  PaperHyperparameters numbers;
  if (const auto teacher = parameters.get<std::string>("teacher"); !teacher.empty()) {
    numbers.teacher = teacher;
  }
  numbers.imitation_episodes = parameters.get<std::int64_t>("imitation_episodes");
  numbers.simulator_episodes = parameters.get<std::int64_t>("episodes");
  numbers.batch = parameters.get<std::int64_t>("batch");
  return numbers;
}

// The content of the policy file that the parameters name; empty: none.
std::string policy_of(const Parameters& parameters) {
  const auto path = parameters.get<std::string>("policy");
  if (path == "generalist") {
    throw UsageError(
        "the generalist policy is of doppler's preset best; leave preset=paper out, or give a "
        "policy file that preset=paper wrote");
  }
  return path.empty() ? std::string() : read_file(path);
}

class PaperAgent : public Agent {
 public:
  explicit PaperAgent(const Parameters& parameters)
      : numbers_(hyperparameters_of(parameters)), policy_(policy_of(parameters)) {
    if (policy_.empty()) return;
    const auto path = parameters.get<std::string>("policy");
    const auto network = std::make_shared<PaperNetwork>(numbers_.sizes, 0);
    network->set_arrays(parse_policy(policy_, kPaperPolicyKind, path), path);
    decoder_.emplace(network);
  }

  [[nodiscard]] bool has_steps() const override { return decoder_.has_value(); }
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) override {
    if (!decoder_) return Agent::begin(std::move(model), seed);
    decoder_->begin(std::move(model));
  }
  NodeId select(const PartialSchedule& schedule) override {
    return decoder_ ? decoder_->select(schedule) : Agent::select(schedule);
  }
  DeviceId place(const PartialSchedule& schedule, NodeId node) override {
    return decoder_ ? decoder_->place(schedule, node) : Agent::place(schedule, node);
  }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    const auto begin = std::chrono::steady_clock::now();
    Decision first;
    if (decoder_) {
      decoder_->begin(model);
      first.assignment = decoder_->decide();
      if (options.max_evaluations == 1) return first;
      first.makespan = model->task().simulator().makespan(first.assignment.devices);
      first.evaluations = 1;
    }
    return trained(std::move(first), model, options, begin);
  }

 private:
  using Instant = std::chrono::steady_clock::time_point;

  // The better of `first`, which the policy decided, and what training comes to with the
  // evaluations that are left. Without a policy `first` is empty, and training begins with stage I.
  Decision trained(Decision first, const std::shared_ptr<const PlacementModel>& model,
                   const AssignOptions& options, Instant begin) {
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
        .options = {.stages = decoder_ ? std::vector{2} : std::vector{1, 2},
                    .seed = options.seed,
                    .max_evaluations = options.max_evaluations - first.evaluations,
                    .max_seconds = options.max_seconds,
                    .initial_policy = policy_}};
    const auto trainer = make_paper_trainer(numbers_, problem);
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

  PaperHyperparameters numbers_;
  std::string policy_;
  std::optional<PaperDecoder> decoder_;  // of the policy
};

}  // namespace

std::unique_ptr<Agent> make_paper_agent(const Parameters& parameters) {
  return std::make_unique<PaperAgent>(parameters);
}

std::unique_ptr<Trainer> make_paper_trainer(const Parameters& parameters,
                                            const TrainProblem& problem) {
  TrainProblem started = problem;
  if (started.options.initial_policy.empty())
    started.options.initial_policy = policy_of(parameters);
  return make_paper_trainer(hyperparameters_of(parameters), started);
}

}  // namespace doppler
