#include "leaderboard/result_row.h"

#include <cmath>
#include <memory>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/lower_bound.h"
#include "graphs/number_text.h"
#include "graphs/strict_json.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-result";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string ResultKey::file_name() const {
  Hasher hasher;
  hasher.add(task).add(agent).add(seed);
  hasher.add(static_cast<std::uint64_t>(max_evaluations)).add(max_seconds);
  if (!settings.empty()) hasher.add(task_text());
  std::string name =
      file_name_of(task) + "--" + file_name_of(agent) + "--" + std::to_string(max_evaluations);
  if (std::isfinite(max_seconds)) name += "--" + file_name_of(std::to_string(max_seconds)) + "s";
  // Names that were shortened or had signs replaced still differ by the digest.
  return name + "--" + std::to_string(seed) + "--" + hash_text(hasher.digest()).substr(0, 8) +
         ".json";
}

std::string ResultKey::task_text() const {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += (text.empty() ? " (" : ", ") + name + "=";
    if (const auto* word = std::get_if<std::string>(&value)) text += *word;
    if (const auto* number = std::get_if<double>(&value)) text += number_text(*number);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) text += std::to_string(*whole);
    if (const auto* flag = std::get_if<bool>(&value)) text += *flag ? "true" : "false";
  }
  return task + (text.empty() ? "" : text + ")");
}

Task with_luck_of(Task task, std::uint64_t seed) {
  if (task.options.noise > 0 || task.options.choice == Choice::random) task.options.seed = seed;
  return task;
}

ResultRow run_row(const ResultKey& key, const Task& task, const std::string& code_version) {
  const Task lucky = with_luck_of(task, key.seed);
  ResultRow row{.key = key,
                .task_hash = lucky.hash(),
                .parameters = agent_parameters(key.agent),
                .lower_bound = lucky.lower_bound(),
                .raw_costs = lucky.cost_model.kind() == CostModel::Kind::raw,
                .code_version = code_version};
  AssignOptions options{
      .seed = key.seed, .max_evaluations = key.max_evaluations, .max_seconds = key.max_seconds};
  options.on_better = [&](const Improvement& improvement) { row.curve.push_back(improvement); };
  AssignResult result = assign(*make_agent(key.agent), lucky, options);
  row.evaluations = result.evaluations;
  row.seconds = result.seconds;
  row.makespan = result.makespan;
  row.assignment = std::move(result.assignment);
  if (lucky.options.noise == 0 && below_bound(row.makespan, row.lower_bound)) {
    throw RunError(
        task.name + ", agent " + key.agent +
        ": the makespan is below the proved lower bound; this is a fault of doppler-gym, "
        "please report it");
  }
  return row;
}

ResultRow parse_row(std::string_view content, const std::string& source) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  root.allow_fields({"format", "version", "task", "task_hash", "settings", "agent", "parameters",
                     "seed", "max_evaluations", "max_seconds", "evaluations", "seconds", "makespan",
                     "lower_bound", "raw_costs", "assignment_hash", "assignment", "curve",
                     "code_version"});
  ResultRow row;
  row.key = {.task = root.field("task").text(),
             .agent = root.field("agent").text(),
             .seed = static_cast<std::uint64_t>(root.field("seed").integer(0, kLargest)),
             .max_evaluations = root.field("max_evaluations").integer(1, kLargest)};
  if (const auto seconds = root.find("max_seconds")) row.key.max_seconds = seconds->quantity();
  row.task_hash = hash_of(root.field("task_hash"));
  if (const auto settings = root.find("settings")) {
    row.key.settings = parameters_of(*settings);
    if (row.key.settings.empty()) settings->fail("leave it out where there are none");
  }
  row.parameters = parameters_of(root.field("parameters"));
  row.evaluations = root.field("evaluations").integer(1, kLargest);
  row.seconds = root.field("seconds").quantity();
  row.makespan = makespan_of(root.field("makespan"));
  row.lower_bound = root.field("lower_bound").quantity();
  row.raw_costs = root.field("raw_costs").boolean();
  row.assignment = assignment_of(root.field("assignment"));
  if (row.assignment.hash() != hash_of(root.field("assignment_hash"))) {
    root.field("assignment_hash").fail("this is not the hash of the assignment");
  }
  row.curve = curve_of(root.field("curve"));
  if (row.curve.back().makespan > row.makespan) {
    root.field("curve").fail("the last point is worse than the row's makespan");
  }
  row.code_version = root.field("code_version").text();
  return row;
}

std::string to_json(const ResultRow& row) {
  Json json = {{"format", kFormat},      {"version", kVersion},
               {"task", row.key.task},   {"task_hash", hash_text(row.task_hash)},
               {"agent", row.key.agent}, {"parameters", parameters_json(row.parameters)},
               {"seed", row.key.seed},   {"max_evaluations", row.key.max_evaluations}};
  if (std::isfinite(row.key.max_seconds)) json["max_seconds"] = row.key.max_seconds;
  if (!row.key.settings.empty()) json["settings"] = parameters_json(row.key.settings);
  json.update(Json{{"evaluations", row.evaluations},
                   {"seconds", row.seconds},
                   {"makespan", makespan_json(row.makespan)},
                   {"lower_bound", row.lower_bound},
                   {"raw_costs", row.raw_costs},
                   {"assignment_hash", hash_text(row.assignment.hash())},
                   {"assignment", assignment_json(row.assignment)},
                   {"curve", curve_json(row.curve)},
                   {"code_version", row.code_version}});
  write_json(json, "a result row");  // refuses names that are not UTF-8
  return json.dump() + "\n";
}

void check_row(const ResultRow& row, const Task& task) {
  const Task lucky = with_luck_of(task, row.key.seed);
  if (lucky.hash() != row.task_hash) {
    throw RunError("the row is of another version of task '" + row.key.task + "' (hash " +
                   hash_text(row.task_hash) + ", now " + hash_text(lucky.hash()) + ")");
  }
  Decision{.assignment = row.assignment}.check(lucky);
  const double makespan = lucky.simulator().makespan(row.assignment.devices);
  if (makespan != row.makespan) {
    throw RunError("the row's makespan is " + std::to_string(row.makespan) +
                   " s, but its "
                   "assignment gives " +
                   std::to_string(makespan) + " s");
  }
}

}  // namespace doppler
