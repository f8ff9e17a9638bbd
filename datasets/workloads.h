// Workloads: named graph generators.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "datasets/programs/program.h"
#include "datasets/programs/sharding.h"
#include "graphs/graph.h"
#include "graphs/registry.h"

namespace doppler {

// A registered workload. Every workload has an integer parameter `shards` (0: one a device), which
// says into how many parts its dimensions are cut.
struct WorkloadEntry : Description {
  // The graph; `n_devices` fills in `shards = 0`. Throws UsageError for sizes that cannot be cut.
  std::function<Graph(const Parameters&, std::int64_t n_devices)> make;
  // Total FLOPs by a closed formula that does not look at the graph; same arguments.
  std::function<double(const Parameters&, std::int64_t n_devices)> total_flops;
  // The tensor program with its cuts, of which make() gives the sharded graph; empty for a workload
  // that is none (random-dag).
  std::function<Program(const Parameters&, std::int64_t n_devices)> program = nullptr;
  // "n=1024": what make_task() takes for sizes that the user leaves out where every device is a
  // processor core (kind "cpu"), so that a run takes about 0.1 s a device and fits into memory. The
  // defaults of the parameters are those of GPUs. Empty: the same.
  std::string core_sizes = {};
};

const Registry<WorkloadEntry>& workloads();

// From a spelling with parameters: "chainmm(n=4096,shards=8)".
Graph make_workload(std::string_view spelling, std::int64_t n_devices);

}  // namespace doppler
