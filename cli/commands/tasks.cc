// doppler-gym tasks: everything that is registered, with its parameters.
#include <memory>
#include <string>
#include <variant>

#include "agents/agent.h"
#include "cli/commands/commands.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/units.h"
#include "datasets/clusters.h"
#include "datasets/tasks.h"
#include "datasets/workloads.h"
#include "executor/engine.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "List tasks, or what they are made of, with every parameter",
    .details = R"(Without a flag: registered tasks. Any workload on any cluster is a task too:
'chainmm(n=4096,shards=8)@v100x8'.)",
    .examples = R"(doppler-gym tasks
doppler-gym tasks --workloads --clusters
doppler-gym tasks --agents --json)"};

struct TasksOptions {
  bool workloads = false;
  bool clusters = false;
  bool agents = false;
  bool engines = false;
  bool json = false;
};

Json value_json(const ParameterValue& value) {
  return std::visit([](const auto& x) { return Json(x); }, value);
}

// By the alternatives of ParameterValue.
constexpr const char* kTypeNames[] = {"boolean", "integer", "number", "text"};

std::string type_name(const ParameterSpec& parameter) {
  return kTypeNames[parameter.default_value.index()];
}

Json parameter_json(const ParameterSpec& parameter) {
  return {{"name", parameter.name},
          {"summary", parameter.summary},
          {"type", type_name(parameter)},
          {"default", value_json(parameter.default_value)},
          {"minimum", json_or_null(parameter.minimum)},
          {"maximum", json_or_null(parameter.maximum)},
          {"choices", parameter.choices}};
}

Json description_json(const Description& entry) {
  Json parameters = Json::array();
  for (const ParameterSpec& parameter : entry.parameters) {
    parameters.push_back(parameter_json(parameter));
  }
  return {{"name", entry.name},
          {"summary", entry.summary},
          {"source", entry.source},
          {"parameters", std::move(parameters)}};
}

std::string range_text(const ParameterSpec& parameter) {
  std::string text;
  for (const std::string& choice : parameter.choices) text += (text.empty() ? "" : "|") + choice;
  if (!text.empty()) return text;
  const bool whole = std::holds_alternative<std::int64_t>(parameter.default_value);
  const auto bound = [&](double value) { return whole ? fixed(value, 0) : Json(value).dump(); };
  if (parameter.minimum && parameter.maximum) {
    return bound(*parameter.minimum) + " to " + bound(*parameter.maximum);
  }
  if (parameter.minimum) return "at least " + bound(*parameter.minimum);
  if (parameter.maximum) return "at most " + bound(*parameter.maximum);
  return "";
}

std::string description_text(const Description& entry) {
  std::string text = "  " + entry.name + ": " + entry.summary + "\n";
  if (!entry.source.empty()) text += "      source: " + entry.source + "\n";
  if (entry.parameters.empty()) return text;
  Table table({{"      parameter"}, {"type"}, {"default"}, {"range"}, {"meaning"}});
  for (const ParameterSpec& parameter : entry.parameters) {
    table.add({"      " + parameter.name, type_name(parameter),
               value_json(parameter.default_value).dump(), range_text(parameter),
               parameter.summary});
  }
  return text + table.to_string();
}

void add_field(Json& json, const AgentEntry& agent) {
  json["family"] = agent.family;
  json["deterministic"] = agent.deterministic;
}
void add_field(Json& json, const Description& other) {
  static_cast<void>(json);
  static_cast<void>(other);
}

template <class Entries>
Json registry_json(const Entries& registry) {
  Json list = Json::array();
  for (const auto& [name, entry] : registry) {
    list.push_back(description_json(entry));
    add_field(list.back(), entry);
  }
  return list;
}

template <class Entries>
std::string registry_text(const std::string& title, const Entries& registry) {
  std::string text = title + "\n";
  for (const auto& [name, entry] : registry) text += description_text(entry);
  return text;
}

Json tasks_json() {
  Json list = Json::array();
  for (const auto& [name, entry] : tasks()) {
    const Task task = entry.make();
    list.push_back({{"name", name},
                    {"nodes", task.graph.n_nodes()},
                    {"edges", task.graph.n_edges()},
                    {"devices", task.cluster.n_devices()},
                    {"split", to_string(entry.split)},
                    {"summary", entry.summary}});
  }
  return list;
}

std::string tasks_text(const Json& list) {
  Table table({{"task"},
               {"nodes", Align::right},
               {"edges", Align::right},
               {"devices", Align::right},
               {"split"},
               {"summary"}});
  for (const Json& task : list) {
    table.add({task["name"], task["nodes"].dump(), task["edges"].dump(), task["devices"].dump(),
               task["split"], task["summary"]});
  }
  return table.to_string();
}

void list_registered(const TasksOptions& options) {
  Json json = Json::object();
  std::string text;
  if (options.workloads) {
    json["workloads"] = registry_json(workloads());
    text += registry_text("workloads (name one as workload@cluster)", workloads());
  }
  if (options.clusters) {
    json["clusters"] = registry_json(clusters());
    text += registry_text("clusters", clusters());
  }
  if (options.agents) {
    json["agents"] = registry_json(agents());
    text += registry_text("agents", agents());
  }
  if (options.engines) {
    json["engines"] = registry_json(engines());
    text += registry_text("engines", engines());
  }
  if (json.empty()) {
    json["tasks"] = tasks_json();
    text = tasks_text(json["tasks"]);
  }
  print(options.json ? json_text(json) : text);
}

}  // namespace

void add_tasks(Command& program) {
  Command command = program.add("tasks", kHelp);
  auto options = std::make_shared<TasksOptions>();
  command.flag("--workloads", "List workloads with their parameters", options->workloads);
  command.flag("--clusters", "List cluster presets", options->clusters);
  command.flag("--agents", "List agents", options->agents);
  command.flag("--engines", "List engines", options->engines);
  command.flag("--json", "Print an object with a list for each kind", options->json);
  command.run([options] { list_registered(*options); });
}

}  // namespace doppler::cli
