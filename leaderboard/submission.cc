#include "leaderboard/submission.h"

#include <algorithm>
#include <limits>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "doppler-submission";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// The field, or nothing where a draft leaves it out.
std::optional<JsonElement> derived(const JsonElement& element, std::string_view name,
                                   Completeness completeness) {
  if (completeness == Completeness::draft) return element.find(name);
  return element.field(name);
}

std::vector<double> makespans_of(const JsonElement& element) {
  std::vector<double> makespans;
  for (const JsonElement& item : element.elements()) makespans.push_back(makespan_of(item));
  if (makespans.empty()) element.fail("expected at least one makespan");
  return makespans;
}

Json makespans_json(const std::vector<double>& makespans) {
  Json json = Json::array();
  for (double makespan : makespans) json.push_back(makespan_json(makespan));
  return json;
}

SubmissionTask task_of(const JsonElement& element, Completeness completeness) {
  element.allow_fields({"task", "task_hash", "runs"});
  SubmissionTask task{.name = element.field("task").text()};
  if (const auto hash = derived(element, "task_hash", completeness)) task.hash = hash_of(*hash);
  for (const JsonElement& item : element.field("runs").elements()) {
    task.runs.push_back(run_of(item, completeness));
  }
  return task;
}

// The text, if `check` accepts it.
const std::string& checked(const JsonElement& element, void (*check)(const std::string&)) {
  try {
    check(element.text());
  } catch (const UsageError& error) {
    element.fail(error.what());
  }
  return element.text();
}

}  // namespace

std::string Submission::file_name() const {
  Hasher hasher;
  hasher.add(suite).add(agent).add(static_cast<std::uint64_t>(tier));
  for (const std::string& author : authors) hasher.add(author);
  // Names that were shortened or had signs replaced still differ by the digest.
  return file_name_of(suite) + "/" + file_name_of(agent) + "--" + std::to_string(tier) + "--" +
         hash_text(hasher.digest()).substr(0, 8) + ".json";
}

const std::vector<std::string>& submission_kinds() {
  static const std::vector<std::string> kinds = {"heuristic", "search", "learned", "other"};
  return kinds;
}

void check_kind(const std::string& kind) {
  const auto& kinds = submission_kinds();
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
  throw_unknown_name("kind of agent", kind, kinds);
}

void check_link(const std::string& link) {
  if (link.empty() || link.starts_with("https://") || link.starts_with("http://")) return;
  throw UsageError("expected an address that begins with https:// or http://");
}

void check_text(const std::string& name, const std::string& text, std::size_t most,
                std::string_view allowed) {
  if (text.size() > most) {
    throw UsageError(name + " has " + std::to_string(text.size()) + " bytes; at most " +
                     std::to_string(most) + " are shown, so shorten it");
  }
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (is_control && allowed.find(c) == std::string_view::npos) {
      throw UsageError(name + " has control characters; leave them out");
    }
  }
}

void check_texts(const Submission& row) {
  check_text("agent", row.agent, 200, "");
  for (const std::string& author : row.authors) check_text("authors", author, 200, "");
  check_text("link", row.link, 2000, "");
  check_text("note", row.note, 10000, "\n\t");
}

Json run_json(const SubmissionRun& run) {
  Json json = {{"seed", run.seed},
               {"assignment", assignment_json(run.assignment)},
               {"assignment_hash", hash_text(run.assignment.hash())},
               {"makespans", makespans_json(run.makespans)},
               {"evaluations", run.evaluations},
               {"seconds", run.seconds},
               {"curve", curve_json(run.curve)}};
  if (!run.critical_path.empty()) json["critical_path"] = makespans_json(run.critical_path);
  return json;
}

SubmissionRun run_of(const JsonElement& element, Completeness completeness) {
  element.allow_fields({"seed", "assignment", "assignment_hash", "makespans", "evaluations",
                        "seconds", "curve", "critical_path"});
  SubmissionRun run{.seed = static_cast<std::uint64_t>(element.field("seed").integer(0, kLargest)),
                    .assignment = assignment_of(element.field("assignment")),
                    .evaluations = element.field("evaluations").integer(1, kLargest),
                    .seconds = element.field("seconds").quantity()};
  if (const auto hash = derived(element, "assignment_hash", completeness)) {
    if (hash_of(*hash) != run.assignment.hash()) {
      hash->fail("this is not the hash of the assignment");
    }
  }
  if (const auto item = derived(element, "makespans", completeness)) {
    run.makespans = makespans_of(*item);
  }
  if (const auto item = derived(element, "curve", completeness)) run.curve = curve_of(*item);
  if (const auto item = element.find("critical_path")) run.critical_path = makespans_of(*item);
  return run;
}

