#include "leaderboard/suite.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "agents/agent.h"
#include "datasets/tasks.h"
#include "embedded/suites.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-suite";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxRuns = 1000;

// A mistake in a value that a parser of another kind finds, with its place in the file.
template <class Parse>
auto parse_value(const JsonElement& element, Parse parse) {
  try {
    return parse(element.text());
  } catch (const UsageError& error) {
    element.fail(error.what());
  }
}

SuiteSettings parse_settings(const JsonElement& element) {
  element.allow_fields({"network", "choice", "noise", "enforce_memory", "memory"});
  SuiteSettings settings;
  if (const auto item = element.find("network"))
    settings.network = parse_value(*item, parse_network);
  if (const auto item = element.find("choice")) settings.choice = parse_value(*item, parse_choice);
  if (const auto item = element.find("noise")) settings.noise = item->quantity();
  if (const auto item = element.find("enforce_memory")) settings.enforce_memory = item->boolean();
  if (const auto item = element.find("memory")) settings.memory = item->quantity();
  return settings;
}

std::vector<std::string> parse_texts(const JsonElement& element) {
  std::vector<std::string> texts;
  for (const JsonElement& item : element.elements()) texts.push_back(item.text());
  return texts;
}

SuiteTask parse_task(const JsonElement& element) {
  element.allow_fields({"name", "task", "settings", "exempt", "hash", "graph_hash", "cluster_hash",
                        "nodes", "devices", "raw_costs", "lower_bound", "critical_path"});
  SuiteTask task{.name = element.field("name").text(), .task = element.field("task").text()};
  if (const auto item = element.find("settings")) task.settings = parse_settings(*item);
  if (const auto item = element.find("exempt")) task.exempt = parse_texts(*item);
  if (!element.find("hash")) return task;  // not filled in yet
  task.hash = hash_of(element.field("hash"));
  task.graph_hash = hash_of(element.field("graph_hash"));
  task.cluster_hash = hash_of(element.field("cluster_hash"));
  task.n_nodes = element.field("nodes").integer(1, kLargest);
  task.n_devices = element.field("devices").integer(1, kLargest);
  task.raw_costs = element.field("raw_costs").boolean();
  task.lower_bound = element.field("lower_bound").quantity();
  if (const auto item = element.find("critical_path")) task.critical_path = item->quantity();
  return task;
}

TrainingRule parse_training(const JsonElement& element) {
  element.allow_fields({"max_evaluations", "max_seconds", "held_out", "tasks"});
  return {.max_evaluations = element.field("max_evaluations").integer(0, kLargest),
          .max_seconds = element.field("max_seconds").quantity(),
          .held_out = element.field("held_out").boolean(),
          .tasks = parse_texts(element.field("tasks"))};
}

std::vector<Tier> parse_tiers(const JsonElement& element) {
  std::vector<Tier> tiers;
  for (const JsonElement& item : element.elements()) {
    item.allow_fields({"evaluations", "seconds"});
    const Tier tier{.evaluations = item.field("evaluations").integer(1, kLargest),
                    .seconds = item.field("seconds").quantity()};
    if (!tiers.empty() && tier.evaluations <= tiers.back().evaluations) {
      item.fail("tiers must ascend by evaluations");
    }
    if (!(tier.seconds > 0)) item.field("seconds").fail("expected a number above 0");
    tiers.push_back(tier);
  }
  if (tiers.empty()) element.fail("expected at least one tier");
  return tiers;
}

Json settings_json(const SuiteSettings& settings) {
  Json json = Json::object();
  if (settings.network) json["network"] = to_string(*settings.network);
  if (settings.choice) json["choice"] = to_string(*settings.choice);
  if (settings.noise) json["noise"] = *settings.noise;
  if (settings.enforce_memory) json["enforce_memory"] = *settings.enforce_memory;
  if (settings.memory) json["memory"] = *settings.memory;
  return json;
}

Json task_json(const SuiteTask& task) {
  Json json = {{"name", task.name}, {"task", task.task}};
  if (task.settings != SuiteSettings{}) json["settings"] = settings_json(task.settings);
  if (!task.exempt.empty()) json["exempt"] = task.exempt;
  if (task.hash == 0) return json;
  json.update(Json{{"hash", hash_text(task.hash)},
                   {"graph_hash", hash_text(task.graph_hash)},
                   {"cluster_hash", hash_text(task.cluster_hash)},
                   {"nodes", task.n_nodes},
                   {"devices", task.n_devices},
                   {"raw_costs", task.raw_costs},
                   {"lower_bound", task.lower_bound}});
  if (task.critical_path) json["critical_path"] = *task.critical_path;
  return json;
}

// The mean makespan of critical-path over the protocol's seeds and runs.
double critical_path_mean(const Suite& suite, const SuiteTask& suite_task) {
  double sum = 0;
  for (const std::uint64_t seed : suite.seeds) {
    const Task task = make_suite_task(suite_task, seed);
    const AssignResult result =
        assign(*make_agent("critical-path"), task, {.seed = seed, .max_evaluations = 1});
    Simulator simulator = task.simulator();
    const std::int64_t n_runs = suite.n_runs_of(suite_task);
    for (std::int64_t run = 0; run < n_runs; ++run) {
      sum += simulator.makespan(result.assignment.devices,
                                suite.first_luck + static_cast<std::uint64_t>(run)) /
             static_cast<double>(n_runs);
    }
  }
  return sum / static_cast<double>(suite.seeds.size());
}

}  // namespace

bool SuiteTask::has_luck() const {
  return settings.noise.value_or(0) > 0 || settings.choice == Choice::random;
}

