#include "agents/search/evaluations.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace doppler {

Evaluations::Evaluations(const PlacementModel& model, const AssignOptions& options)
    : simulator_(model.task().simulator()),
      max_evaluations_(options.max_evaluations),
      max_seconds_(options.max_seconds),
      on_better_(options.on_better),
      begin_(std::chrono::steady_clock::now()) {}

double Evaluations::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

double Evaluations::seconds_share() const {
  if (std::isinf(max_seconds_)) return 0;
  const double spent = seconds();
  return spent < max_seconds_ ? spent / max_seconds_ : 1;
}

double Evaluations::progress() const {
  return std::max(static_cast<double>(n_used_) / static_cast<double>(max_evaluations_),
                  seconds_share());
}

bool Evaluations::is_best(double makespan) {
  // The first one is, even if it is infinite: there is nothing else to return.
  const bool better = n_used_ == 0 || makespan < best_makespan_;
  ++n_used_;
  if (!better) return false;
  best_makespan_ = makespan;
  if (on_better_) on_better_({n_used_, seconds(), makespan});
  return true;
}

double Evaluations::run(std::span<const DeviceId> assignment) {
  const double makespan = simulator_.makespan(assignment);
  if (is_best(makespan)) best_.devices.assign(assignment.begin(), assignment.end());
  return makespan;
}

double Evaluations::run_with(std::span<const DeviceId> assignment, std::uint64_t seed) {
  ++n_used_;
  return simulator_.makespan(assignment, seed);
}

double Evaluations::run_base(std::span<const DeviceId> assignment) {
  const double makespan = simulator_.set_base(assignment);
  base_.assign(assignment.begin(), assignment.end());
  if (is_best(makespan)) best_.devices = base_;
  return makespan;
}

double Evaluations::run_move(NodeId node, DeviceId device) {
  const double makespan = simulator_.makespan_after_move(node, device);
  if (is_best(makespan)) {
    best_.devices = base_;
    best_[node] = device;
  }
  return makespan;
}

void Evaluations::take(std::span<const DeviceId> assignment) {
  simulator_.set_base(assignment);
  base_.assign(assignment.begin(), assignment.end());
}

void Evaluations::take_move(NodeId node, DeviceId device) {
  simulator_.accept_move(node, device);
  base_[node.index()] = device;
}

void Evaluations::restore(std::int64_t n_used, Assignment best, double best_makespan) {
  n_used_ = n_used;
  best_ = std::move(best);
  best_makespan_ = best_makespan;
}

Decision Evaluations::decision() const {
  return {.assignment = best_, .makespan = best_makespan_, .evaluations = n_used_};
}

}  // namespace doppler
