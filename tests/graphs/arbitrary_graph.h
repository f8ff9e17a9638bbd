// Graphs with everything that a Graph can hold, for round trips.
#pragma once

#include <cstdint>

#include "graphs/graph.h"

namespace doppler::testing {

// A graph of up to 30 nodes, some without edges, outputs, kinds or attributes; names with quotes,
// control characters and characters beyond ASCII; amounts of every magnitude.
Graph arbitrary_graph(std::uint64_t seed);

// A graph of the kind that the text format holds exactly: nodes named by number, one output each,
// raw seconds that are the FLOPs, inputs named by number.
Graph arbitrary_text_graph(std::uint64_t seed);

}  // namespace doppler::testing
