#include "agents/search/walk.h"

#include <utility>

#include "agents/search/search.h"

namespace doppler {

ParameterSpec start_parameter() {
  return {.name = "start",
          .summary = "the heuristic whose assignment is improved",
          .default_value = std::string("partner-list"),
          .choices = {"partner-list", "critical-path", "heft", "m-etf", "round-robin", "random"}};
}

ParameterSpec moves_parameter() {
  return {.name = "moves",
          .summary = "one node at a time, or also swaps, connected groups and meta-ops",
          .default_value = std::string("all"),
          .choices = {"single", "all"}};
}

Assignment start_assignment(const std::string& agent, std::shared_ptr<const PlacementModel> model,
                            std::uint64_t seed) {
  return make_agent(agent)->decide(std::move(model), {.seed = seed}).assignment;
}

Walk::Walk(Evaluations& evaluations, const Assignment& start)
    : evaluations_(&evaluations), makespan_(evaluations.run_base(start.devices)) {}

Walk::Walk(Evaluations& evaluations, std::span<const DeviceId> start, double makespan)
    : evaluations_(&evaluations), makespan_(makespan) {
  evaluations.take(start);
}

double Walk::propose(std::span<const Change> changes) {
  if (changes.size() == 1) {
    proposed_makespan_ = evaluations_->run_move(changes[0].node, changes[0].device);
  } else {
    proposed_.assign(present().begin(), present().end());
    for (const Change& change : changes) proposed_[change.node.index()] = change.device;
    proposed_makespan_ = evaluations_->run(proposed_);
  }
  return proposed_makespan_;
}

void Walk::accept(std::span<const Change> changes) {
  if (changes.size() == 1) {
    evaluations_->take_move(changes[0].node, changes[0].device);
  } else {
    evaluations_->take(proposed_);
  }
  makespan_ = proposed_makespan_;
}

void Walk::return_to_best() {
  evaluations_->take(evaluations_->best().devices);
  makespan_ = evaluations_->best_makespan();
}

}  // namespace doppler
