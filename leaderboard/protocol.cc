#include "leaderboard/protocol.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "agents/agent.h"
#include "datasets/tasks.h"
#include "executor/engine.h"
#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-decision";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
// Of the tier's seconds that an agent is told to keep to: it looks at the clock now and then only.
constexpr double kToldShare = 0.9;

Json key_json(const DecisionKey& key) {
  return {{"suite", key.suite},
          {"agent", key.agent},
          {"tier", key.tier},
          {"task", key.task},
          {"seed", key.seed}};
}

DecisionKey key_of(const JsonElement& root) {
  return {.suite = root.field("suite").text(),
          .agent = root.field("agent").text(),
          .tier = root.field("tier").integer(1, kLargest),
          .task = root.field("task").text(),
          .seed = static_cast<std::uint64_t>(root.field("seed").integer(0, kLargest))};
}

bool is_exempt(const SuiteTask& task, const std::string& kind) {
  return std::find(task.exempt.begin(), task.exempt.end(), kind) != task.exempt.end();
}

Assignment critical_path_assignment(const Task& task, std::uint64_t seed) {
  return make_agent("critical-path")
      ->decide(std::make_shared<const PlacementModel>(task), {.seed = seed})
      .assignment;
}

// In turns, so that whatever else the machine does meets both alike.
void execute_in_turns(const Suite& suite, const Task& task, SubmissionRun& run) {
  const Assignment reference = critical_path_assignment(task, run.seed);
  const std::unique_ptr<Engine> engine = make_engine(suite.engine);
  const auto execute = [&](const Assignment& assignment) {
    return engine->run(task.graph, task.cluster, task.cost_model, assignment, task.options)
        .makespan;
  };
  for (std::int64_t i = 0; i < suite.n_runs; ++i) {
    run.makespans.push_back(execute(run.assignment));
    run.critical_path.push_back(execute(reference));
  }
}

std::string name_of(const DecisionKey& key) {
  return "agent '" + key.agent + "', task '" + key.task + "', seed " + std::to_string(key.seed);
}

}  // namespace

std::string to_json(const DecisionKey& key) { return key_json(key).dump() + "\n"; }

DecisionKey parse_decision_key(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.allow_fields({"suite", "agent", "tier", "task", "seed"});
  return key_of(root);
}

