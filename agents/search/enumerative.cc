// Enumerative: meta-op by meta-op, the permutation of devices that moves least time.
//
// The baseline of that name in the DOPPLER paper. Groups of shards (shard_groups.h) are taken in
// topological order, each in parts of as many shards as there are devices. The shards of a part go
// to different devices: every permutation (for a smaller part, every injective choice) is tried,
// and the one is kept for which the seconds of all transfers into the shards, and into the
// aggregations that read them, are least. An aggregation is a node of kind "aggregate" ("formation"
// in the published graphs) that reads shards of the group and nothing else; it is placed greedily,
// where least has to be moved to. A tensor goes to a device once; producers that are not placed yet
// cost nothing. Ties go to the devices with less compute so far, then to smaller ids.
//
// Choices that cannot become better than the best one are cut off, which changes no result. Above
// kMaxEnumerated devices permutations are too many: there the transfers into the shards alone
// decide, as an assignment problem that is solved exactly. Computation times and memory play no
// part, and no engine is run.
#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/search/matching.h"
#include "agents/search/search.h"
#include "agents/search/shard_groups.h"

namespace doppler {

namespace {

constexpr std::size_t kMaxEnumerated = 8;  // devices; 8! = 40,320 permutations

// One tensor of a shard that an aggregation reads.
struct Read {
  std::size_t aggregation = 0;  // of the group
  double bytes = 0;
};

// Adds what one read moves to each device, if its shard is on `from`. [aggregations, devices].
void add_read(const PlacementModel& model, const Read& read, DeviceId from,
              std::vector<double>& gathered) {
  const std::size_t n_devices = model.n_devices();
  for (std::size_t d = 0; d < n_devices; ++d) {
    const DeviceId to(static_cast<std::int64_t>(d));
    gathered[read.aggregation * n_devices + d] += model.transfer(read.bytes, from, to);
  }
}

// Every injective choice of devices for the shards of a part.
class Enumeration {
 public:
  // `seconds` is [shards, devices]: transfers into a shard; `reads` by shard; `gathered` is
  // [aggregations, devices]: transfers into each from the parts before.
  Enumeration(const PlacementModel& model, std::span<const DeviceId> devices,
              std::span<const double> seconds, std::span<const std::vector<Read>> reads,
              std::vector<double> gathered)
      : model_(model), devices_(devices), seconds_(seconds), reads_(reads) {
    const std::size_t n_shards = reads.size();
    gathered_.assign(n_shards + 1, std::move(gathered));
    chosen_.resize(n_shards);
    best_.resize(n_shards);
    taken_.assign(devices.size(), false);
    least_ahead_.assign(n_shards + 1, 0);
    for (std::size_t s = n_shards; s-- > 0;) {
      const auto row = seconds.subspan(s * devices.size(), devices.size());
      least_ahead_[s] = least_ahead_[s + 1] + *std::min_element(row.begin(), row.end());
    }
  }

  // The device of each shard.
  const std::vector<DeviceId>& solve() {
    descend(0, 0);
    return best_;
  }

 private:
  void descend(std::size_t shard, double shard_seconds) {
    // What is gathered only grows with more shards, so this is a lower bound, and exact at the end.
    const double bound = shard_seconds + least_ahead_[shard] + gather_seconds(gathered_[shard]);
    if (bound >= best_seconds_) return;
    if (shard == reads_.size()) {
      best_seconds_ = bound;
      best_ = chosen_;
      return;
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (taken_[i]) continue;
      const DeviceId device = devices_[i];
      taken_[i] = true;
      chosen_[shard] = device;
      gathered_[shard + 1] = gathered_[shard];
      for (const Read& read : reads_[shard]) {
        add_read(model_, read, device, gathered_[shard + 1]);
      }
      descend(shard + 1, shard_seconds + seconds_[shard * devices_.size() + device.index()]);
      taken_[i] = false;
    }
  }

