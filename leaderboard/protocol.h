// How a row comes about: a suite is cut into decisions, each of which may run in a process of its
// own, on another machine, and again after that has died; their records make the row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler {

// One decision to be made: everything that it depends on.
struct DecisionKey {
  std::string suite = {};  // a name, or the path of a file
  std::string agent = {};  // a spelling that make_agent() takes
  std::int64_t tier = 1;
  std::string task = {};  // SuiteTask::name
  std::uint64_t seed = 0;
  friend bool operator==(const DecisionKey&, const DecisionKey&) = default;
};

// {"suite": ..., "agent": ..., "tier": ..., "task": ..., "seed": ...}
std::string to_json(const DecisionKey& key);
DecisionKey parse_decision_key(std::string_view content, const std::string& source);

// What became of it: a run, or the reason why there is none.
struct DecisionRecord {
  DecisionKey key = {};
  SubmissionRun run = {};
  std::string failure = {};  // empty: none
  friend bool operator==(const DecisionRecord&, const DecisionRecord&) = default;
};

// {"format": "doppler-decision", "version": 1, "suite": ..., "task_hash": ..., "run": {...} or
// "failure": "..."}; what parse_decision_record() reads, it compares with the suite's hash, and
// throws ParseError for another one.
std::string to_json(const DecisionRecord& record, const Suite& suite);
DecisionRecord parse_decision_record(std::string_view content, const std::string& source,
                                     const Suite& suite);

// The kind that rows of this agent of the registry have.
std::string kind_of_agent(const std::string& agent);

// The head of a row: agent and parameters as the registry spells them, kind, this machine; no
// results. Throws UsageError for an agent or tier that is not there.
Submission new_submission(const Suite& suite, const std::string& agent, std::int64_t tier);

// Every decision of a row, by task, then seed. `suite` is what DecisionKey::suite is to be.
std::vector<DecisionKey> plan_decisions(const Suite& suite, const std::string& suite_name,
                                        const std::string& agent, std::int64_t tier,
                                        const std::string& kind);

// The agent begins to decide, with the task and itself built; it has decided.
enum class DecisionPhase { begins, ends };

// Makes the decision here: the agent decides within the tier, on the simulator with its seed's
// luck; the assignment is executed as often as the protocol says, on a real engine in turns with
// critical-path's. Throws what make_agent() and assign() throw, and RunError for a decision that
// took longer than the tier allows.
SubmissionRun decide(const Suite& suite, const DecisionKey& key,
                     const std::function<void(DecisionPhase)>& on_phase = {});

// Executes an assignment by the protocol: the makespans of a row. Throws InvalidError if it does
// not fit.
std::vector<double> measure(const Suite& suite, const SuiteTask& task,
                            const Assignment& assignment);

// The tasks of a row from the records of all its decisions, in any order. Throws RunError that
// names the first failure, or a decision that is missing.
std::vector<SubmissionTask> assemble(const Suite& suite, std::span<const DecisionKey> decisions,
                                     std::span<const DecisionRecord> records);

// The part of a row that says what an agent was trained on, from the spellings of tasks.
Training training_on(const Suite& suite, const std::vector<std::string>& tasks);
// Whether one of the tasks is one of the suite's: the same graph on the same cluster.
bool is_on_suite_tasks(const Suite& suite, const Training& training);
// Whether the agent starts from a policy without a word of what that was trained on.
bool lacks_training(const Submission& row);

}  // namespace doppler