std::string to_json(const DecisionRecord& record, const Suite& suite) {
  Json json = {{"format", kFormat}, {"version", kVersion}};
  json.update(key_json(record.key));
  json["task_hash"] = hash_text(suite.task(record.key.task).hash);
  if (record.failure.empty()) {
    json["run"] = run_json(record.run);
  } else {
    json["failure"] = record.failure;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

DecisionRecord parse_decision_record(std::string_view content, const std::string& source,
                                     const Suite& suite) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  root.allow_fields({"format", "version", "suite", "agent", "tier", "task", "seed", "task_hash",
                     "run", "failure"});
  DecisionRecord record{.key = key_of(root)};
  if (hash_of(root.field("task_hash")) != suite.task(record.key.task).hash) {
    root.field("task_hash").fail("the record is of another version of the task; remove the file");
  }
  if (const auto failure = root.find("failure")) {
    record.failure = failure->text();
    if (record.failure.empty()) failure->fail("expected the reason");
  } else {
    record.run = run_of(root.field("run"), Completeness::complete);
  }
  return record;
}

std::string kind_of_agent(const std::string& agent) {
  const std::string& family = agents().at(NamedCall::parse(agent).name).family;
  const auto& kinds = submission_kinds();
  return std::find(kinds.begin(), kinds.end(), family) == kinds.end() ? "other" : family;
}

Submission new_submission(const Suite& suite, const std::string& agent, std::int64_t tier) {
  Submission row{.suite = suite.name,
                 .revision = suite.revision,
                 .tier = suite.tier(tier).evaluations,
                 .agent = canonical_agent(agent)};
  row.kind = kind_of_agent(row.agent);
  row.parameters = agent_parameters(row.agent);
  row.hardware = this_hardware();
  return row;
}

std::vector<DecisionKey> plan_decisions(const Suite& suite, const std::string& suite_name,
                                        const std::string& agent, std::int64_t tier,
                                        const std::string& kind) {
  std::vector<DecisionKey> decisions;
  for (const SuiteTask& task : suite.tasks) {
    if (is_exempt(task, kind)) continue;
    for (const std::uint64_t seed : suite.seeds) {
      decisions.push_back({.suite = suite_name,
                           .agent = agent,
                           .tier = suite.tier(tier).evaluations,
                           .task = task.name,
                           .seed = seed});
    }
  }
  return decisions;
}

SubmissionRun decide(const Suite& suite, const DecisionKey& key,
                     const std::function<void(DecisionPhase)>& on_phase) {
  const SuiteTask& suite_task = suite.task(key.task);
  const Tier& tier = suite.tier(key.tier);
  const Task task = make_suite_task(suite_task, key.seed);
  if (make_suite_task(suite_task).hash() != suite_task.hash) {
    throw RunError("task '" + suite_task.name + "' of suite '" + suite.name +
                   "' is another one in this build; renew the suite");
  }
  SubmissionRun run{.seed = key.seed};
  AssignOptions options{.seed = key.seed,
                        .max_evaluations = tier.evaluations,
                        .max_seconds = kToldShare * tier.seconds};
  options.on_better = [&](const Improvement& improvement) { run.curve.push_back(improvement); };
  const std::unique_ptr<Agent> agent = make_agent(key.agent);
  if (on_phase) on_phase(DecisionPhase::begins);
  AssignResult result = assign(*agent, task, options);
  if (on_phase) on_phase(DecisionPhase::ends);
  if (result.seconds > tier.seconds) {
    throw RunError("the decision took " + std::to_string(result.seconds) + " s of " +
                   std::to_string(tier.seconds) + " s allowed");
  }
  run.assignment = std::move(result.assignment);
  run.evaluations = result.evaluations;
  run.seconds = result.seconds;
  if (suite.is_simulated()) {
    run.makespans = measure(suite, suite_task, run.assignment);
  } else {
    execute_in_turns(suite, task, run);
  }
  return run;
}

std::vector<double> measure(const Suite& suite, const SuiteTask& suite_task,
                            const Assignment& assignment) {
  const Task task = make_suite_task(suite_task);
  assignment.check(task.graph, task.cluster);
  std::vector<double> makespans;
  if (suite.is_simulated()) {
    Simulator simulator = task.simulator();
    if (!suite_task.has_luck()) return {simulator.makespan(assignment.devices)};
    for (std::int64_t run = 0; run < suite.n_runs; ++run) {
      makespans.push_back(simulator.makespan(assignment.devices,
                                             suite.first_luck + static_cast<std::uint64_t>(run)));
    }
    return makespans;
  }
  const std::unique_ptr<Engine> engine = make_engine(suite.engine);
  for (std::int64_t run = 0; run < suite.n_runs; ++run) {
    makespans.push_back(
        engine->run(task.graph, task.cluster, task.cost_model, assignment, task.options).makespan);
  }
  return makespans;
}

std::vector<SubmissionTask> assemble(const Suite& suite, std::span<const DecisionKey> decisions,
                                     std::span<const DecisionRecord> records) {
  std::map<std::pair<std::string, std::uint64_t>, const DecisionRecord*> found;
  for (const DecisionRecord& record : records) found[{record.key.task, record.key.seed}] = &record;
  std::vector<SubmissionTask> tasks;
  for (const DecisionKey& key : decisions) {
    const auto place = found.find({key.task, key.seed});
    if (place == found.end()) throw RunError(name_of(key) + ": the decision was not made");
    const DecisionRecord& record = *place->second;
    if (!record.failure.empty()) throw RunError(name_of(key) + ": " + record.failure);
    if (tasks.empty() || tasks.back().name != key.task) {
      tasks.push_back({.name = key.task, .hash = suite.task(key.task).hash});
    }
    tasks.back().runs.push_back(record.run);
  }
  return tasks;
}

Training training_on(const Suite& suite, const std::vector<std::string>& tasks) {
  Training training;
  for (const std::string& spelling : tasks) {
    const Task task = make_task(spelling);
    training.tasks.push_back(
        {.name = spelling, .graph_hash = task.graph.hash(), .cluster_hash = task.cluster.hash()});
  }
  training.on_suite_tasks = is_on_suite_tasks(suite, training);
  return training;
}

bool lacks_training(const Submission& row) {
  const auto policy = row.parameters.find("policy");
  return policy != row.parameters.end() && policy->second != ParameterValue(std::string()) &&
         row.training.tasks.empty();
}

bool is_on_suite_tasks(const Suite& suite, const Training& training) {
  return std::any_of(
      training.tasks.begin(), training.tasks.end(), [&](const TrainingTask& trained) {
        return std::any_of(suite.tasks.begin(), suite.tasks.end(), [&](const SuiteTask& task) {
          return trained.name == task.name || trained.name == task.task ||
                 (trained.graph_hash == task.graph_hash &&
                  trained.cluster_hash == task.cluster_hash);
        });
      });
}

}  // namespace doppler
