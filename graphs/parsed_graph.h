// The last step of every graph reader.
#pragma once

#include <string>

#include "graphs/graph_builder.h"

namespace doppler {

// Builds the graph. Throws ParseError "source: the faults" for one that breaks a rule.
Graph build_parsed(GraphBuilder& builder, const std::string& source);

}  // namespace doppler
