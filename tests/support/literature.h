// The example of Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, from the reference folder.
#pragma once

#include <optional>
#include <vector>

#include "graphs/assignment.h"
#include "graphs/graph.h"

namespace doppler::testing {

// Raw costs for three devices; each edge carries a tensor of its own. Run on Cluster::uniform(3).
struct LiteratureExample {
  Graph graph;
  Assignment heft;
  std::vector<double> heft_start;  // seconds, one a node
  double heft_makespan = 0;
  double optimum = 0;
};

// Empty, with a warning, where the reference folder is absent.
std::optional<LiteratureExample> literature_example();

}  // namespace doppler::testing
