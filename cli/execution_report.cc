#include "cli/execution_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/problem.h"
#include "cli/table.h"
#include "cli/units.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::size_t> nodes_by_device(const Assignment& assignment, std::size_t n_devices) {
  std::vector<std::size_t> counts(n_devices, 0);
  for (DeviceId device : assignment.devices) ++counts[device.index()];
  return counts;
}

}  // namespace

nlohmann::ordered_json timeline_json(const Task& task, const Execution& execution) {
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

nlohmann::ordered_json execution_json(const Task& task, const Assignment& assignment,
                                      const Execution& execution) {
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

}  // namespace doppler::cli
