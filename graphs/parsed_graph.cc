#include "graphs/parsed_graph.h"

#include "graphs/error.h"

namespace doppler {

Graph build_parsed(GraphBuilder& builder, const std::string& source) {
  try {
    return builder.build();
  } catch (const InvalidError& error) {
    constexpr std::size_t kMaxBytes = 1500;
    std::string faults = error.what();
    if (faults.size() > kMaxBytes) faults = faults.substr(0, kMaxBytes) + "...";
    throw ParseError(source + ": " + faults);
  }
}

}  // namespace doppler
