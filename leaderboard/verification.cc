#include "leaderboard/verification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/lower_bound.h"
#include "leaderboard/protocol.h"

namespace doppler {
namespace {

constexpr double kTolerance = 1e-9;  // relative

bool equal(double a, double b) {
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= kTolerance * std::max(std::abs(a), std::abs(b));
}

std::string seconds_text(double value) {
  if (std::isinf(value)) return "out of memory";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.12g", value);
  return buffer.data();
}

// The least share of the lower bound that a makespan with luck may have: noise only varies nodes
// and transfers around what the bound counts.
constexpr double kLeastLuck = 0.5;

// Collects the faults of one row, each with its place.
class Check {
 public:
  Check(const Suite& suite, const Submission& row, Verification& result)
      : suite_(suite), row_(row), result_(result) {}

  void fault(const std::string& what) { result_.faults.push_back(what); }

  void header() {
    if (row_.revision != suite_.revision) {
      fault("revision " + std::to_string(row_.revision) + " of suite '" + suite_.name +
            "'; it is " + std::to_string(suite_.revision) + " now, so run the agent again");
    }
    const bool known = std::any_of(suite_.tiers.begin(), suite_.tiers.end(),
                                   [&](const Tier& tier) { return tier.evaluations == row_.tier; });
    if (!known) {
      fault("suite '" + suite_.name + "' has no tier of " + std::to_string(row_.tier) +
            " evaluations");
    }
  }

  void training() {
    const Training& training = row_.training;
    const TrainingRule& rule = suite_.training;
    const bool is_on_suite = is_on_suite_tasks(suite_, training);
    if (is_on_suite && !training.on_suite_tasks) {
      fault(
          "the agent was trained on tasks of the suite, and the row does not say so "
          "(training.on_suite_tasks)");
    }
    if (!is_on_suite && training.on_suite_tasks) {
      fault("training.on_suite_tasks is true, but training.tasks names none of the suite");
    }
    if (training.evaluations > rule.max_evaluations) {
      fault("trained with " + std::to_string(training.evaluations) + " evaluations; the suite " +
            "allows " + std::to_string(rule.max_evaluations));
    }
    if (training.seconds > rule.max_seconds) {
      fault("trained for " + seconds_text(training.seconds) + " s; the suite allows " +
            seconds_text(rule.max_seconds) + " s");
    }
    if (lacks_training(row_)) {
      fault(
          "the agent starts from a policy, and the row does not say what that was trained on "
          "(training.tasks)");
    }
  }

  void names() {
    std::set<std::string> seen;
    for (const SubmissionTask& task : row_.tasks) {
      if (!seen.insert(task.name).second) fault("task '" + task.name + "' is there twice");
      if (find(task.name) == nullptr) {
        fault("task '" + task.name + "' is not one of suite '" + suite_.name + "'");
      }
    }
    for (const SuiteTask& task : suite_.tasks) {
      const bool may_lack =
          std::find(task.exempt.begin(), task.exempt.end(), row_.kind) != task.exempt.end();
      if (!may_lack && !seen.contains(task.name)) fault("task '" + task.name + "' is missing");
    }
  }

  [[nodiscard]] const SuiteTask* find(const std::string& name) const {
    for (const SuiteTask& task : suite_.tasks) {
      if (task.name == name) return &task;
    }
    return nullptr;
  }

  // What needs no execution; whether an execution makes sense.
  bool protocol(const SubmissionTask& task, const SuiteTask& suite_task) {
    const std::string where = "task '" + task.name + "': ";
    if (task.hash != suite_task.hash) {
      fault(where + "the row is of another graph, cluster or setting (hash " +
            hash_text(task.hash) + ", the suite's " + hash_text(suite_task.hash) + ")");
      return false;
    }
    std::set<std::uint64_t> missing(suite_.seeds.begin(), suite_.seeds.end());
    for (const SubmissionRun& run : task.runs) {
      if (missing.erase(run.seed) == 0) {
        fault(where + "seed " + std::to_string(run.seed) +
              " is there twice, or not of the protocol");
      }
      budgets(run, suite_task, where + "seed " + std::to_string(run.seed) + ": ");
    }
    if (!missing.empty()) {
      fault(where + std::to_string(missing.size()) + " of " + std::to_string(suite_.seeds.size()) +
            " seeds are missing, the first is " + std::to_string(*missing.begin()));
    }
    return true;
  }

  void budgets(const SubmissionRun& run, const SuiteTask& suite_task, const std::string& where) {
    const auto wanted = static_cast<std::size_t>(suite_.n_runs_of(suite_task));
    if (run.makespans.size() != wanted) {
      fault(where + std::to_string(run.makespans.size()) + " makespans; the protocol has " +
            std::to_string(wanted) + " runs");
    }
    const std::size_t references = suite_.is_simulated() ? 0 : wanted;
    if (run.critical_path.size() != references) {
      fault(where + std::to_string(run.critical_path.size()) + " makespans of critical-path; the " +
            "protocol has " + std::to_string(references));
    }
    if (run.evaluations > row_.tier) {
      fault(where + std::to_string(run.evaluations) + " evaluations in the tier of " +
            std::to_string(row_.tier));
    }
    for (const Tier& tier : suite_.tiers) {
      if (tier.evaluations == row_.tier && run.seconds > tier.seconds) {
        fault(where + "decided in " + seconds_text(run.seconds) + " s; the tier allows " +
              seconds_text(tier.seconds) + " s");
      }
    }
    curve(run, suite_task, where);
  }

