// doppler-gym assign: one agent on one problem.
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/units.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Let an agent place a graph",
    .details = R"(--json prints an object: assignment (device of each node in the order of the
graph's file), makespan (seconds; null: out of memory), evaluations used, seconds to decide,
lower_bound, settings.)",
    .examples = R"(doppler-gym assign --task llama-layer@p100x4 --agent partner-list
doppler-gym assign --graph model.txt --cluster 'uniform(4)' --agent heft --out a.json)"};

// Longer assignments are not printed as text.
constexpr std::size_t kMostNodesShown = 1000;

struct AssignCommandOptions {
  ProblemOptions problem;
  std::string agent;
  BudgetOptions budget;
  std::string out;
  bool json = false;
};

Json result_json(const Task& task, const AssignCommandOptions& options,
                 const AssignResult& result) {
  Json devices = Json::array();
  for (DeviceId device : result.assignment.devices) devices.push_back(device.value);
  return {{"task", task.name},
          {"agent", options.agent},
          {"seed", options.problem.seed},
          {"settings", settings_json(task)},
          {"makespan", result.makespan},
          {"lower_bound", task.lower_bound()},
          {"evaluations", result.evaluations},
          {"seconds", result.seconds},
          {"assignment", std::move(devices)}};
}

std::string result_text(const Task& task, const AssignCommandOptions& options,
                        const AssignResult& result) {
  const Unit unit = time_unit(result.makespan, has_raw_costs(task));
  std::string text = task.name + " (" + settings_text(task) + ")\n";
  text += "makespan     " + with_unit(result.makespan, unit) + "\n";
  text += "lower bound  " + with_unit(task.lower_bound(), unit) + "\n";
  text += "decided in   " + seconds_text(result.seconds) + " with " +
          std::to_string(result.evaluations) + " evaluations by " + options.agent + "\n";
  if (!options.out.empty()) return text + "assignment   written to " + options.out + "\n";
  if (result.assignment.size() > kMostNodesShown) {
    return text + "assignment   of " + std::to_string(result.assignment.size()) +
           " nodes: --out FILE writes it, --json prints it\n";
  }
  text += "assignment  ";
  for (DeviceId device : result.assignment.devices) text += " " + std::to_string(device.value);
  return text + "\n";
}

void assign_problem(const AssignCommandOptions& options) {
  check_can_save(options.out);
  const Task task = make_problem(options.problem);
  const AssignResult result = run_agent(options.agent, task, options.budget,
                                        static_cast<std::uint64_t>(options.problem.seed));
  if (!options.out.empty()) save(options.out, to_json(result.assignment));
  print(options.json ? compact_json_text(result_json(task, options, result))
                     : result_text(task, options, result));
}

}  // namespace

void add_assign(Command& program) {
  Command command = program.add("assign", kHelp);
  auto options = std::make_shared<AssignCommandOptions>();
  command.option({"--agent", "NAME", "Who decides; see doppler-gym tasks --agents"},
                 into(options->agent), true);
  add_budget_options(command, options->budget);
  command.option({"--out", "FILE", "Also write the assignment to a file, for simulate and trace"},
                 into(options->out));
  command.flag("--json", "Print an object", options->json);
  add_problem_options(command, options->problem);
  command.run([options] { assign_problem(*options); });
}

}  // namespace doppler::cli
