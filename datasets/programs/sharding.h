// From a tensor program to a sharded graph: one node a block.
#pragma once

#include <vector>

#include "datasets/programs/program.h"
#include "graphs/graph.h"

namespace doppler {

// Defaults are those of the graphs published with the DOPPLER paper.
struct ShardingOptions {
  // Puts a slice node where a reader takes part of a block, and a concat node where it takes parts
  // of several blocks; otherwise readers take boxes of the blocks directly.
  bool slices = false;
  // An aggregation (of one input) also where no contracted or reduced dimension is cut.
  bool aggregate_all = true;
};

// A box of a value of the program that a node's output, or a graph input, holds.
struct Block {
  ValueId value;
  std::vector<Range> box;

  friend bool operator==(const Block&, const Block&) = default;
};

struct ShardedProgram {
  Graph graph;
  std::vector<Block> inputs;                      // of each graph input
  std::vector<std::pair<NodeId, Block>> results;  // blocks of Program::results()
};

// The sharded graph. A node's FLOPs are flops_per_point times the points of its block; it reads the
// boxes of its operands and writes its block. Aggregation of n parts: n - 1 FLOPs an element.
// Inputs are cut as their first reader reads them. Shards of one operation share one meta-op; its
// aggregations, the slices and the concatenations of a value have meta-ops of their own. Every node
// has attributes (docs/node-attributes.md), with which the graph alone can be executed.
// O(nodes + edges). Throws UsageError for more than max_sharded_nodes() nodes.
ShardedProgram shard(const Program& program, const ShardingOptions& options = {});

// 2,000,000: the largest graph that shard() makes.
std::int64_t max_sharded_nodes();

}  // namespace doppler
