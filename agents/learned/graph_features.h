// What a graph network is told of a task: numbers of each node and of each edge, standardised.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "env/partial_schedule.h"

namespace doppler {

// (x - mean) / (population standard deviation + 1e-6) for each column of x, [rows, columns]; rows
// of weight w stand for w equal rows (empty: 1 each). In double, so that equal rows give zeros.
inline constexpr double kDeviationFloor = 1e-6;
void standardise(std::span<double> x, std::size_t n_columns, std::span<const double> weights = {});

enum class NodeFeatures : std::uint8_t {
  // DOPPLER, section 4.1: compute time, b-level, t-level, sum of incoming and of outgoing transfer
  // time.
  paper,
  // These; compute-only b-level and t-level; mean time to send every output once; compute spread
  // over devices; level; numbers of producers and readers and bytes touched, as log(1 + x). Then,
  // not standardised: the group of the node's kind, one-hot; numbers of the whole task.
  full
};
// In the order of the columns.
std::vector<std::string> node_feature_names(NodeFeatures set);

// Times count in time scales of the task, so that features carry over between tasks.
struct GraphFeatures {
  std::size_t n_nodes = 0;
  std::size_t n_columns = 0;
  std::vector<float> nodes;  // [n_nodes, n_columns]
  // The edges made bidirected: edge e is number e from producer to reader, and number n_edges + e
  // from reader to producer.
  std::vector<std::int32_t> source;  // [2 n_edges] node
  std::vector<std::int32_t> target;  // [2 n_edges] node
  std::vector<std::int32_t> value;   // [2 n_edges] index in `values`
  // The distinct values of the edge feature, the mean transfer time, standardised over the edges;
  // ascending.
  std::vector<float> values;
};

// O((nodes + edges) log edges).
GraphFeatures graph_features(const PlacementModel& model, NodeFeatures set);

// Gives edge e, in both directions, the feature edge_values[e]; [n_edges], standardised already.
// O(edges log edges).
void set_edge_values(std::span<const float> edge_values, GraphFeatures& features);

}  // namespace doppler