const SuiteTask& Suite::task(std::string_view wanted) const {
  std::vector<std::string> names;
  for (const SuiteTask& item : tasks) {
    if (item.name == wanted) return item;
    names.push_back(item.name);
  }
  throw_unknown_name("task of suite " + name, wanted, names);
}

const Tier& Suite::tier(std::int64_t evaluations) const {
  std::string known;
  for (const Tier& item : tiers) {
    if (item.evaluations == evaluations) return item;
    known += (known.empty() ? "" : ", ") + std::to_string(item.evaluations);
  }
  throw UsageError("suite '" + name + "' has no tier of " + std::to_string(evaluations) +
                   " evaluations; it has " + known);
}

std::int64_t Suite::n_runs_of(const SuiteTask& suite_task) const {
  return !is_simulated() || suite_task.has_luck() ? n_runs : 1;
}

const std::vector<Suite>& suites() {
  static const std::vector<Suite> all = [] {
    std::vector<Suite> parsed;
    for (const embedded::File& file : embedded::suites()) {
      parsed.push_back(parse_suite(file.content, std::string(file.name)));
    }
    std::sort(parsed.begin(), parsed.end(),
              [](const Suite& a, const Suite& b) { return a.name < b.name; });
    return parsed;
  }();
  return all;
}

Suite find_suite(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json")) {
    const std::string path(name_or_path);
    return parse_suite(read_file(path), path);
  }
  std::vector<std::string> names;
  for (const Suite& suite : suites()) {
    if (suite.name == name_or_path) return suite;
    names.push_back(suite.name);
  }
  throw_unknown_name("suite", name_or_path, names);
}

Task make_suite_task(const SuiteTask& suite_task, std::uint64_t seed) {
  Task task = make_task(suite_task.task);
  const SuiteSettings& settings = suite_task.settings;
  if (settings.memory) {
    ClusterParts parts = task.cluster.parts();
    for (Device& device : parts.devices) device.memory = *settings.memory;
    task.cluster = Cluster(std::move(parts));
  }
  if (settings.network) task.options.network = *settings.network;
  if (settings.choice) task.options.choice = *settings.choice;
  if (settings.noise) task.options.noise = *settings.noise;
  if (settings.enforce_memory) task.options.enforce_memory = *settings.enforce_memory;
  task.options.record_timeline = false;
  if (suite_task.has_luck()) task.options.seed = seed;
  return task;
}

void fill_in(Suite& suite) {
  for (SuiteTask& suite_task : suite.tasks) {
    const Task task = make_suite_task(suite_task);
    task.check();
    suite_task.hash = task.hash();
    suite_task.graph_hash = task.graph.hash();
    suite_task.cluster_hash = task.cluster.hash();
    suite_task.n_nodes = static_cast<std::int64_t>(task.graph.n_nodes());
    suite_task.n_devices = static_cast<std::int64_t>(task.cluster.n_devices());
    suite_task.raw_costs = task.cost_model.kind() == CostModel::Kind::raw;
    suite_task.lower_bound = task.lower_bound();
    suite_task.critical_path.reset();
    if (!suite.is_simulated()) continue;
    suite_task.critical_path = critical_path_mean(suite, suite_task);
    if (!std::isfinite(*suite_task.critical_path) || !(*suite_task.critical_path > 0)) {
      throw UsageError("task '" + suite_task.name +
                       "': critical-path, to which all agents are compared, runs out of memory or "
                       "has makespan 0; give the task more memory or work");
    }
  }
}

Suite parse_suite(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  root.allow_fields({"format", "version", "name", "revision", "summary", "engine", "seeds", "runs",
                     "first_luck", "tiers", "training", "tasks"});
  Suite suite{
      .name = root.field("name").text(),
      .revision = root.field("revision").integer(1, kLargest),
      .summary = root.field("summary").text(),
      .engine = root.field("engine").text(),
      .n_runs = root.field("runs").integer(1, kMaxRuns),
      .first_luck = static_cast<std::uint64_t>(root.field("first_luck").integer(0, kLargest)),
      .tiers = parse_tiers(root.field("tiers")),
      .training = parse_training(root.field("training"))};
  std::set<std::uint64_t> seeds;
  for (const JsonElement& item : root.field("seeds").elements()) {
    const auto seed = static_cast<std::uint64_t>(item.integer(0, kLargest));
    if (!seeds.insert(seed).second) item.fail("this seed is there twice");
    suite.seeds.push_back(seed);
  }
  if (suite.seeds.empty()) root.field("seeds").fail("expected at least one seed");
  std::set<std::string> names;
  for (const JsonElement& item : root.field("tasks").elements()) {
    suite.tasks.push_back(parse_task(item));
    if (!names.insert(suite.tasks.back().name).second) {
      item.field("name").fail("this name is there twice");
    }
  }
  if (suite.tasks.empty()) root.field("tasks").fail("expected at least one task");
  return suite;
}

std::string to_json(const Suite& suite) {
  Json tiers = Json::array();
  for (const Tier& tier : suite.tiers) {
    tiers.push_back({{"evaluations", tier.evaluations}, {"seconds", tier.seconds}});
  }
  Json tasks = Json::array();
  for (const SuiteTask& task : suite.tasks) tasks.push_back(task_json(task));
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"name", suite.name},
                     {"revision", suite.revision},
                     {"summary", suite.summary},
                     {"engine", suite.engine},
                     {"seeds", suite.seeds},
                     {"runs", suite.n_runs},
                     {"first_luck", suite.first_luck},
                     {"tiers", std::move(tiers)},
                     {"training",
                      {{"max_evaluations", suite.training.max_evaluations},
                       {"max_seconds", suite.training.max_seconds},
                       {"held_out", suite.training.held_out},
                       {"tasks", suite.training.tasks}}},
                     {"tasks", std::move(tasks)}};
  return write_json(json, "a suite");
}

}  // namespace doppler
