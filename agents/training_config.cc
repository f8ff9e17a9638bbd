#include "agents/training_config.h"

#include <cmath>
#include <limits>

#include "graphs/hash.h"
#include "graphs/number_text.h"
#include "graphs/parse_error.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-training";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

Split parse_split(const JsonElement& element) {
  for (Split split : {Split::none, Split::train, Split::test}) {
    if (element.text() == to_string(split)) return split;
  }
  element.fail("there are the splits none, train and test");
}

std::vector<std::string> texts_of(const JsonElement& element) {
  std::vector<std::string> texts;
  for (const JsonElement& item : element.elements()) texts.push_back(item.text());
  return texts;
}

std::uint64_t hash_of(const JsonElement& element) {
  const auto hash = parse_hash(element.text());
  if (!hash) element.fail("expected 16 hexadecimal digits");
  return *hash;
}

// What the run itself wrote.
void read_record(const JsonElement& record, TrainingConfig& config) {
  record.allow_fields({"code_version", "trained_on", "initial_policy"});
  config.code_version = record.field("code_version").text();
  for (const JsonElement& item : record.field("trained_on").elements()) {
    item.allow_fields({"task", "hash", "split"});
    config.trained_on.push_back(
        {item.field("task").text(), hash_of(item.field("hash")), parse_split(item.field("split"))});
  }
  if (const auto hash = record.find("initial_policy")) config.initial_policy_hash = hash_of(*hash);
}

TrainingConfig read_config(const JsonElement& root) {
  root.allow_fields({"format",
                     "version",
                     "agent",
                     "tasks",
                     "graph",
                     "cluster",
                     "settings",
                     "stages",
                     "evaluations",
                     "engine",
                     "executions",
                     "regret",
                     "seconds",
                     "seed",
                     "threads",
                     "device",
                     "init_from",
                     "dataset",
                     "checkpoint_every",
                     "allow_test_tasks",
                     "record"});
  TrainingConfig config;
  const auto text_into = [&](std::string_view name, std::string& target) {
    if (const auto element = root.find(name)) target = element->text();
  };
  const auto integer_or = [&](std::string_view name, std::int64_t otherwise, std::int64_t minimum,
                              std::int64_t maximum) {
    const auto element = root.find(name);
    return element ? element->integer(minimum, maximum) : otherwise;
  };
  TrainOptions& options = config.options;
  text_into("agent", config.agent);
  if (const auto tasks = root.find("tasks")) config.tasks = texts_of(*tasks);
  text_into("graph", config.graph);
  text_into("cluster", config.cluster);
  if (const auto settings = root.find("settings")) {
    for (const auto& [name, value] : settings->fields()) {
      config.settings[name] = value.scalar();
    }
  }
  if (const auto stages = root.find("stages")) {
    options.stages.clear();
    for (const JsonElement& stage : stages->elements()) {
      options.stages.push_back(static_cast<int>(stage.integer(1, 3)));
    }
  }
  options.max_evaluations = integer_or("evaluations", options.max_evaluations, 0, kLargest);
  text_into("engine", options.engine);
  options.max_executions = integer_or("executions", options.max_executions, 1, kLargest);
  if (const auto regret = root.find("regret")) options.max_regret = regret->quantity();
  if (const auto seconds = root.find("seconds")) options.max_seconds = seconds->quantity();
  options.seed = static_cast<std::uint64_t>(integer_or("seed", 0, 0, kLargest));
  options.n_threads = static_cast<int>(integer_or("threads", options.n_threads, 1, 1024));
  text_into("device", options.device);
  text_into("init_from", config.init_from);
  text_into("dataset", config.dataset);
  if (const auto every = root.find("checkpoint_every")) {
    try {
      config.checkpoint_every = CheckpointInterval::parse(every->text());
    } catch (const UsageError& error) {
      every->fail(error.what());
    }
  }
  if (const auto allow = root.find("allow_test_tasks")) config.allow_test_tasks = allow->boolean();
  if (const auto record = root.find("record")) read_record(*record, config);
  return config;
}

// Every field of the file that must stay as it was when a run goes on.
std::vector<std::pair<std::string, std::string>> fixed_fields(const TrainingConfig& config) {
  const Json json = Json::parse(to_json(config));
  std::vector<std::pair<std::string, std::string>> fields;
  for (const char* name :
       {"agent", "tasks", "graph", "cluster", "settings", "stages", "evaluations", "engine",
        "executions", "regret", "seed", "device", "init_from", "dataset"}) {
    fields.emplace_back(name, json.contains(name) ? json[name].dump() : "nothing");
  }
  return fields;
}

}  // namespace

