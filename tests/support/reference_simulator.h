// A second simulator for the tests: slow and obvious. It keeps no queue of events; at each round of
// each instant it looks at every node and every transfer again, and memory is added up afterwards
// from the finished timeline. The simulator proper is judged by it.
//
// Where the rules of the house leave something open, this is what both mean:
//
// Rounds. Step 1 of a round takes everything that ends or arrives at the instant, also what follows
// from it without a node starting or a transfer being requested: in `channel` the transfer next in
// line takes the channel at once, and arrives in the same step if it takes no time; in `fair` a
// transfer whose share lets it finish at the same instant (in rounding) arrives in the same step.
// Steps 2 to 4 follow; what they make for the same instant (zero-cost nodes, transfers that take no
// time) belongs to the next round. Graph inputs are requested in step 4 of the first round at 0.
//
// Choice. Keys are compared as a whole among all ready nodes that wait for the device, those of an
// earlier round of the same instant included: fifo (ready instant, id); priority (highest, then
// fifo); random (key, then fifo). A slot of a node that ended is free in the same round.
//
// Transfers. The factor f is that of the noise; sums in double in exactly this order.
//   independent: end = requested + (latency + bytes / bandwidth) * f
//   channel:     start = max(requested, end of the transfer before it on the channel);
//                end = start + (latency + bytes / bandwidth) * f
//   fair:        starts to move at requested + latency * f with bytes * f left. One that has 0
//   left,
//                or whose link and channel are both unlimited, arrives right then and is never seen
//                by the others. Rates change only when a transfer of the channel starts to move or
//                finishes ("event of the channel"). At an event at t: every moving transfer's left
//                becomes max(0, left - rate * (t - instant of the channel's last event)); those
//                whose predicted finish is exactly t leave; those that start at t join; rates are
//                found anew; predicted finish = t + left / rate for all that move. Rates: by
//                ascending link bandwidth b, share = what is left of the capacity / number without
//                a rate; if b <= share the rate is b and is taken from the capacity, else share is
//                the rate of this one and of all that follow. With unlimited capacity the rate is
//                b.
//   TransferRun::start is `requested` except in channel.
//
// Bulk-synchronous. Graph inputs that are placed travel first, from 0; then for each depth its
// nodes run by the rounds above, all ready at the barrier, and all transfers of their outputs are
// requested at the end of the last one, by ascending tensor, then device; the next depth starts at
// the last arrival. NodeRun::ready is the phase's start.
//
// Memory. A buffer occupies its device at t if from <= t < to; a buffer of zero length in time
// never counts. A node's tensor: from the node's start; to the latest of the ends of its readers on
// that device and the ends of its outgoing transfers; it stays if nobody reads it. A received copy:
// from TransferRun::start to the latest end of its readers there. Graph inputs that are read:
// replicated, from 0 on, on each device with a reader; placed, from 0 on on their own device, and
// from TransferRun::start on, on every other device with a reader; they all stay. The peak is the
// largest sum over all instants. Too little memory (enforced): the makespan is infinite,
// out_of_memory names the device of the smallest id that is too small; everything else is as with
// unlimited memory.
//
// DeviceUse::busy is the sum of the durations with noise. Replicated graph inputs count neither as
// moved nor as local bytes.
#pragma once

#include "executor/execution.h"
#include "executor/run_options.h"
#include "graphs/assignment.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler::testing {

// O(rounds * (nodes + edges + transfers)) and more; for graphs of a few hundred nodes.
Execution reference_run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                        const Assignment& assignment, const RunOptions& options = {});

}  // namespace doppler::testing
