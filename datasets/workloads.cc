#include "datasets/workloads.h"

#include "datasets/workloads/builtin.h"

namespace doppler {

const Registry<WorkloadEntry>& workloads() {
  static const Registry<WorkloadEntry> registry = [] {
    Registry<WorkloadEntry> all("workload");
    all.add(chainmm_workload());
    all.add(ffnn_workload());
    all.add(ffnn_train_workload());
    all.add(llama_block_workload());
    all.add(llama_layer_workload());
    all.add(llama_stack_workload());
    all.add(moe_workload());
    all.add(random_dag_workload());
    return all;
  }();
  return registry;
}

Graph make_workload(std::string_view spelling, std::int64_t n_devices) {
  const NamedCall call = NamedCall::parse(spelling);
  const WorkloadEntry& entry = workloads().at(call.name);
  return entry.make(Parameters(entry.parameters, call), n_devices);
}

}  // namespace doppler
