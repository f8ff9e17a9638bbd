// The agent `doppler(preset=best)`.
#include <algorithm>
#include <utility>

#include "agents/learned/doppler_trainer.h"
#include "agents/learned/generalist_trainer.h"
#include "agents/learned/learned.h"
#include "embedded/policies.h"
#include "graphs/file.h"

namespace doppler {

namespace {

// Where the agent begins: a policy file, the one that comes with the package, or nothing.
DopplerPolicy first_policy(const std::string& policy, std::uint64_t seed) {
  if (policy.empty()) return DopplerPolicy::untrained(seed);
  for (const embedded::File& file : embedded::policies()) {
    if (file.name == policy + ".json") return DopplerPolicy::parse(file.content, policy);
  }
  return DopplerPolicy::parse(read_file(policy), policy);
}

HeadHalf half_of(std::string_view name) {
  if (name == "doppler-sel") return HeadHalf::select;
  return name == "doppler-plc" ? HeadHalf::place : HeadHalf::both;
}

void check_parameters(const Parameters& parameters) {
  if (parameters.get<std::string>("message_passing") == "step") {
    throw UsageError(
        "message_passing=step is of preset=paper; preset best passes messages once an episode");
  }
}

class DopplerAgent : public Agent {
 public:
  DopplerAgent(std::string_view name, const Parameters& parameters)
      : policy_path_(parameters.get<std::string>("policy")) {
    check_parameters(parameters);
    options_.teacher = parameters.get<std::string>("teacher");
    options_.search.half = half_of(name);
    if (!policy_path_.empty()) policy_ = first_policy(policy_path_, 0);
  }

  // An episode by steps decides as with one evaluation: with the head that promises most, or the
  // pattern.
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) override {
    if (policy_path_.empty()) policy_ = first_policy(policy_path_, seed);
    if (model != model_) {
      rule_.emplace(model);
      weights_.resize(model->n_nodes());
      model_ = std::move(model);
    }
    const NetworkInputs inputs(*model_);
    const Latents latents = policy_->network.latents(inputs);
    for (Head& head : policy_->heads) fix_half(options_.search.half, head);
    Head head = policy_->heads[order_heads(*policy_, model_, inputs, latents)[0]];
    if (options_.search.half == HeadHalf::both) {
      pattern_ = pattern_of(model_);
      if (pattern_promises_more(model_, latents, head, pattern_)) head = pulled(head, kFullPull);
    }
    write_node_weights(head, latents, weights_);
    rule_->pull_to(pattern_, pull_of(head) * model_->time_scale());
    first_step_ = true;
  }

  NodeId select(const PartialSchedule& schedule) override {
    follow(schedule);
    return rule_->select();
  }

  DeviceId place(const PartialSchedule& schedule, NodeId node) override {
    follow(schedule);
    return rule_->place(schedule, node);
  }

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    TrainProblem problem{.tasks = {std::move(model)},
                         .options = {.seed = options.seed,
                                     .max_evaluations = options.max_evaluations,
                                     .max_seconds = options.max_seconds,
                                     .on_better = options.on_better}};
    DopplerTrainer trainer(options_, problem, first_policy(policy_path_, options.seed));
    while (trainer.update()) {
    }
    return trainer.best(0);
  }

 private:
  // Tells the rule what was placed since it was last asked.
  void follow(const PartialSchedule& schedule) {
    if (first_step_) {
      rule_->begin(weights_, schedule);
      first_step_ = false;
      n_followed_ = schedule.n_placed();
      return;
    }
    if (schedule.n_placed() == n_followed_) return;
    rule_->placed(schedule, schedule.last_placed());
    n_followed_ = schedule.n_placed();
  }

  std::string policy_path_;
  DopplerTrainerOptions options_;
  std::optional<DopplerPolicy> policy_;
  std::shared_ptr<const PlacementModel> model_;
  std::optional<LinearRule> rule_;
  std::vector<RuleWeights> weights_;
  std::vector<DeviceId> pattern_;
  bool first_step_ = true;
  std::size_t n_followed_ = 0;
};

}  // namespace

std::unique_ptr<Agent> make_doppler_agent(std::string_view name, const Parameters& parameters) {
  return std::make_unique<DopplerAgent>(name, parameters);
}

std::unique_ptr<Trainer> make_doppler_trainer(std::string_view name, const Parameters& parameters,
                                              const TrainProblem& problem) {
  const std::string& initial = problem.options.initial_policy;
  DopplerPolicy policy =
      initial.empty() ? first_policy(parameters.get<std::string>("policy"), problem.options.seed)
                      : DopplerPolicy::parse(initial, "the initial policy");
  check_parameters(parameters);
  DopplerTrainerOptions options{.teacher = parameters.get<std::string>("teacher")};
  options.search.half = half_of(name);
  if (options.search.half != HeadHalf::both && std::ranges::count(problem.options.stages, 3) > 0) {
    throw UsageError("'" + std::string(name) +
                     "' (preset best) has no stage 3, whose moves know no policy; give "
                     "--stages 1,2, or train it with preset=paper");
  }
  if (problem.tasks.size() > 1) {
    if (problem.options.demonstrations) {
      throw UsageError(
          "doppler(preset=best) imitates a data set on one task at a time; name one, or train "
          "doppler(preset=paper)");
    }
    if (options.search.half != HeadHalf::both) {
      throw UsageError("'" + std::string(name) +
                       "' (preset best) learns on one task; train it on one, or "
                       "with preset=paper on several");
    }
    return std::make_unique<GeneralistTrainer>(GeneralistOptions{}, problem, std::move(policy));
  }
  return std::make_unique<DopplerTrainer>(std::move(options), problem, std::move(policy));
}

}  // namespace doppler
