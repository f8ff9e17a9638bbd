// An assignment that changes by small steps, each measured before it is taken.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "agents/search/evaluations.h"
#include "agents/search/moves.h"

namespace doppler {

// What the walks start from: the assignment of a heuristic agent, by name.
Assignment start_assignment(const std::string& agent, std::shared_ptr<const PlacementModel> model,
                            std::uint64_t seed);

// The present assignment of a search is the base of its evaluations.
class Walk {
 public:
  // Measures the start: one evaluation.
  Walk(Evaluations& evaluations, const Assignment& start);
  // Starts from an assignment that these evaluations measured before.
  Walk(Evaluations& evaluations, std::span<const DeviceId> start, double makespan);

  [[nodiscard]] std::span<const DeviceId> present() const { return evaluations_->base(); }
  [[nodiscard]] double makespan() const { return makespan_; }  // of the present assignment
  // The makespan with the changes made; one evaluation. One-node changes are fast.
  double propose(std::span<const Change> changes);
  // Makes the changes that were proposed last.
  void accept(std::span<const Change> changes);
  // Leaves for the best assignment so far; no evaluation, for it was measured.
  void return_to_best();

 private:
  Evaluations* evaluations_;
  double makespan_;
  double proposed_makespan_ = 0;
  std::vector<DeviceId> proposed_;
};

}  // namespace doppler
