// The runs of the simulator that a search has left, and the best assignment that they have shown.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "agents/agent.h"
#include "executor/simulator/simulator.h"

namespace doppler {

// Counts one evaluation for each makespan that run(), run_with(), run_base() and run_move() tell.
// take() and take_move() are not counted: they repeat an assignment whose makespan was told (and
// counted) just before, so that the simulator can resume from it; nothing new is learnt, and an
// engine without one-node changes would not be run for it.
//
// Without a limit in seconds no decision reads the clock, so that a search depends on its seed
// alone. Improvements are told to AssignOptions::on_better.
class Evaluations {
 public:
  Evaluations(const PlacementModel& model, const AssignOptions& options);

  // Whether another run is allowed. The first one always is: an assignment must be returned.
  [[nodiscard]] bool left() const {
    return n_used_ == 0 || (n_used_ < max_evaluations_ && seconds_share() < 1);
  }
  [[nodiscard]] std::int64_t n_used() const { return n_used_; }
  [[nodiscard]] std::int64_t n_left() const { return max_evaluations_ - n_used_; }
  // The share of the budget that is used, of evaluations or seconds, whichever is more; [0, 1].
  [[nodiscard]] double progress() const;

  // All of these require left() and return a makespan in seconds.
  double run(std::span<const DeviceId> assignment);
  // Under another luck; never the best.
  double run_with(std::span<const DeviceId> assignment, std::uint64_t seed);
  double run_base(std::span<const DeviceId> assignment);  // which becomes the base
  double run_move(NodeId node, DeviceId device);          // of the base, which stays

  // The new base; requires that its makespan was told by the last call.
  void take(std::span<const DeviceId> assignment);
  void take_move(NodeId node, DeviceId device);

  // Continues a search that had come so far. The base is none; seconds count from now.
  void restore(std::int64_t n_used, Assignment best, double best_makespan);

  // By node; empty before the first run_base().
  [[nodiscard]] std::span<const DeviceId> base() const { return base_; }
  [[nodiscard]] const Assignment& best() const { return best_; }
  [[nodiscard]] double best_makespan() const { return best_makespan_; }
  // The best assignment; requires a run.
  [[nodiscard]] Decision decision() const;

 private:
  [[nodiscard]] double seconds() const;  // since the beginning
  [[nodiscard]] double seconds_share() const;
  // Counts a run; whether its makespan is the least so far.
  bool is_best(double makespan);

  Simulator simulator_;
  std::int64_t max_evaluations_;
  double max_seconds_;
  std::function<void(const Improvement&)> on_better_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t n_used_ = 0;
  std::vector<DeviceId> base_;
  Assignment best_;
  double best_makespan_ = std::numeric_limits<double>::infinity();
};

}  // namespace doppler
