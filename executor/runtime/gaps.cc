#include "executor/runtime/gaps.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace doppler {

std::optional<double> median_gap(const Graph& graph, const Execution& execution) {
  if (execution.nodes.size() != graph.n_nodes()) return {};
  std::vector<std::size_t> order(graph.n_nodes());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t v) {
    const NodeRun& run = execution.nodes[v];
    return std::tuple(run.device, run.slot, run.start, run.end, v);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const NodeId before(static_cast<std::int64_t>(order[i - 1]));
    const NodeId node(static_cast<std::int64_t>(order[i]));
    const NodeRun& first = execution.nodes[before.index()];
    const NodeRun& second = execution.nodes[node.index()];
    if (first.device != second.device || first.slot != second.slot) continue;
    const auto predecessors = graph.predecessors(node);
    // Ready when p ended: nothing that arrived later counts.
    if (second.ready <= first.end &&
        std::binary_search(predecessors.begin(), predecessors.end(), before)) {
      gaps.push_back(second.start - first.end);
    }
  }
  if (gaps.empty()) return {};
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

}  // namespace doppler
