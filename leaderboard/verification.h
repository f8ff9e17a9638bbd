// Whether a row holds: everything in it that can be checked, and every assignment executed again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler {

// What a real engine gave here beside what the row says of it.
struct Spread {
  std::string task = {};
  std::uint64_t seed = 0;
  double row_least = 0;  // seconds
  double row_largest = 0;
  double here_least = 0;
  double here_largest = 0;
};

struct Verification {
  std::vector<std::string> faults = {};  // each what and where; empty: the row holds
  std::vector<Spread> spreads = {};      // of a real engine, where it was run
  std::int64_t n_executions = 0;         // that were compared
  [[nodiscard]] bool holds() const { return faults.empty(); }
};

// Verifies rows against suites. Keeps the tasks that it has built. For one thread.
class Verifier {
 public:
  // Suites of this build are known; `more` are asked first. With `executes_for_real` the
  // assignments of suites with a real engine are run here, otherwise only the rest is checked.
  explicit Verifier(std::vector<Suite> more = {}, bool executes_for_real = true);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // Of a row: its suite, revision, tier and tasks (missing, extra, twice, changed graphs), seeds
  // and runs, budgets, training (rules, tasks of the suite that it does not own up to), assignments
  // (legal; every simulated makespan to 1e-9, none below the lower bound), curves. Nothing is
  // thrown for a row that does not hold.
  Verification verify(const Submission& row);
  // The suite of a row. Throws UsageError for an unknown name.
  [[nodiscard]] const Suite& suite_of(const std::string& name) const;

 private:
  struct KnownTask;
  KnownTask& known(const Suite& suite, const SuiteTask& task);
  // Of one assignment: legal, and as the row says when it is executed.
  void execute(const Suite& suite, const SuiteTask& suite_task, KnownTask& known_task,
               const SubmissionRun& run, Verification& result) const;
  static void compare(const Suite& suite, const SuiteTask& suite_task, KnownTask& known_task,
                      const SubmissionRun& run, const std::string& where, Verification& result);

  std::vector<Suite> suites_;
  bool executes_for_real_;
  std::map<std::string, std::unique_ptr<KnownTask>> tasks_;
};

}  // namespace doppler
