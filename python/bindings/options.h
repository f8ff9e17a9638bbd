// The keyword arguments that say what a makespan means; Task, Simulator and simulate() share them.
#pragma once

#include <pybind11/pybind11.h>

#include "env/task.h"

namespace doppler::python {

// Of these: cost_model, network, policy, schedule, priorities, input_devices, noise, seed,
// enforce_memory; and `name` if `named`. The task is checked. Throws UsageError for an unknown
// keyword (with the nearest ones) or a value of the wrong type, InvalidError for values that do not
// fit the graph or the cluster.
Task task_of(const Graph& graph, const Cluster& cluster, const pybind11::kwargs& keywords,
             bool named);

}  // namespace doppler::python
