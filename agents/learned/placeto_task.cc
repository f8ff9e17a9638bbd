#include "agents/learned/placeto_task.h"

#include <algorithm>
#include <utility>

#include "agents/draws.h"

namespace doppler {

PlacetoTask::PlacetoTask(std::shared_ptr<const PlacementModel> placement)
    : model(std::move(placement)) {
  const Graph& graph = model->task().graph;
  const std::size_t n = model->n_nodes();
  order.assign(model->b_level_order().begin(), model->b_level_order().end());
  std::vector<std::int32_t> place(n);
  for (std::size_t i = 0; i < n; ++i) place[order[i].index()] = static_cast<std::int32_t>(i);

  float largest[2] = {0, 0};
  for (NodeId node : order) {
    double transfer = 0;
    for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
      const TensorId tensor{graph.first_tensor(node).value + static_cast<std::int64_t>(i)};
      transfer += model->costs().mean_transfer(graph.tensor_bytes(tensor));
    }
    const double values[2] = {model->costs().mean[node.index()], transfer};
    for (std::size_t c = 0; c < 2; ++c) {
      costs.push_back(static_cast<float>(values[c] / model->time_scale()));
      largest[c] = std::max(largest[c], costs.back());
    }
  }
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (largest[i % 2] > 0) costs[i] /= largest[i % 2];
  }

  n_words = (n + 63) / 64;
  reached_from.assign(n * n_words, 0);
  for (std::size_t v = 0; v < n; ++v) {
    std::uint64_t* const row = reached_from.data() + v * n_words;
    std::int32_t previous = -1;
    for (const PlacementModel::Feed& feed : model->feeds(order[v])) {
      const std::int32_t producer = place[feed.producer.index()];
      if (producer == previous) continue;
      previous = producer;
      down.from.push_back(producer);
      const auto p = static_cast<std::size_t>(producer);
      const std::uint64_t* const before = reached_from.data() + p * n_words;
      for (std::size_t w = 0; w < n_words; ++w) row[w] |= before[w];
      row[p / 64] |= std::uint64_t{1} << (p % 64);
    }
    down.first.push_back(static_cast<std::int32_t>(down.from.size()));
    for (NodeId reader : model->successors(order[v])) up.from.push_back(place[reader.index()]);
    up.first.push_back(static_cast<std::int32_t>(up.from.size()));
  }

  Draws draws(0);
  for (std::size_t v = 0; v < n; ++v) {
    start.devices.emplace_back(static_cast<std::int64_t>(draws.below(model->n_devices())));
  }
}

}  // namespace doppler
