// Seconds that no assignment can beat.
//
// Notation: c(v, d) compute seconds, m(v) = min over d of c(v, d), s_d slots of device d, S = sum
// of s_d, C the makespan of any execution by the rules of the simulator without noise. Only three
// facts about an execution are used, so the bound holds for every network, choice rule, schedule
// and input placement: (i) a node v on device d occupies one slot of d for c(v, d) seconds without
// a break; (ii) it starts at 0 or later and not before its predecessors have ended; (iii) a device
// runs at most s_d nodes at once. Transfers may be free, and are counted as free.
//
// Prices. Let y_d >= 0 with sum over d of s_d y_d = 1, and w(v) = min over d of y_d c(v, d). If all
// nodes of a set A run inside an interval of length L, then L >= sum over A of w(v). Proof: by (i)
// and (iii) the nodes of A on d need sum of c(v, d) <= s_d L. Multiply by y_d and add over d: L = L
// sum of s_d y_d >= sum over A of y_{d(v)} c(v, d(v)) >= sum over A of w(v). With y_d = 1 / S this
// is the sum of m(v) / S; with unequal devices other prices give more (it is the dual of the linear
// program that spreads every node over the devices), and any price is valid, so that prices are
// searched by a fixed number of steps and need not be optimal.
//
// Heads. head(v) <= start(v), by induction over a topological order: it is the larger of
//   - head(p) + m(p) over the predecessors p of v, by (ii);
//   - h + sum of w(p) over the predecessors p with head(p) >= h, for every h: all these run inside
//     [h, start(v)].
// Tails. tail(v) <= C - end(v) is the same on the reversed graph.
//
// The bound is the largest of
//   - head(v) + m(v) + tail(v) over the nodes: start(v) >= head(v), and so on. It is at least the
//     longest path of m;
//   - h + q + sum of w(v) over the nodes with head(v) >= h and tail(v) >= q, for every h and q for
//   which
//     there is one: these run inside [h, C - q] (Fernandez and Bussell, IEEE Trans. Computers
//     C-22(8), 1973, bound processors and time by such intervals). With h = q = 0 it is the sum of
//     w(v).
// Both are computed for y_d = 1 / S, and for the best prices found where devices differ.
#pragma once

#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/graph.h"

namespace doppler {

// The largest of several bounds on the makespan of the noise-free simulator, in seconds; valid for
// every assignment, network, choice rule, schedule and input placement. 0 for an empty graph.
// O((nodes + edges) log nodes) and a fixed number of passes over `costs`. Up to rounding (about
// 1e-12 relative). With noise or a real engine it is a reference only.
double lower_bound(const Graph& graph, const Cluster& cluster, const CostTable& costs);

// Whether `makespan` lies below `bound` by more than 1e-9 relative.
bool below_bound(double makespan, double bound);

}  // namespace doppler
