#include "leaderboard/result_row.h"

#include <cmath>
#include <memory>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/lower_bound.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-result";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kOutOfMemory = "out of memory";

Json makespan_json(double makespan) {
  return std::isfinite(makespan) ? Json(makespan) : Json(kOutOfMemory);
}

double makespan_of(const JsonElement& element) {
  if (!element.is_text()) return element.quantity();
  if (element.text() == kOutOfMemory) return std::numeric_limits<double>::infinity();
  element.fail("expected a number of at least 0, or \"out of memory\"");
}

std::uint64_t hash_of(const JsonElement& element) {
  const auto hash = parse_hash(element.text());
  if (!hash) element.fail("expected 16 hexadecimal digits");
  return *hash;
}

std::vector<Improvement> curve_of(const JsonElement& element) {
  std::vector<Improvement> curve;
  for (const JsonElement& item : element.elements()) {
    const auto parts = item.elements();
    if (parts.size() != 3) item.fail("expected [evaluations, seconds, makespan]");
    curve.push_back({parts[0].integer(1, kLargest), parts[1].quantity(), makespan_of(parts[2])});
    const bool falls = curve.size() == 1 || curve.back().makespan < curve.end()[-2].makespan;
    if (!falls) item.fail("the makespans of a curve must fall");
  }
  if (curve.empty()) element.fail("expected at least one point");
  return curve;
}

}  // namespace

std::string ResultKey::file_name() const {
  Hasher hasher;
  hasher.add(task).add(agent).add(seed);
  hasher.add(static_cast<std::uint64_t>(max_evaluations)).add(max_seconds);
  std::string name =
      file_name_of(task) + "--" + file_name_of(agent) + "--" + std::to_string(max_evaluations);
  if (std::isfinite(max_seconds)) name += "--" + file_name_of(std::to_string(max_seconds)) + "s";
  // Names that were shortened or had signs replaced still differ by the digest.
  return name + "--" + std::to_string(seed) + "--" + hash_text(hasher.digest()).substr(0, 8) +
         ".json";
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
  root.allow_fields({"format", "version", "task", "task_hash", "agent", "parameters", "seed",
                     "max_evaluations", "max_seconds", "evaluations", "seconds", "makespan",
                     "lower_bound", "raw_costs", "assignment_hash", "assignment", "curve",
                     "code_version"});
  ResultRow row;
  row.key = {.task = root.field("task").text(),
             .agent = root.field("agent").text(),
             .seed = static_cast<std::uint64_t>(root.field("seed").integer(0, kLargest)),
             .max_evaluations = root.field("max_evaluations").integer(1, kLargest)};
  if (const auto seconds = root.find("max_seconds")) row.key.max_seconds = seconds->quantity();
  row.task_hash = hash_of(root.field("task_hash"));
  for (const auto& [name, value] : root.field("parameters").fields()) {
    row.parameters[name] = value.scalar();
  }
  row.evaluations = root.field("evaluations").integer(1, kLargest);
  row.seconds = root.field("seconds").quantity();
  row.makespan = makespan_of(root.field("makespan"));
  row.lower_bound = root.field("lower_bound").quantity();
  row.raw_costs = root.field("raw_costs").boolean();
  constexpr std::int64_t kLargestDevice = std::numeric_limits<std::int32_t>::max();
  for (const JsonElement& device : root.field("assignment").elements()) {
    row.assignment.devices.emplace_back(device.integer(0, kLargestDevice));
  }
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
  Json parameters = Json::object();
  for (const auto& [name, value] : row.parameters) {
    Json& parameter = parameters[name];
    std::visit([&](const auto& scalar) { parameter = scalar; }, value);
  }
  Json devices = Json::array();
  for (DeviceId device : row.assignment.devices) devices.push_back(device.value);
  Json curve = Json::array();
  for (const Improvement& point : row.curve) {
    curve.push_back({point.evaluations, point.seconds, makespan_json(point.makespan)});
  }
  Json json = {{"format", kFormat},      {"version", kVersion},
               {"task", row.key.task},   {"task_hash", hash_text(row.task_hash)},
               {"agent", row.key.agent}, {"parameters", std::move(parameters)},
               {"seed", row.key.seed},   {"max_evaluations", row.key.max_evaluations}};
  if (std::isfinite(row.key.max_seconds)) json["max_seconds"] = row.key.max_seconds;
  json.update(Json{{"evaluations", row.evaluations},
                   {"seconds", row.seconds},
                   {"makespan", makespan_json(row.makespan)},
                   {"lower_bound", row.lower_bound},
                   {"raw_costs", row.raw_costs},
                   {"assignment_hash", hash_text(row.assignment.hash())},
                   {"assignment", std::move(devices)},
                   {"curve", std::move(curve)},
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