  // Each aggregation where least has to be moved to.
  [[nodiscard]] double gather_seconds(const std::vector<double>& gathered) const {
    double sum = 0;
    const auto n_devices = static_cast<std::ptrdiff_t>(devices_.size());
    for (auto row = gathered.begin(); row != gathered.end(); row += n_devices) {
      sum += *std::min_element(row, row + n_devices);
    }
    return sum;
  }

  const PlacementModel& model_;
  std::span<const DeviceId> devices_;  // in the order in which they are tried
  std::span<const double> seconds_;
  std::span<const std::vector<Read>> reads_;
  std::vector<std::vector<double>> gathered_;  // by number of shards placed
  std::vector<double> least_ahead_;            // transfers into the shards from this one on
  std::vector<DeviceId> chosen_;
  std::vector<char> taken_;
  std::vector<DeviceId> best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
};

// One assignment under way.
class Placement {
 public:
  explicit Placement(const PlacementModel& model)
      : model_(model),
        n_devices_(model.n_devices()),
        assignment_(model.n_nodes(), DeviceId{-1}),
        arrived_(model.task().graph.n_tensors() * n_devices_, false),
        load_(n_devices_, 0),
        group_of_(model.n_nodes(), -1),
        aggregation_of_(model.n_nodes(), -1) {}

  Assignment run() {
    const auto groups = shard_groups(model_.task().graph);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (NodeId node : groups[g]) group_of_[node.index()] = static_cast<std::int64_t>(g);
    }
    for (const auto& group : groups) place_group(group);
    return std::move(assignment_);
  }

 private:
  [[nodiscard]] bool placed(NodeId node) const { return assignment_[node].value >= 0; }

  [[nodiscard]] bool is_aggregation(NodeId node) const {
    const std::string_view kind = model_.task().graph.kind(node);
    return kind == "aggregate" || kind == "formation";
  }

  void place_group(std::vector<NodeId> shards) {
    std::erase_if(shards, [&](NodeId node) { return placed(node); });
    const std::vector<NodeId> aggregations = find_aggregations(shards);
    std::vector<double> gathered(aggregations.size() * n_devices_, 0);
    for (std::size_t first = 0; first < shards.size(); first += n_devices_) {
      const std::size_t n = std::min(n_devices_, shards.size() - first);
      place_part(std::span(shards).subspan(first, n), gathered);
    }
    for (std::size_t a = 0; a < aggregations.size(); ++a) {
      DeviceId best{0};
      for (std::size_t d = 1; d < n_devices_; ++d) {
        const double seconds = gathered[a * n_devices_ + d];
        const double least = gathered[a * n_devices_ + best.index()];
        if (seconds < least || (seconds == least && load_[d] < load_[best.index()])) {
          best = DeviceId(static_cast<std::int64_t>(d));
        }
      }
      place(aggregations[a], best);
    }
  }

  // Aggregations that read the shards and nothing else. Notes their index.
  std::vector<NodeId> find_aggregations(const std::vector<NodeId>& shards) {
    std::vector<NodeId> aggregations;
    for (NodeId shard : shards) {
      for (NodeId reader : model_.successors(shard)) {
        if (placed(reader) || aggregation_of_[reader.index()] >= 0) continue;
        const auto group = group_of_[shard.index()];
        // A node of the group itself is placed with the others.
        if (group_of_[reader.index()] == group || !is_aggregation(reader)) continue;
        const auto feeds = model_.feeds(reader);
        if (!std::all_of(feeds.begin(), feeds.end(), [&](const PlacementModel::Feed& feed) {
              return group_of_[feed.producer.index()] == group && !placed(feed.producer);
            })) {
          continue;
        }
        aggregation_of_[reader.index()] = static_cast<std::int64_t>(aggregations.size());
        aggregations.push_back(reader);
      }
    }
    return aggregations;
  }

