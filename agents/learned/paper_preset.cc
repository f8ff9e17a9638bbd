// doppler(preset=paper) as an agent: a policy decides greedily, and what evaluations are left train
// it further; without a policy all of them do.
#include "agents/learned/learned.h"
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
  if (path.empty()) return {};
  const std::string content = read_file(path);
  // Told at once, with the file's name.
  PaperNetwork(PaperSizes{}, 0).set_arrays(parse_policy(content, kPaperPolicyKind, path), path);
  return content;
}

class PaperAgent : public Agent {
 public:
  explicit PaperAgent(const Parameters& parameters)
      : numbers_(hyperparameters_of(parameters)), policy_(policy_of(parameters)) {}

  [[nodiscard]] bool has_steps() const override { return !policy_.empty(); }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    TrainProblem problem{.tasks = {model},
                         .options = {.seed = options.seed,
                                     .max_evaluations = options.max_evaluations,
                                     .max_seconds = options.max_seconds,
                                     .initial_policy = policy_}};
    const auto trainer = make_paper_trainer(numbers_, problem);
    while (trainer->update()) {
    }
    return trainer->best(0);
  }

 private:
  PaperHyperparameters numbers_;
  std::string policy_;
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
