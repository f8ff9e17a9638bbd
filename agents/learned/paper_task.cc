#include "agents/learned/paper_task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace doppler {

namespace {

PathPlan path_plan(const PlacementModel& model, const MessagePlan& plan,
                   const std::vector<std::int32_t>& next, bool next_is_successor) {
  PathPlan paths;
  paths.of_node = path_classes(plan.node_class, next, model.task().graph.topological_order(),
                               next_is_successor);
  std::int32_t n_paths = 0;
  for (std::int32_t path : paths.of_node) n_paths = std::max(n_paths, path + 1);
  paths.state.resize(static_cast<std::size_t>(n_paths));
  paths.next.resize(static_cast<std::size_t>(n_paths));
  paths.weight.resize(static_cast<std::size_t>(n_paths));
  for (std::size_t v = 0; v < paths.of_node.size(); ++v) {
    const auto path = static_cast<std::size_t>(paths.of_node[v]);
    paths.state[path] = plan.node_class[v];
    paths.next[path] = next[v] < 0 ? -1 : paths.of_node[static_cast<std::size_t>(next[v])];
    paths.weight[path] += 1;
  }
  return paths;
}

GraphFeatures placed_features(const PaperTask& start, const PartialSchedule& placed) {
  const PlacementModel& model = *start.model;
  const Graph& graph = model.task().graph;
  const std::size_t n_columns = start.features.n_columns;
  GraphFeatures features = start.features;
  features.n_columns = n_columns + kPlacementFeatures;
  features.nodes.assign(features.n_nodes * features.n_columns, 0);
  for (std::size_t v = 0; v < features.n_nodes; ++v) {
    const NodeId node{static_cast<std::int64_t>(v)};
    float* const row = features.nodes.data() + v * features.n_columns;
    std::copy_n(start.features.nodes.data() + v * n_columns, n_columns, row);
    if (!placed.placed(node)) continue;
    row[n_columns] = 1;
    row[n_columns + 1] = static_cast<float>(placed.start(node) / model.time_scale());
    row[n_columns + 2] = static_cast<float>(placed.end(node) / model.time_scale());
  }

  const std::size_t n_edges = graph.n_edges();
  std::vector<double> mean_seconds(n_edges);
  std::vector<double> seconds(n_edges);
  for (std::size_t e = 0; e < n_edges; ++e) {
    const EdgeId id{static_cast<std::int64_t>(e)};
    const Edge edge = graph.edge(id);
    const double bytes = graph.edge_bytes(id);
    mean_seconds[e] = seconds[e] = model.costs().mean_transfer(bytes) / model.time_scale();
    if (!placed.placed(edge.producer) || !placed.placed(edge.reader)) continue;
    seconds[e] = model.transfer(bytes, placed.device(edge.producer), placed.device(edge.reader)) /
                 model.time_scale();
  }
  const auto total = static_cast<double>(std::max<std::size_t>(n_edges, 1));
  double sum = 0;
  for (double x : mean_seconds) sum += x;
  const double mean = sum / total;
  double squares = 0;
  for (double x : mean_seconds) squares += (x - mean) * (x - mean);
  const double deviation = std::sqrt(squares / total) + kDeviationFloor;
  std::vector<float> values(n_edges);
  for (std::size_t e = 0; e < n_edges; ++e) {
    values[e] = static_cast<float>((seconds[e] - mean) / deviation);
  }
  set_edge_values(values, features);
  return features;
}

}  // namespace

PaperTask::PaperTask(std::shared_ptr<const PlacementModel> placement, int steps)
    : PaperTask(placement, graph_features(*placement, NodeFeatures::paper), steps) {}

PaperTask::PaperTask(const PaperTask& start, const PartialSchedule& placed, int steps)
    : PaperTask(start.model, placed_features(start, placed), steps) {}

PaperTask::PaperTask(std::shared_ptr<const PlacementModel> placement, GraphFeatures task_features,
                     int steps)
    : model(std::move(placement)),
      features(std::move(task_features)),
      plan(message_plan(features, steps)),
      b_paths(path_plan(*model, plan, model->levels().b_next, true)),
      t_paths(path_plan(*model, plan, model->levels().t_next, false)) {
  std::map<std::tuple<std::int32_t, std::int32_t>, std::int32_t> numbers;
  for (std::size_t v = 0; v < features.n_nodes; ++v) {
    // A path begins at the node, so equal paths have equal classes.
    const std::tuple key(b_paths.of_node[v], t_paths.of_node[v]);
    const auto [at, is_new] = numbers.try_emplace(key, static_cast<std::int32_t>(numbers.size()));
    row_of_node.push_back(at->second);
    if (!is_new) continue;
    row_state.push_back(plan.node_class[v]);
    row_b_path.push_back(b_paths.of_node[v]);
    row_t_path.push_back(t_paths.of_node[v]);
  }
}

void paper_device_features(const PartialSchedule& schedule, NodeId node, std::span<double> out) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const PlacementModel& model = schedule.model();
  const double scale = 1 / model.time_scale();
  const std::size_t n_devices = model.n_devices();
  const auto row = [&](std::size_t d) { return out.subspan(d * kPaperDeviceFeatures); };
  for (std::size_t d = 0; d < n_devices; ++d) {
    const DeviceId device{static_cast<std::int64_t>(d)};
    const auto features = row(d);
    features[0] = schedule.device_compute(device) * scale;
    features[1] = 0;
    features[2] = kNone;
    features[3] = 0;
    features[4] = schedule.device_free(device);
  }
  NodeId previous{-1};
  for (const PlacementModel::Feed& feed : model.feeds(node)) {
    const NodeId producer = feed.producer;
    const DeviceId from = schedule.device(producer);
    const double end = schedule.end(producer);
    for (std::size_t d = 0; d < n_devices; ++d) {
      const DeviceId to{static_cast<std::int64_t>(d)};
      double& start = row(d)[4];
      start = std::max(start, end + model.transfer(feed.bytes, from, to));
    }
    if (producer == previous) continue;
    previous = producer;
    const auto features = row(from.index());
    features[1] += model.costs().compute(producer, from);
    features[2] = std::min(features[2], schedule.start(producer));
    features[3] = std::max(features[3], end);
  }
  for (std::size_t d = 0; d < n_devices; ++d) {
    const auto features = row(d);
    features[1] *= scale;
    features[2] = features[2] == kNone ? 0 : features[2] * scale;
    features[3] *= scale;
    features[4] *= scale;
  }
}

}  // namespace doppler
