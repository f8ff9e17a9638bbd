// Every workload at sizes that a naive evaluation does in no time.
#pragma once

#include <functional>
#include <string>

#include "datasets/workloads.h"

namespace doppler::testing {

Parameters parameters_of(const std::string& workload, const std::string& arguments);

// Calls visit(entry, arguments) for all small cases of all workloads, each in 1 to 4 shards. Throws
// std::logic_error for a workload without small sizes.
void for_each_small(
    const std::function<void(const WorkloadEntry& entry, const std::string& arguments)>& visit);

}  // namespace doppler::testing