CheckpointInterval CheckpointInterval::parse(std::string_view text) {
  if (text.ends_with('s')) {
    const auto seconds = parse_double(text.substr(0, text.size() - 1));
    if (seconds && *seconds > 0) return {.seconds = *seconds, .updates = 0};
  } else {
    const auto updates = parse_int64(text);
    if (updates && *updates > 0) return {.seconds = 0, .updates = *updates};
  }
  throw UsageError(quoted(text) + " is no interval; give seconds as in 30s, or updates as in 100");
}

std::string CheckpointInterval::to_string() const {
  return updates > 0 ? std::to_string(updates) : number_text(seconds) + "s";
}

std::uint64_t TrainingConfig::identity() const {
  Hasher hasher;
  hasher.add(agent).add(static_cast<std::uint64_t>(trained_on.size()));
  for (const TrainedTask& task : trained_on) hasher.add(task.hash);
  hasher.add(static_cast<std::uint64_t>(options.stages.size()));
  for (int stage : options.stages) hasher.add(static_cast<std::uint64_t>(stage));
  hasher.add(static_cast<std::uint64_t>(options.max_evaluations)).add(options.seed);
  hasher.add(options.device).add(initial_policy_hash);
  if (!options.stages.empty() && options.stages.back() == 3) {
    hasher.add(options.engine).add(static_cast<std::uint64_t>(options.max_executions));
    hasher.add(options.max_regret);
  }
  return hasher.digest();
}

TrainingConfig parse_training_config(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  if (root.find("format") || root.find("version")) root.expect_format(kFormat, kVersion);
  return read_config(root);
}

TrainingConfig parse_run_config(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  if (!root.find("record")) root.fail("this is no configuration of a run: \"record\" is missing");
  return read_config(root);
}

std::string to_json(const TrainingConfig& config) {
  Json json = {{"format", kFormat}, {"version", kVersion}, {"agent", config.agent}};
  if (!config.tasks.empty()) json["tasks"] = config.tasks;
  if (!config.graph.empty()) json["graph"] = config.graph;
  if (!config.cluster.empty()) json["cluster"] = config.cluster;
  if (!config.settings.empty()) {
    json["settings"] = Json::object();
    for (const auto& [name, value] : config.settings) {
      Json& setting = json["settings"][name];
      std::visit([&](const auto& scalar) { setting = scalar; }, value);
    }
  }
  json["stages"] = config.options.stages;
  json["evaluations"] = config.options.max_evaluations;
  const std::vector<int>& stages = config.options.stages;
  if (!stages.empty() && stages.back() == 3) {
    json["engine"] = config.options.engine;
    json["executions"] = config.options.max_executions;
    json["regret"] = config.options.max_regret;
  }
  if (std::isfinite(config.options.max_seconds)) json["seconds"] = config.options.max_seconds;
  json["seed"] = config.options.seed;
  json["threads"] = config.options.n_threads;
  json["device"] = config.options.device;
  if (!config.init_from.empty()) json["init_from"] = config.init_from;
  if (!config.dataset.empty()) json["dataset"] = config.dataset;
  json["checkpoint_every"] = config.checkpoint_every.to_string();
  json["allow_test_tasks"] = config.allow_test_tasks;
  Json record = {{"code_version", config.code_version}, {"trained_on", Json::array()}};
  for (const TrainedTask& task : config.trained_on) {
    record["trained_on"].push_back(
        {{"task", task.name}, {"hash", hash_text(task.hash)}, {"split", to_string(task.split)}});
  }
  if (config.initial_policy_hash != 0) {
    record["initial_policy"] = hash_text(config.initial_policy_hash);
  }
  json["record"] = std::move(record);
  return write_json(json, "the configuration of a training run");
}

void check_same_run(const TrainingConfig& started, const TrainingConfig& wanted) {
  const auto before = fixed_fields(started);
  const auto after = fixed_fields(wanted);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].second == after[i].second) continue;
    throw UsageError("the run was started with " + before[i].first + " " + before[i].second +
                     ", not " + after[i].second +
                     "; a run that goes on may change seconds, threads and checkpoint_every only. "
                     "To train on from what it learnt, start another run with its folder as "
                     "init_from");
  }
}

}  // namespace doppler