Json training_json(const Training& training) {
  Json tasks = Json::array();
  for (const TrainingTask& task : training.tasks) {
    tasks.push_back({{"task", task.name},
                     {"graph_hash", hash_text(task.graph_hash)},
                     {"cluster_hash", hash_text(task.cluster_hash)}});
  }
  return {{"tasks", std::move(tasks)},
          {"evaluations", training.evaluations},
          {"seconds", training.seconds},
          {"on_suite_tasks", training.on_suite_tasks}};
}

Training training_of(const JsonElement& element) {
  element.allow_fields({"tasks", "evaluations", "seconds", "on_suite_tasks"});
  Training training{.evaluations = element.field("evaluations").integer(0, kLargest),
                    .seconds = element.field("seconds").quantity(),
                    .on_suite_tasks = element.field("on_suite_tasks").boolean()};
  for (const JsonElement& item : element.field("tasks").elements()) {
    item.allow_fields({"task", "graph_hash", "cluster_hash"});
    training.tasks.push_back({.name = item.field("task").text(),
                              .graph_hash = hash_of(item.field("graph_hash")),
                              .cluster_hash = hash_of(item.field("cluster_hash"))});
  }
  if (training.tasks.empty() && training.evaluations > 0) {
    element.field("tasks").fail("the agent was trained, so say on which tasks");
  }
  return training;
}

Submission parse_submission(std::string_view content, const std::string& source,
                            Completeness completeness) {
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format(kFormat, kVersion);
  root.allow_fields({"format", "version", "suite", "revision", "tier", "agent", "kind",
                     "parameters", "authors", "link", "note", "code_version", "command", "hardware",
                     "training", "results"});
  const auto optional_text = [&](std::string_view name) {
    const auto item = derived(root, name, completeness);
    return item ? item->text() : std::string();
  };
  Submission row{.suite = root.field("suite").text(),
                 .tier = root.field("tier").integer(1, kLargest),
                 .agent = root.field("agent").text(),
                 .kind = checked(root.field("kind"), &check_kind),
                 .note = optional_text("note"),
                 .code_version = optional_text("code_version"),
                 .command = optional_text("command")};
  if (row.agent.empty()) root.field("agent").fail("expected a name");
  row.revision = 0;
  if (const auto item = derived(root, "revision", completeness)) {
    row.revision = item->integer(1, kLargest);
  }
  if (const auto item = derived(root, "parameters", completeness)) {
    row.parameters = parameters_of(*item);
  }
  if (const auto item = derived(root, "authors", completeness)) {
    for (const JsonElement& author : item->elements()) row.authors.push_back(author.text());
  }
  if (const auto item = derived(root, "link", completeness)) row.link = checked(*item, &check_link);
  if (const auto item = derived(root, "hardware", completeness)) row.hardware = hardware_of(*item);
  if (const auto item = derived(root, "training", completeness)) row.training = training_of(*item);
  for (const JsonElement& item : root.field("results").elements()) {
    row.tasks.push_back(task_of(item, completeness));
  }
  try {
    check_texts(row);
  } catch (const UsageError& error) {
    throw ParseError(source + ": " + error.what());
  }
  return row;
}

std::string to_json(const Submission& row) {
  Json results = Json::array();
  for (const SubmissionTask& task : row.tasks) {
    Json runs = Json::array();
    for (const SubmissionRun& run : task.runs) runs.push_back(run_json(run));
    results.push_back(
        {{"task", task.name}, {"task_hash", hash_text(task.hash)}, {"runs", std::move(runs)}});
  }
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"suite", row.suite},
                     {"revision", row.revision},
                     {"tier", row.tier},
                     {"agent", row.agent},
                     {"kind", row.kind},
                     {"parameters", parameters_json(row.parameters)},
                     {"authors", row.authors},
                     {"link", row.link},
                     {"note", row.note},
                     {"code_version", row.code_version},
                     {"command", row.command},
                     {"hardware", hardware_json(row.hardware)},
                     {"training", training_json(row.training)},
                     {"results", std::move(results)}};
  write_json(json, "a submission");  // refuses names that are not UTF-8
  return json.dump() + "\n";
}

}  // namespace doppler
