// doppler-gym simulate: what an assignment costs.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/problem.h"
#include "cli/table.h"
#include "cli/units.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Makespan of one assignment",
    .details = R"(--json prints an object: makespan (seconds), devices (busy seconds, peak memory in
bytes, nodes), bytes_moved, bytes_local, lower_bound, settings. If a device has too little memory,
makespan is null and out_of_memory names the device with the bytes needed and available; the exit
code is 0, for the simulation itself did not fail.)",
    .examples = R"(doppler-gym simulate --task llama-layer@p100x4 --agent critical-path
doppler-gym simulate --graph model.txt --cluster 'uniform(4)' --network independent \
    --assignment a.json --json)"};

struct SimulateOptions {
  ProblemOptions problem;
  DecisionOptions decision;
  bool timeline = false;
  bool json = false;
};

std::vector<std::size_t> nodes_by_device(const Assignment& assignment, std::size_t n_devices) {
  std::vector<std::size_t> counts(n_devices, 0);
  for (DeviceId device : assignment.devices) ++counts[device.index()];
  return counts;
}

Json timeline_json(const Task& task, const Execution& execution) {
  Json nodes = Json::array();
  for (std::size_t v = 0; v < execution.nodes.size(); ++v) {
    const NodeRun& run = execution.nodes[v];
    nodes.push_back({{"node", v},
                     {"name", task.graph.name(NodeId{static_cast<std::int64_t>(v)})},
                     {"device", run.device.value},
                     {"slot", run.slot},
                     {"ready", run.ready},
                     {"start", run.start},
                     {"end", run.end}});
  }
  Json transfers = Json::array();
  for (const TransferRun& run : execution.transfers) {
    Json transfer = run.of_input ? Json{{"input", run.input.value}}
                                 : Json{{"tensor", run.tensor.value},
                                        {"producer", task.graph.tensor_producer(run.tensor).value}};
    transfer.update(Json{{"from", run.from.value},
                         {"to", run.to.value},
                         {"channel", task.cluster.channel_name(run.channel)},
                         {"requested", run.requested},
                         {"start", run.start},
                         {"end", run.end},
                         {"bytes", run.bytes}});
    transfers.push_back(std::move(transfer));
  }
  return {{"nodes", std::move(nodes)}, {"transfers", std::move(transfers)}};
}

Json execution_json(const Task& task, const Assignment& assignment, const Execution& execution) {
  const auto counts = nodes_by_device(assignment, task.cluster.n_devices());
  Json devices = Json::array();
  for (std::size_t d = 0; d < counts.size(); ++d) {
    const DeviceUse& use = execution.devices[d];
    devices.push_back({{"device", d},
                       {"kind", task.cluster.device(DeviceId{static_cast<std::int64_t>(d)}).kind},
                       {"nodes", counts[d]},
                       {"busy", use.busy},
                       {"peak_memory", use.peak_memory}});
  }
  Json json = {{"task", task.name},
               {"settings", settings_json(task)},
               {"seed", task.options.seed},
               {"makespan", execution.makespan},
               {"lower_bound", task.lower_bound()},
               {"bytes_moved", execution.bytes_moved},
               {"bytes_local", execution.bytes_local},
               {"devices", std::move(devices)},
               {"out_of_memory", nullptr}};
  if (execution.out_of_memory) {
    const OutOfMemory& lack = *execution.out_of_memory;
    json["makespan"] = nullptr;
    json["out_of_memory"] = {
        {"device", lack.device.value}, {"needed", lack.needed}, {"available", lack.available}};
  }
  return json;
}

std::string execution_text(const Task& task, const Assignment& assignment,
                           const Execution& execution) {
  const bool raw = has_raw_costs(task);
  const double bound = task.lower_bound();
  double largest = bound;
  for (const DeviceUse& use : execution.devices) largest = std::max(largest, use.busy);
  if (std::isfinite(execution.makespan)) largest = execution.makespan;
  const Unit unit = time_unit(largest, raw);

  std::string text = task.name + " (" + settings_text(task) + ")\n";
  if (execution.out_of_memory) {
    const OutOfMemory& lack = *execution.out_of_memory;
    text += "makespan     infinite: device " + std::to_string(lack.device.value) + " needs " +
            bytes_text(lack.needed, raw) + " and has " + bytes_text(lack.available, raw) +
            " of memory (--no-enforce-memory runs it all the same)\n";
  } else {
    text += "makespan     " + with_unit(execution.makespan, unit) + "\n";
  }
  text += "lower bound  " + with_unit(bound, unit);
  if (bound > 0 && std::isfinite(execution.makespan)) {
    text += " (gap " + fixed(100 * (execution.makespan / bound - 1), 1) + " %)";
  }
  text += "\nmoved        " + bytes_text(execution.bytes_moved, raw) + ", stayed local " +
          bytes_text(execution.bytes_local, raw) + "\n\n";

  Table table({{"device", Align::right},
               {"kind"},
               {"nodes", Align::right},
               {"busy", Align::right},
               {"peak memory", Align::right}});
  const auto counts = nodes_by_device(assignment, task.cluster.n_devices());
  for (std::size_t d = 0; d < counts.size(); ++d) {
    const DeviceUse& use = execution.devices[d];
    table.add({std::to_string(d), task.cluster.device(DeviceId{static_cast<std::int64_t>(d)}).kind,
               std::to_string(counts[d]), with_unit(use.busy, unit),
               bytes_text(use.peak_memory, raw)});
  }
  return text + table.to_string();
}

void simulate(const SimulateOptions& options) {
  if (options.timeline && !options.json) {
    throw UsageError("--timeline adds to --json; give both, or see doppler-gym trace");
  }
  Task task = make_problem(options.problem);
  const Assignment assignment = decide_assignment(options.decision, task);
  task.options.record_timeline = options.timeline;
  const Execution execution = task.simulator().run(assignment);
  if (!options.json) {
    print(execution_text(task, assignment, execution));
    return;
  }
  Json json = execution_json(task, assignment, execution);
  if (!options.timeline) {
    print(json_text(json));
    return;
  }
  json["timeline"] = timeline_json(task, execution);
  print(compact_json_text(json));
}

}  // namespace

void add_simulate(Command& program) {
  Command command = program.add("simulate", kHelp);
  auto options = std::make_shared<SimulateOptions>();
  command.flag("--timeline", "With --json: also start and end of each node and transfer",
               options->timeline);
  command.flag("--json", "Print an object", options->json);
  add_decision_options(command, options->decision);
  add_problem_options(command, options->problem);
  command.run([options] { simulate(*options); });
}

}  // namespace doppler::cli
