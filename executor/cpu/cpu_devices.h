// The CPU engine's machine: each compute slot of a device is a thread, pinned to a core where the
// system allows it, and each lane of transfers another one; memory is the host's, counted by
// device.
#pragma once

#include <memory>

#include "executor/runtime/device_api.h"
#include "graphs/cluster.h"

namespace doppler::cpu {

// Devices as the cluster has them. If `limit_memory`, a device has no more memory than the cluster
// says; never more than this machine has left. If `goes_first`, threads go before those of other
// programs, where the system allows it (on Linux to those who may use SCHED_RR). More devices than
// cores work, and are mentioned once on standard error.
std::unique_ptr<runtime::DeviceApi> open_cpu_devices(const Cluster& cluster, bool limit_memory,
                                                     bool goes_first);

}  // namespace doppler::cpu
