#include "graphs/cluster_routes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace doppler {
namespace {

constexpr std::int32_t kNotReached = -1;

// The links out of each device, ascending by the device they lead to.
struct Adjacency {
  Adjacency(std::size_t n_devices, std::span<const Link> links) : first(n_devices + 1, 0) {
    for (const Link& link : links) ++first[link.from.index() + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    out.resize(links.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (const Link& link : links) out[next[link.from.index()]++] = link;
    for (std::size_t d = 0; d < n_devices; ++d) {
      std::sort(out.begin() + static_cast<std::ptrdiff_t>(first[d]),
                out.begin() + static_cast<std::ptrdiff_t>(first[d + 1]),
                [](const Link& a, const Link& b) { return a.to < b.to; });
    }
  }
  [[nodiscard]] std::span<const Link> links_of(std::size_t device) const {
    return std::span(out).subspan(first[device], first[device + 1] - first[device]);
  }
  std::vector<std::size_t> first;
  std::vector<Link> out;
};

// Finds the routes out of one source after another. The paths of fewest hops and least latency form
// a directed acyclic graph of tight links. The widest bottleneck B(t) of a target is a maximum over
// it. A prefix of the best path to t need not be the best path to where it ends (it may be
// narrower, as long as it is at least B(t)), so the ids are compared among the paths whose links
// all have at least bandwidth B(t): one walk for each different B. Breadth first and ascending,
// that walk meets every device first by its lexicographically smallest path, because all paths to
// it are equally long and devices of a level are met in the order of their own paths.
class RouteFinder {
 public:
  RouteFinder(std::size_t n_devices, std::span<const Link> links)
      : adjacency_(n_devices, links),
        hops_(n_devices),
        latency_(n_devices),
        bandwidth_(n_devices),
        walk_(n_devices) {
    queue_.reserve(n_devices);
  }

  // Fills routes[t] for every reachable t other than the source.
  void find(std::size_t source, std::span<Route> routes) {
    measure(source);
    thresholds_.clear();
    for (std::size_t i = 1; i < queue_.size(); ++i) thresholds_.push_back(bandwidth_[queue_[i]]);
    std::sort(thresholds_.begin(), thresholds_.end());
    thresholds_.erase(std::unique(thresholds_.begin(), thresholds_.end()), thresholds_.end());
    for (double threshold : thresholds_) walk(source, threshold, routes);
  }

 private:
  // Hops, latency and bottleneck of the best path to each device; queue_ holds those reached.
  void measure(std::size_t source) {
    std::fill(hops_.begin(), hops_.end(), kNotReached);
    std::fill(latency_.begin(), latency_.end(), std::numeric_limits<double>::infinity());
    std::fill(bandwidth_.begin(), bandwidth_.end(), 0.0);
    hops_[source] = 0;
    latency_[source] = 0;
    bandwidth_[source] = std::numeric_limits<double>::infinity();
    queue_.assign(1, source);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::size_t u = queue_[i];
      for (const Link& link : adjacency_.links_of(u)) {
        const std::size_t v = link.to.index();
        if (hops_[v] == kNotReached) {
          hops_[v] = hops_[u] + 1;
          queue_.push_back(v);
        }
        if (hops_[v] == hops_[u] + 1)
          latency_[v] = std::min(latency_[v], latency_[u] + link.latency);
      }
    }
    for (std::size_t u : queue_) {
      for (const Link& link : adjacency_.links_of(u)) {
        if (!tight(u, link)) continue;
        double& widest = bandwidth_[link.to.index()];
        widest = std::max(widest, std::min(bandwidth_[u], link.bandwidth));
      }
    }
  }

  [[nodiscard]] bool tight(std::size_t u, const Link& link) const {
    const std::size_t v = link.to.index();
    return hops_[v] == hops_[u] + 1 && latency_[v] == latency_[u] + link.latency;
  }

  void walk(std::size_t source, double threshold, std::span<Route> routes) {
    for (Route& route : walk_) route.n_hops = kNotReached;
    walk_[source] = {.n_hops = 0};
    queue_.assign(1, source);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::size_t u = queue_[i];
      for (const Link& link : adjacency_.links_of(u)) {
        const std::size_t v = link.to.index();
        if (link.bandwidth < threshold || walk_[v].n_hops != kNotReached || !tight(u, link))
          continue;
        Route& route = walk_[v];
        route = walk_[u];
        if (route.n_hops == 0 || link.bandwidth < route.bandwidth) {
          route.bandwidth = link.bandwidth;
          route.channel = link.channel;
        }
        route.latency += link.latency;
        ++route.n_hops;
        if (bandwidth_[v] == threshold) routes[v] = route;
        queue_.push_back(v);
      }
    }
  }

  Adjacency adjacency_;
  std::vector<std::int32_t> hops_;
  std::vector<double> latency_;
  std::vector<double> bandwidth_;
  std::vector<Route> walk_;
  std::vector<double> thresholds_;
  std::vector<std::size_t> queue_;
};

}  // namespace

std::vector<Route> find_routes(std::size_t n_devices, std::span<const Link> links) {
  std::vector<Route> routes(n_devices * n_devices, Route{.n_hops = 0});
  if (links.size() == n_devices * (n_devices - 1)) {  // every pair has its link
    for (const Link& link : links) {
      routes[link.from.index() * n_devices + link.to.index()] = {link.latency, link.bandwidth,
                                                                 link.channel, 1};
    }
    return routes;
  }
  RouteFinder finder(n_devices, links);
  for (std::size_t source = 0; source < n_devices; ++source) {
    finder.find(source, std::span(routes).subspan(source * n_devices, n_devices));
  }
  return routes;
}

}  // namespace doppler
