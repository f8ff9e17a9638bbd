// Cluster presets: p100x4, p100x8, v100x8, a100x8, h100x8, h200x8, mixed, cpu2, uniform(n),
// ring(n), mesh(n).
#pragma once

#include <functional>
#include <string_view>

#include "graphs/cluster.h"
#include "graphs/registry.h"

namespace doppler {

struct ClusterEntry : Description {
  std::function<Cluster(const Parameters&)> make;
};

const Registry<ClusterEntry>& clusters();

// From a spelling with parameters, "uniform(4)", or the path of a cluster file (holds a '/' or ends
// in
// ".json"). Throws UsageError for an unknown name or parameter, ParseError or RunError for a file.
Cluster make_cluster(std::string_view spelling);

}  // namespace doppler
