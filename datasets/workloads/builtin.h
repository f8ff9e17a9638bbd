// The built-in workloads, one file each, and what they share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/workloads.h"

namespace doppler {

// One file each; workloads() in datasets/workloads.cc lists them all.
WorkloadEntry chainmm_workload();
WorkloadEntry ffnn_workload();
WorkloadEntry ffnn_train_workload();
WorkloadEntry llama_block_workload();
WorkloadEntry llama_layer_workload();
WorkloadEntry llama_stack_workload();
WorkloadEntry moe_workload();
WorkloadEntry random_dag_workload();

// An integer parameter with its range.
ParameterSpec size_parameter(std::string name, std::string summary, std::int64_t default_value,
                             std::int64_t maximum);
ParameterSpec shards_parameter(std::string summary);

// The value of `shards`, or `n_devices` where that is 0. Throws UsageError if neither is positive.
std::int64_t shards_of(const Parameters& parameters, std::int64_t n_devices);

// n = smaller * larger, as near to each other as can be, smaller <= larger.
struct FactorPair {
  std::int64_t smaller = 1;
  std::int64_t larger = 1;
};
FactorPair balanced_factors(std::int64_t n);

// Completes an entry whose `program` is set: make(), and the parameters `slices` and
// `aggregate_all` of ShardingOptions.
WorkloadEntry program_workload(WorkloadEntry entry);
ShardingOptions sharding_options(const Parameters& parameters);

}  // namespace doppler
