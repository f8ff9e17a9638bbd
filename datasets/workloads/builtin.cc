#include "datasets/workloads/builtin.h"

#include <utility>

#include "graphs/error.h"

namespace doppler {

ParameterSpec size_parameter(std::string name, std::string summary, std::int64_t default_value,
                             std::int64_t maximum) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .default_value = default_value,
          .minimum = 1,
          .maximum = static_cast<double>(maximum)};
}

ParameterSpec shards_parameter(std::string summary) {
  return {.name = "shards",
          .summary = std::move(summary),
          .default_value = std::int64_t{0},
          .minimum = 0,
          .maximum = 0x1p20};
}

std::int64_t shards_of(const Parameters& parameters, std::int64_t n_devices) {
  const auto shards = parameters.get<std::int64_t>("shards");
  if (shards > 0) return shards;
  if (n_devices < 1) {
    throw UsageError("shards = 0 means one a device, but there are " + std::to_string(n_devices) +
                     " devices; give shards or a cluster");
  }
  return n_devices;
}

FactorPair balanced_factors(std::int64_t n) {
  std::int64_t smaller = 1;
  for (std::int64_t divisor = 1; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) smaller = divisor;
  }
  return {smaller, n / smaller};
}

WorkloadEntry program_workload(WorkloadEntry entry) {
  entry.parameters.push_back(
      {.name = "slices",
       .summary = "slice and concat nodes where a reader takes part of a block or several blocks",
       .default_value = false});
  entry.parameters.push_back(
      {.name = "aggregate_all",
       .summary = "an aggregation after every contraction and reduction, also where it is not cut",
       .default_value = true});
  entry.make = [program = entry.program](const Parameters& parameters, std::int64_t n_devices) {
    return shard(program(parameters, n_devices), sharding_options(parameters)).graph;
  };
  return entry;
}

ShardingOptions sharding_options(const Parameters& parameters) {
  return {.slices = parameters.get<bool>("slices"),
          .aggregate_all = parameters.get<bool>("aggregate_all")};
}

}  // namespace doppler
