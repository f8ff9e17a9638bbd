// Measurements of an engine's devices and links, by runs of small graphs made for it.
#pragma once

#include <cstdint>
#include <string>

#include "executor/engine.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

// Beyond so many devices links are not measured one by one.
inline constexpr std::size_t kMaxMeasuredDevices = 16;

// Measures each node of a graph (by signature) on each kind of device, alone on its device, and
// each link of clusters of up to kMaxMeasuredDevices devices by transfers of several sizes, one at
// a time. `runs` (>= 1) are the engine's runs for each of these; times are medians. Throws what the
// engine throws; OutOfMemoryError if the graph fits neither on one device of a kind nor on all of
// them.
Profile measure_profile(Engine& engine, const Graph& graph, const Cluster& cluster,
                        std::int64_t runs = 3);

// A cluster of `n_devices` (1 to kMaxMeasuredDevices) like devices of this kind with the rates that
// the engine reaches while all of them work: matrix products give FLOP/s, sums of large tensors
// bytes/s, empty nodes the launch overhead, transfers the links. `memory` is bytes a device. Every
// figure has its source. Throws what the engine throws.
Cluster measure_cluster(Engine& engine, const std::string& kind, std::int64_t n_devices,
                        double memory);

}  // namespace doppler
