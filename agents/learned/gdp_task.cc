#include "agents/learned/gdp_task.h"

#include <algorithm>
#include <utility>

#include "agents/learned/graph_features.h"

namespace doppler {

GdpTask::GdpTask(std::shared_ptr<const PlacementModel> placement) : model(std::move(placement)) {
  const GraphFeatures graph = graph_features(*model, NodeFeatures::paper);
  const std::size_t n_nodes = model->n_nodes();
  n_features = graph.n_columns;
  const auto by_level = model->b_level_order();
  order.assign(by_level.begin(), by_level.end());
  std::vector<std::int32_t> place(n_nodes);
  for (std::size_t i = 0; i < n_nodes; ++i) {
    place[order[i].index()] = static_cast<std::int32_t>(i);
    const auto row =
        graph.nodes.begin() + static_cast<std::ptrdiff_t>(order[i].index() * n_features);
    features.insert(features.end(), row, row + static_cast<std::ptrdiff_t>(n_features));
  }
  first.push_back(0);
  std::vector<std::int32_t> around;
  for (NodeId node : order) {
    around.clear();
    for (const PlacementModel::Feed& feed : model->feeds(node)) {
      around.push_back(place[feed.producer.index()]);
    }
    for (NodeId reader : model->successors(node)) around.push_back(place[reader.index()]);
    std::sort(around.begin(), around.end());
    around.erase(std::unique(around.begin(), around.end()), around.end());
    neighbour.insert(neighbour.end(), around.begin(), around.end());
    first.push_back(static_cast<std::int32_t>(neighbour.size()));
  }
}

}  // namespace doppler
