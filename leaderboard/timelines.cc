#include "leaderboard/timelines.h"

#include <cmath>

#include "graphs/hash.h"
#include "leaderboard/row_parts.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

std::string key_text(const Suite& suite, const SuiteTask& task, const SubmissionRun& run) {
  const std::string key = hash_text(task.hash) + "-" + hash_text(run.assignment.hash());
  return task.has_luck() ? key + "-" + std::to_string(suite.first_luck) : key;
}

Json timeline_json(const Execution& execution, const Assignment& assignment) {
  const double scale = static_cast<double>(Timelines::kParts) / execution.makespan;
  Json starts = Json::array();
  Json ends = Json::array();
  for (const NodeRun& node : execution.nodes) {
    starts.push_back(std::llround(node.start * scale));
    ends.push_back(std::llround(node.end * scale));
  }
  Json busy = Json::array();
  for (const DeviceUse& device : execution.devices) busy.push_back(rounded(device.busy));
  return {{"makespan", execution.makespan},
          {"busy", std::move(busy)},
          {"device", assignment_json(assignment)},
          {"start", std::move(starts)},
          {"end", std::move(ends)}};
}

Json graph_json(const Simulator& simulator) {
  Json nodes = Json::array();
  Json kinds = Json::array();
  Json kind_of_node = Json::array();
  std::map<std::string, std::size_t, std::less<>> places;
  const Graph& graph = simulator.graph();
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node(static_cast<std::int64_t>(v));
    nodes.push_back(graph.name(node));
    const auto [place, is_new] = places.emplace(graph.kind(node), places.size());
    if (is_new) kinds.push_back(place->first);
    kind_of_node.push_back(place->second);
  }
  Json devices = Json::array();
  for (const Device& device : simulator.cluster().parts().devices) devices.push_back(device.kind);
  return {{"nodes", std::move(nodes)},
          {"kinds", std::move(kinds)},
          {"kind", std::move(kind_of_node)},
          {"devices", std::move(devices)}};
}

}  // namespace

void Timelines::add(const Suite& suite, const SuiteTask& task, const SubmissionRun& run) {
  if (task.n_nodes > limits_.max_nodes_of_one) return;
  const std::string key = key_text(suite, task, run);
  if (timelines_.contains(key)) return;
  if (n_nodes_ + task.n_nodes > limits_.max_nodes) {
    ++n_left_out_;
    return;
  }
  Simulator& simulator = simulator_of(task);
  const Execution execution = task.has_luck() ? simulator.run(run.assignment, suite.first_luck)
                                              : simulator.run(run.assignment);
  if (!std::isfinite(execution.makespan) || execution.makespan <= 0) return;
  n_nodes_ += task.n_nodes;
  timelines_[key] = timeline_json(execution, run.assignment);
  const std::string hash = hash_text(task.hash);
  if (!graphs_.contains(hash)) graphs_[hash] = graph_json(simulator);
}

Json Timelines::key(const Suite& suite, const SuiteTask& task, const SubmissionRun& run) const {
  std::string key = key_text(suite, task, run);
  return timelines_.contains(key) ? Json(std::move(key)) : Json(nullptr);
}

Simulator& Timelines::simulator_of(const SuiteTask& suite_task) {
  auto place = simulators_.find(suite_task.hash);
  if (place == simulators_.end()) {
    Task task = make_suite_task(suite_task);
    task.options.record_timeline = true;
    place = simulators_.emplace(suite_task.hash, task.simulator()).first;
  }
  return place->second;
}

}  // namespace doppler
