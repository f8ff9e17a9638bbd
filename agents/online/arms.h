// Which assignment to run next on a noisy system: arms of a bandit whose means a model predicts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <unordered_map>
#include <vector>

#include "graphs/assignment.h"

namespace doppler {

// One assignment and what its runs have shown.
struct Arm {
  Assignment assignment = {};
  double predicted = 0;     // seconds, by the latest model of the system; infinity: does not fit
  std::int64_t n_runs = 0;  // successful ones
  double sum = 0;           // of their makespans, seconds
  double squares = 0;       // of their squares
  std::int64_t n_failures = 0;

  [[nodiscard]] double mean() const { return sum / static_cast<double>(n_runs); }
};

// What is believed of an arm's mean makespan: normal.
struct Belief {
  double mean = 0;
  double deviation = 0;  // standard
};

// Arm 0 is where the search starts. An arm's mean makespan is believed to be its prediction times a
// factor that all arms share, give or take the model's error (relative deviation tau); each run
// shows it give or take noise (sigma). Factor, tau and sigma are estimated from the runs, from a
// few runs' worth of prior on. An arm that failed once is never chosen again.
class Arms {
 public:
  explicit Arms(Assignment start);

  [[nodiscard]] std::size_t size() const { return arms_.size(); }
  [[nodiscard]] const Arm& operator[](std::size_t arm) const { return arms_[arm]; }
  // The number of the assignment's arm, which is new unless it was there.
  std::size_t add(const Assignment& assignment, double predicted);
  void set_predicted(std::size_t arm, double seconds) { arms_[arm].predicted = seconds; }
  // Keeps every arm that was run and `n` others: those predicted best. Numbers change; order stays.
  void keep(std::size_t n);

  void add_run(std::size_t arm, double makespan);
  void add_failure(std::size_t arm) { ++arms_[arm].n_failures; }

  // After runs were added or predictions changed: the numbers that all beliefs share. O(arms).
  void estimate();
  [[nodiscard]] Belief belief(std::size_t arm) const;
  [[nodiscard]] double noise() const { return sigma_; }
  [[nodiscard]] double model_error() const { return tau_; }

  // The arm of least believed mean among those of two successful runs or more; 0 if there is none.
  [[nodiscard]] std::size_t incumbent() const;
  // The arm of least believed mean minus deviation that may be run.
  [[nodiscard]] std::size_t most_promising() const;

  [[nodiscard]] nlohmann::json state() const;
  void restore(const nlohmann::json& state);

 private:
  void index();

  std::vector<Arm> arms_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> numbers_;  // by hash
  double factor_ = 1;
  double tau_;
  double sigma_;
};

}  // namespace doppler