  void curve(const SubmissionRun& run, const SuiteTask& suite_task, const std::string& where) {
    if (run.curve.empty()) {
      fault(where + "the curve is empty");
      return;
    }
    for (std::size_t i = 0; i < run.curve.size(); ++i) {
      const Improvement& point = run.curve[i];
      if (point.evaluations > run.evaluations ||
          (i > 0 && point.evaluations < run.curve[i - 1].evaluations)) {
        fault(where + "the curve's evaluations do not ascend to those that were used");
        return;
      }
      if (i > 0 && point.seconds < run.curve[i - 1].seconds) {
        fault(where + "the curve's seconds do not ascend");
        return;
      }
    }
    if (!suite_.is_simulated() || run.makespans.empty()) return;
    if (suite_task.has_luck()) {
      if (run.curve.back().makespan < kLeastLuck * suite_task.lower_bound) {
        fault(where + "the curve ends at " + seconds_text(run.curve.back().makespan) +
              ", which no luck explains: the lower bound is " +
              seconds_text(suite_task.lower_bound));
      }
      return;
    }
    if (!equal(run.curve.back().makespan, run.makespans.front())) {
      fault(where + "the curve ends at " + seconds_text(run.curve.back().makespan) +
            ", and the makespan is " + seconds_text(run.makespans.front()));
    }
  }

 private:
  const Suite& suite_;
  const Submission& row_;
  Verification& result_;
};

}  // namespace

struct Verifier::KnownTask {
  Task task;
  std::uint64_t hash = 0;
  double lower_bound = 0;
  std::optional<Simulator> simulator;  // of a suite that is simulated
};

Verifier::Verifier(std::vector<Suite> more, bool executes_for_real)
    : suites_(std::move(more)), executes_for_real_(executes_for_real) {
  suites_.insert(suites_.end(), doppler::suites().begin(), doppler::suites().end());
}
Verifier::~Verifier() = default;

const Suite& Verifier::suite_of(const std::string& name) const {
  std::set<std::string> names;
  for (const Suite& suite : suites_) {
    if (suite.name == name) return suite;
    names.insert(suite.name);
  }
  try {
    throw_unknown_name("suite", name, std::vector<std::string>(names.begin(), names.end()));
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + "; --suite FILE tells of a suite of your own");
  }
}

Verifier::KnownTask& Verifier::known(const Suite& suite, const SuiteTask& suite_task) {
  std::unique_ptr<KnownTask>& slot = tasks_[suite.name + "\n" + suite_task.name];
  if (slot == nullptr) {
    slot = std::make_unique<KnownTask>();
    slot->task = make_suite_task(suite_task);
    slot->hash = slot->task.hash();
    slot->lower_bound = slot->task.lower_bound();
    if (suite.is_simulated()) slot->simulator.emplace(slot->task.simulator());
  }
  return *slot;
}

Verification Verifier::verify(const Submission& row) {
  Verification result;
  const Suite* suite = nullptr;
  try {
    suite = &suite_of(row.suite);
  } catch (const UsageError& error) {
    result.faults.emplace_back(error.what());
    return result;
  }
  Check check(*suite, row, result);
  check.header();
  check.training();
  check.names();
  for (const SubmissionTask& task : row.tasks) {
    const SuiteTask* suite_task = check.find(task.name);
    if (suite_task == nullptr || !check.protocol(task, *suite_task)) continue;
    KnownTask& known_task = known(*suite, *suite_task);
    if (known_task.hash != suite_task->hash) {
      check.fault("task '" + task.name + "' is another one in this build (hash " +
                  hash_text(known_task.hash) + ", the suite's " + hash_text(suite_task->hash) +
                  ")");
      continue;
    }
    for (const SubmissionRun& run : task.runs) {
      execute(*suite, *suite_task, known_task, run, result);
    }
  }
  return result;
}

void Verifier::execute(const Suite& suite, const SuiteTask& suite_task, KnownTask& known_task,
                       const SubmissionRun& run, Verification& result) const {
  const std::string where =
      "task '" + suite_task.name + "', seed " + std::to_string(run.seed) + ": ";
  try {
    run.assignment.check(known_task.task.graph, known_task.task.cluster);
  } catch (const InvalidError& error) {
    result.faults.push_back(where + error.what());
    return;
  }
  if (suite.is_simulated()) {
    compare(suite, suite_task, known_task, run, where, result);
  } else if (executes_for_real_ && !run.makespans.empty()) {
    const std::vector<double> here = measure(suite, suite_task, run.assignment);
    const auto [least, largest] = std::minmax_element(run.makespans.begin(), run.makespans.end());
    const auto [here_least, here_largest] = std::minmax_element(here.begin(), here.end());
    result.spreads.push_back(
        {suite_task.name, run.seed, *least, *largest, *here_least, *here_largest});
    result.n_executions += static_cast<std::int64_t>(here.size());
  }
}

void Verifier::compare(const Suite& suite, const SuiteTask& suite_task, KnownTask& known_task,
                       const SubmissionRun& run, const std::string& where, Verification& result) {
  for (std::size_t i = 0; i < run.makespans.size(); ++i) {
    const double makespan = known_task.simulator->makespan(
        run.assignment.devices, suite_task.has_luck() ? suite.first_luck + i : 0);
    ++result.n_executions;
    if (equal(makespan, run.makespans[i])) continue;
    result.faults.push_back(where + "run " + std::to_string(i) + " has makespan " +
                            seconds_text(run.makespans[i]) + ", but the assignment gives " +
                            seconds_text(makespan));
    break;
  }
  if (suite_task.settings.noise.value_or(0) > 0) return;  // luck may be better than the bound
  double least = run.curve.empty() ? HUGE_VAL : run.curve.back().makespan;
  for (const double makespan : run.makespans) least = std::min(least, makespan);
  if (!below_bound(least, known_task.lower_bound)) return;
  result.faults.push_back(where + "makespan " + seconds_text(least) + " is below the lower bound " +
                          seconds_text(known_task.lower_bound));
}

}  // namespace doppler
