#include "graphs/cluster_routes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace doppler {
namespace {

constexpr std::int32_t kNotReached = -1;

// The links out of each device.
struct Adjacency {
  Adjacency(std::size_t n_devices, std::span<const Link> links) : first(n_devices + 1, 0) {
    for (const Link& link : links) ++first[link.from.index() + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    out.resize(links.size());
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (const Link& link : links) out[next[link.from.index()]++] = link;
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
// all have at least bandwidth B(t): one walk for the targets of each B, over what leads to them.
// Breadth first and ascending, that walk meets every device first by its lexicographically smallest
// path, because all paths to it are equally long and devices of a level are met in the order of
// their own paths.
class RouteFinder {
 public:
  RouteFinder(std::size_t n_devices, std::span<const Link> links)
      : adjacency_(n_devices, links),
        hops_(n_devices),
        latency_(n_devices),
        bandwidth_(n_devices),
        tight_into_(n_devices),
        marked_(n_devices, 0),
        met_(n_devices, 0),
        ahead_(n_devices),
        walked_(n_devices) {
    queue_.reserve(n_devices);
  }

  // Fills routes[t] for every reachable t other than the source.
  void find(std::size_t source, std::span<Route> routes) {
    measure(source);
    targets_.assign(queue_.begin() + 1, queue_.end());
    std::sort(targets_.begin(), targets_.end(),
              [&](std::size_t a, std::size_t b) { return bandwidth_[a] < bandwidth_[b]; });
    for (std::size_t first = 0; first < targets_.size();) {
      std::size_t end = first;
      while (end < targets_.size() && bandwidth_[targets_[end]] == bandwidth_[targets_[first]]) {
        ++end;
      }
      const std::span group = std::span(targets_).subspan(first, end - first);
      mark(group);
      walk(source);
      for (std::size_t target : group) routes[target] = walked_[target];
      first = end;
    }
  }

 private:
  // Hops, latency and bottleneck of the best path to each device and the tight links into it;
  // queue_ holds the devices reached, the source first.
  void measure(std::size_t source) {
    std::fill(hops_.begin(), hops_.end(), kNotReached);
    std::fill(latency_.begin(), latency_.end(), std::numeric_limits<double>::infinity());
    std::fill(bandwidth_.begin(), bandwidth_.end(), 0.0);
    for (auto& links : tight_into_) links.clear();
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
        if (hops_[v] == hops_[u] + 1) {
          latency_[v] = std::min(latency_[v], latency_[u] + link.latency);
        }
      }
    }
    for (std::size_t u : queue_) {
      for (const Link& link : adjacency_.links_of(u)) {
        const std::size_t v = link.to.index();
        if (hops_[v] != hops_[u] + 1 || latency_[v] != latency_[u] + link.latency) continue;
        tight_into_[v].push_back(&link);
        bandwidth_[v] = std::max(bandwidth_[v], std::min(bandwidth_[u], link.bandwidth));
      }
    }
  }

  // Collects in ahead_ the tight links, wide enough for a group of one bandwidth, that lead to it.
  void mark(std::span<const std::size_t> group) {
    ++round_;
    const double threshold = bandwidth_[group.front()];
    queue_.clear();
    const auto take = [&](std::size_t device) {
      if (marked_[device] == round_) return;
      marked_[device] = round_;
      ahead_[device].clear();
      queue_.push_back(device);
    };
    for (std::size_t target : group) take(target);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      for (const Link* link : tight_into_[queue_[i]]) {
        if (link->bandwidth < threshold) continue;
        take(link->from.index());
        ahead_[link->from.index()].push_back(link);
      }
    }
  }

  void walk(std::size_t source) {
    walked_[source] = {.n_hops = 0};
    queue_.assign(1, source);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::size_t u = queue_[i];
      std::sort(ahead_[u].begin(), ahead_[u].end(),
                [](const Link* a, const Link* b) { return a->to < b->to; });
      for (const Link* link : ahead_[u]) {
        const std::size_t v = link->to.index();
        if (met_[v] == round_) continue;
        met_[v] = round_;
        Route& route = walked_[v];
        route = walked_[u];
        if (route.n_hops == 0 || link->bandwidth < route.bandwidth) {
          route.bandwidth = link->bandwidth;
          route.channel = link->channel;
        }
        route.latency += link->latency;
        ++route.n_hops;
        queue_.push_back(v);
      }
    }
  }

  Adjacency adjacency_;
  std::vector<std::int32_t> hops_;
  std::vector<double> latency_;
  std::vector<double> bandwidth_;
  std::vector<std::vector<const Link*>> tight_into_;
  std::uint64_t round_ = 0;  // of mark() and walk(); what bears another number is of old
  std::vector<std::uint64_t> marked_;
  std::vector<std::uint64_t> met_;
  std::vector<std::vector<const Link*>> ahead_;
  std::vector<Route> walked_;
  std::vector<std::size_t> targets_;
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