  void place_part(std::span<const NodeId> shards, std::vector<double>& gathered) {
    std::vector<DeviceId> devices;
    for (std::size_t d = 0; d < n_devices_; ++d) devices.emplace_back(static_cast<std::int64_t>(d));
    std::stable_sort(devices.begin(), devices.end(),
                     [&](DeviceId a, DeviceId b) { return load_[a.index()] < load_[b.index()]; });
    std::vector<std::vector<Read>> reads(shards.size());
    for (std::size_t s = 0; s < shards.size(); ++s) {
      for (NodeId reader : model_.successors(shards[s])) {
        if (aggregation_of_[reader.index()] < 0 || placed(reader)) continue;
        for (const PlacementModel::Feed& feed : model_.feeds(reader)) {
          if (feed.producer != shards[s]) continue;
          reads[s].push_back(
              {static_cast<std::size_t>(aggregation_of_[reader.index()]), feed.bytes});
        }
      }
    }
    const std::vector<DeviceId> chosen = choose(shards, devices, reads, gathered);
    for (std::size_t s = 0; s < shards.size(); ++s) {
      place(shards[s], chosen[s]);
      for (const Read& read : reads[s]) {
        add_read(model_, read, chosen[s], gathered);
      }
    }
  }

  [[nodiscard]] std::vector<DeviceId> choose(std::span<const NodeId> shards,
                                             std::span<const DeviceId> devices,
                                             std::span<const std::vector<Read>> reads,
                                             const std::vector<double>& gathered) const {
    std::vector<double> seconds(shards.size() * n_devices_, 0);
    if (n_devices_ <= kMaxEnumerated) {
      for (std::size_t s = 0; s < shards.size(); ++s) {
        for (DeviceId device : devices) {
          seconds[s * n_devices_ + device.index()] = moved(shards[s], device);
        }
      }
      return Enumeration(model_, devices, seconds, reads, gathered).solve();
    }
    // Columns in the order of `devices`, so that ties go to the less loaded.
    for (std::size_t s = 0; s < shards.size(); ++s) {
      for (std::size_t i = 0; i < n_devices_; ++i) {
        seconds[s * n_devices_ + i] = moved(shards[s], devices[i]);
      }
    }
    std::vector<DeviceId> chosen;
    for (std::size_t i : least_cost_matching(seconds, shards.size(), n_devices_)) {
      chosen.push_back(devices[i]);
    }
    return chosen;
  }

  // Seconds of the transfers that the node would need on the device.
  [[nodiscard]] double moved(NodeId node, DeviceId device) const {
    double sum = 0;
    for (const PlacementModel::Feed& feed : model_.feeds(node)) {
      if (!placed(feed.producer)) continue;
      if (arrived_[feed.tensor.index() * n_devices_ + device.index()]) continue;
      sum += model_.transfer(feed.bytes, assignment_[feed.producer], device);
    }
    return sum;
  }

  void place(NodeId node, DeviceId device) {
    assignment_[node] = device;
    load_[device.index()] += model_.costs().compute(node, device);
    for (const PlacementModel::Feed& feed : model_.feeds(node)) {
      if (placed(feed.producer)) {
        arrived_[feed.tensor.index() * n_devices_ + device.index()] = true;
      }
    }
  }

  const PlacementModel& model_;
  std::size_t n_devices_;
  Assignment assignment_;
  std::vector<bool> arrived_;                 // [tensors, devices]
  std::vector<double> load_;                  // by device; seconds
  std::vector<std::int64_t> group_of_;        // by node
  std::vector<std::int64_t> aggregation_of_;  // by node: its index in its group; -1: none
};

class Enumerative : public Agent {
 public:
  [[nodiscard]] bool has_steps() const override { return false; }
  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& /*options*/) override {
    return {.assignment = Placement(*model).run()};
  }
};

}  // namespace

AgentEntry enumerative_entry() {
  AgentEntry entry;
  entry.name = "enumerative";
  entry.summary = "meta-op by meta-op, the permutation of devices that moves least time";
  entry.source = "Yao et al., DOPPLER, 2025";
  entry.family = "search";
  entry.deterministic = true;
  entry.make = [](const Parameters&) { return std::make_unique<Enumerative>(); };
  return entry;
}

}  // namespace doppler
