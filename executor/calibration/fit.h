// Cost models out of what engines measured.
#pragma once

#include <span>
#include <vector>

#include "executor/execution.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

// One transfer that had its channel for itself.
struct TransferTime {
  double bytes = 0;
  double seconds = 0;
};

// latency + bytes / bandwidth, both >= 0, with the least sum of squared relative errors over the
// medians of equal sizes. Without any transfer: no latency, unlimited. O(n log n).
Profile::LinkTime fit_link(std::span<const TransferTime> transfers);

// What an execution with its timeline says of costs, [n_nodes] and [n_transfers]: the seconds for
// which each node had its slot, from the instant at which its inputs were there and its slot was
// free, so that what it costs to start it is included; and for which each transfer had its channel,
// from the instant at which it was requested and its channel was free. O(n log n).
std::vector<double> occupied_slot_seconds(const Execution& execution);
std::vector<double> occupied_channel_seconds(const Execution& execution);

// Seconds of nodes and links from executions with timelines of one graph on one cluster.
//   Each is the median over all nodes of one signature on one kind of device, and fit_link() over
// the transfers of a pair of devices; pairs without any get the fit over all transfers.
// Throws InvalidError for executions without a timeline. O(nodes and transfers, times log).
Profile fit_profile(const Graph& graph, const Cluster& cluster,
                    std::span<const Execution> executions);

}  // namespace doppler
