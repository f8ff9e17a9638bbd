#include "graphs/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace doppler {
namespace {

// Prices y by column of the cost table (devices that are alike share one).
using Prices = std::vector<double>;

// Slots of the devices that share each column.
std::vector<double> slots_by_column(const Cluster& cluster, const CostTable& costs) {
  std::vector<double> slots(costs.n_columns, 0);
  for (std::size_t d = 0; d < cluster.n_devices(); ++d) {
    slots[costs.column[d]] += cluster.device(DeviceId{static_cast<std::int64_t>(d)}).streams;
  }
  return slots;
}

// Scales prices so that the slots together cost 1.
void normalise(Prices& prices, std::span<const double> slots) {
  const double total = std::inner_product(prices.begin(), prices.end(), slots.begin(), 0.0);
  for (double& price : prices) price /= total;
}

// w(v) = min over columns of y c(v, column).
double price_of(std::span<const double> seconds, const Prices& prices) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < prices.size(); ++k) least = std::min(least, prices[k] * seconds[k]);
  return least;
}

std::span<const double> row(const CostTable& costs, std::size_t node) {
  return std::span(costs.seconds).subspan(node * costs.n_columns, costs.n_columns);
}

// The sum of w(v), and for each column the seconds of the nodes that are cheapest there.
double total_price(const CostTable& costs, const Prices& prices, std::vector<double>& load) {
  std::fill(load.begin(), load.end(), 0);
  double total = 0;
  for (std::size_t v = 0; v < costs.least.size(); ++v) {
    const std::span<const double> seconds = row(costs, v);
    std::size_t cheapest = 0;
    for (std::size_t k = 1; k < prices.size(); ++k) {
      if (prices[k] * seconds[k] < prices[cheapest] * seconds[cheapest]) cheapest = k;
    }
    load[cheapest] += seconds[cheapest];
    total += prices[cheapest] * seconds[cheapest];
  }
  return total;
}

// Prices for which the sum of w(v) is large, by exponentiated subgradient steps from prices in
// proportion to the columns' speeds, which are optimal if each device is a fixed factor faster.
Prices search_prices(const CostTable& costs, std::span<const double> slots) {
  constexpr int kSteps = 64;
  const std::size_t n_columns = slots.size();
  Prices prices(n_columns, 0);
  for (std::size_t v = 0; v < costs.least.size(); ++v) {
    for (std::size_t k = 0; k < n_columns; ++k) prices[k] += row(costs, v)[k];
  }
  if (std::any_of(prices.begin(), prices.end(), [](double sum) { return !(sum > 0); })) {
    return Prices(n_columns, 1 / std::accumulate(slots.begin(), slots.end(), 0.0));
  }
  const double least_sum = *std::min_element(prices.begin(), prices.end());
  for (double& price : prices) price = least_sum / price;
  normalise(prices, slots);

  std::vector<double> load(n_columns);
  Prices best = prices;
  double best_total = -1;
  for (int step = 1; step <= kSteps; ++step) {
    const double total = total_price(costs, prices, load);
    if (total > best_total) {
      best_total = total;
      best = prices;
    }
    double largest = 0;
    for (std::size_t k = 0; k < n_columns; ++k) largest = std::max(largest, load[k] / slots[k]);
    if (!(largest > 0)) break;
    for (std::size_t k = 0; k < n_columns; ++k) {
      prices[k] *= std::exp(load[k] / slots[k] / largest / std::sqrt(step));
    }
    normalise(prices, slots);
  }
  return best;
}

// Collects nodes by tail; best() is the largest q + sum of w over the collected nodes of tail >= q,
// with q the tail of a collected node. A tree over the ranks of tails; O(log nodes) a node.
class TailSums {
 public:
  explicit TailSums(std::span<const double> tails) : sorted_(tails.begin(), tails.end()) {
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
    while (n_leaves_ < sorted_.size()) n_leaves_ *= 2;
    tree_.resize(2 * n_leaves_);
  }

  void add(double tail, double weight) {
    const auto rank = std::lower_bound(sorted_.begin(), sorted_.end(), tail) - sorted_.begin();
    std::size_t at = n_leaves_ + static_cast<std::size_t>(rank);
    tree_[at].sum += weight;
    tree_[at].best = tail + tree_[at].sum;
    for (at /= 2; at > 0; at /= 2) {
      const Item& low = tree_[2 * at];
      const Item& high = tree_[2 * at + 1];
      tree_[at] = {low.sum + high.sum, std::max(high.best, low.best + high.sum)};
    }
  }

  [[nodiscard]] double best() const { return tree_[1].best; }

 private:
  struct Item {
    double sum = 0;
    double best = -std::numeric_limits<double>::infinity();
  };
  std::vector<double> sorted_;
  std::size_t n_leaves_ = 1;
  std::vector<Item> tree_;
};

// The larger of the two bounds on what a node has before it, given what its neighbours have.
double before(std::span<const NodeId> neighbours, const std::vector<double>& distance,
              const CostTable& costs, const std::vector<double>& weight,
              std::vector<std::pair<double, double>>& scratch) {
  double result = 0;
  scratch.clear();
  for (const NodeId node : neighbours) {
    result = std::max(result, distance[node.index()] + costs.least[node.index()]);
    scratch.emplace_back(distance[node.index()], weight[node.index()]);
  }
  std::sort(scratch.begin(), scratch.end(), std::greater<>());
  double sum = 0;
  for (const auto& [h, w] : scratch) {
    sum += w;
    result = std::max(result, h + sum);
  }
  return result;
}

double bound_at(const Graph& graph, const CostTable& costs, const Prices& prices) {
  const std::size_t n = graph.n_nodes();
  std::vector<double> weight(n);
  for (std::size_t v = 0; v < n; ++v) weight[v] = price_of(row(costs, v), prices);

  std::vector<double> head(n);
  std::vector<double> tail(n);
  std::vector<std::pair<double, double>> scratch;
  const std::span<const NodeId> order = graph.topological_order();
  for (const NodeId node : order) {
    head[node.index()] = before(graph.predecessors(node), head, costs, weight, scratch);
  }
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    tail[at->index()] = before(graph.successors(*at), tail, costs, weight, scratch);
  }

  std::vector<std::size_t> by_head(n);
  std::iota(by_head.begin(), by_head.end(), std::size_t{0});
  std::sort(by_head.begin(), by_head.end(),
            [&](std::size_t a, std::size_t b) { return head[a] > head[b]; });
  double bound = 0;
  TailSums collected(tail);
  for (const std::size_t v : by_head) {
    collected.add(tail[v], weight[v]);
    bound = std::max({bound, head[v] + costs.least[v] + tail[v], head[v] + collected.best()});
  }
  return bound;
}

}  // namespace

double lower_bound(const Graph& graph, const Cluster& cluster, const CostTable& costs) {
  if (graph.n_nodes() == 0) return 0;
  const std::vector<double> slots = slots_by_column(cluster, costs);
  const Prices equal(costs.n_columns, 1 / std::accumulate(slots.begin(), slots.end(), 0.0));
  const double bound = bound_at(graph, costs, equal);
  if (costs.n_columns == 1) return bound;
  return std::max(bound, bound_at(graph, costs, search_prices(costs, slots)));
}

bool below_bound(double makespan, double bound) { return makespan < bound - 1e-9 * bound; }

}  // namespace doppler
