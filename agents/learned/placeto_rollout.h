// Placeto's network in plain loops. From one step to the next only what the change can reach is
// computed anew; the formulas are in placeto_network.h.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "agents/learned/placeto_network.h"

namespace doppler {

// Serves one thread.
class PlacetoRollout {
 public:
  explicit PlacetoRollout(std::shared_ptr<const PlacetoTask> task);

  // Every node on the device of `start`, or (nullptr) on none; none is placed. The weights outlive
  // the episode. O(rounds x (nodes + edges)).
  void begin(const PlacetoWeights& weights, const Assignment* start);
  // Node v of the order is the one that is being placed. Takes effect in update(), like placed().
  void visit(std::size_t v);
  void placed(std::size_t v, DeviceId device);
  // Passes messages again from the nodes whose features have changed.
  void update();
  // Log-probabilities of the devices for node v, by the embeddings as they are. O(nodes).
  std::span<const float> score(std::size_t v);

 private:
  struct Direction {
    std::vector<std::vector<float>> states;  // [rounds + 1][n_nodes, width] x_k
    std::vector<std::vector<float>> sent;    // [rounds][n_nodes, width]
  };
  using Nodes = std::vector<std::int32_t>;

  void touch(std::size_t v);
  // Appends a node to `nodes` unless it is there already, by `mark`.
  void add(std::int32_t node, Nodes& nodes);
  void embed_own(const Nodes& changed);
  void listen(std::size_t direction, std::size_t round, std::int32_t node, float* out);
  void pass(std::size_t direction, const Nodes& changed, Nodes& moved);
  void prepare_groups(const Nodes& moved);

  std::shared_ptr<const PlacetoTask> task_;
  const PlacetoWeights* weights_ = nullptr;
  std::size_t n_columns_;
  std::vector<float> features_;  // [n_nodes, n_columns]
  std::vector<float> own_;       // [n_nodes, width] s
  std::array<Direction, 2> directions_;
  std::vector<float> embedding_;            // [n_nodes, 2 width] H
  std::array<std::vector<float>, 3> sent_;  // [n_nodes, 2 width] relu(A H), by group
  Nodes changed_;                           // since the last update
  std::vector<std::uint64_t> marks_;
  std::uint64_t walk_ = 0;
  // Scratch.
  Nodes present_, next_, moved_;
  std::vector<float> one_, two_, seen_, scores_;
};

}  // namespace doppler
