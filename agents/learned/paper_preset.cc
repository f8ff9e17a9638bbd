// doppler(preset=paper) and its ablations as agents, which also decide by steps.
#include <memory>
#include <optional>
#include <utility>

#include "agents/learned/learned.h"
#include "agents/learned/paper_decoder.h"
#include "agents/learned/paper_policy.h"
#include "agents/learned/reinforce_agent.h"

namespace doppler {

namespace {

PaperHalves halves_of(std::string_view name) {
  if (name == "doppler-sel") return PaperHalves::select;
  return name == "doppler-plc" ? PaperHalves::place : PaperHalves::both;
}

MessagePassingTime time_of(const Parameters& parameters) {
  return parameters.get<std::string>("message_passing") == "step" ? MessagePassingTime::step
                                                                  : MessagePassingTime::episode;
}

ReinforceSetup setup_of(std::string_view name, const Parameters& parameters) {
  if (parameters.get<std::string>("policy") == "generalist") {
    throw UsageError(
        "the generalist policy is of doppler's preset best; leave preset=paper out, or give a "
        "policy file that preset=paper wrote");
  }
  const PaperHalves halves = halves_of(name);
  const MessagePassingTime time = time_of(parameters);
  ReinforceSetup setup{.make = paper_policy({.halves = halves, .message_passing = time}),
                       .kind = paper_policy_kind(halves, time)};
  read_parameters(parameters, setup);
  return setup;
}

class PaperAgent : public Agent {
 public:
  PaperAgent(std::string_view name, const Parameters& parameters)
      : setup_(setup_of(name, parameters)) {
    if (setup_.policy.empty()) return;
    const auto network = std::make_shared<PaperNetwork>(PaperSizes(), 0, halves_of(name));
    read_policy(paper_traits(*network), setup_.policy, setup_.policy_path);
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
    return decide_by_training(setup_, std::move(first), model, options, begin);
  }

 private:
  ReinforceSetup setup_;
  std::optional<PaperDecoder> decoder_;  // of the policy
};

}  // namespace

std::unique_ptr<Agent> make_paper_agent(std::string_view name, const Parameters& parameters) {
  if (time_of(parameters) == MessagePassingTime::step) {
    return make_reinforce_agent(setup_of(name, parameters));
  }
  return std::make_unique<PaperAgent>(name, parameters);
}

std::unique_ptr<Trainer> make_paper_trainer(std::string_view name, const Parameters& parameters,
                                            const TrainProblem& problem) {
  return make_setup_trainer(setup_of(name, parameters), problem);
}

}  // namespace doppler
