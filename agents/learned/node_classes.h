// Nodes that message passing cannot tell apart, so that each is computed once.
//
// Sharded graphs are full of symmetry. Two nodes whose features are equal, and whose neighbours
// are, round by round, equal over edges of equal value, have equal states after as many steps of
// message passing (colour refinement; Morris et al., AAAI 2019, theorem 1). They form one class,
// and messages run between classes, with counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agents/learned/graph_features.h"

namespace doppler {

struct MessagePlan {
  std::size_t n_classes = 0;
  std::vector<std::int32_t> node_class;      // [n_nodes]
  std::vector<std::int32_t> representative;  // [n_classes] the smallest node of each class
  std::vector<std::int32_t> class_size;      // [n_classes] nodes

  // A message is the state of one class sent over edges of one value; distinct, by value.
  std::vector<std::int32_t> message_source;  // [n_messages] class
  std::vector<std::int32_t> message_value;   // [n_messages] index in GraphFeatures::values
  std::vector<std::int32_t> value_first;     // [n_values + 1] into the messages
  // What a node of class c receives: terms term_first[c] to term_first[c + 1].
  std::vector<std::int32_t> term_first;    // [n_classes + 1]
  std::vector<std::int32_t> term_message;  // [n_terms]
  std::vector<float> term_count;           // [n_terms] edges that carry it
  // The same from the side of the messages.
  std::vector<std::int32_t> use_first;  // [n_messages + 1]
  std::vector<std::int32_t> use_class;  // [n_terms]
  std::vector<float> use_count;         // [n_terms]
};

// Classes for so many steps; with `merge` off every node is a class of its own.
// O(steps x (nodes + edges) log degree).
MessagePlan message_plan(const GraphFeatures& features, int steps, bool merge = true);

// Number of the class of each node if nodes of a class have equal class_of[v] and, following
// `next` (-1: the end), equal classes all along the path. By first appearance. O(nodes).
std::vector<std::int32_t> path_classes(std::span<const std::int32_t> class_of,
                                       std::span<const std::int32_t> next,
                                       std::span<const NodeId> topological_order,
                                       bool next_is_successor);

}  // namespace doppler
