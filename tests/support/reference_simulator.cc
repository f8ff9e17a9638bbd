#include "tests/support/reference_simulator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "executor/simulator/noise.h"
#include "graphs/analysis.h"

namespace doppler::testing {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

template <class IdType>
IdType as_id(std::size_t index) {
  return IdType{static_cast<std::int64_t>(index)};
}

// A transfer under way.
struct Traveller {
  enum class State { queued, held, latency, moving, arrived };
  TransferRun run;
  Route route;
  double factor = 1;
  State state = State::queued;
  double begins = 0;  // fair: when it starts to move
  double left = 0;    // fair: bytes
  double rate = 0;    // fair: bytes/s
  double finish = kNever;
};

class Reference {
 public:
  Reference(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
            const Assignment& assignment, const RunOptions& options)
      : graph_(graph),
        cluster_(cluster),
        cost_model_(cost_model),
        assignment_(assignment),
        options_(options),
        runs_(graph.n_nodes()),
        duration_(graph.n_nodes()),
        started_(graph.n_nodes(), false),
        ended_(graph.n_nodes(), false),
        tensor_there_(graph.n_tensors(), std::vector<double>(cluster.n_devices(), kNever)),
        input_there_(graph.n_inputs(), std::vector<double>(cluster.n_devices(), kNever)),
        channel_updated_(cluster.n_channels(), 0) {
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      const NodeId node = as_id<NodeId>(v);
      const double factor = noise_factor(options.noise, options.seed, LuckStream::node, v);
      duration_[v] = cost_model.compute(graph, node, cluster, assignment[node]) * factor;
    }
    for (std::size_t d = 0; d < cluster.n_devices(); ++d) {
      const auto streams = static_cast<std::size_t>(cluster.device(as_id<DeviceId>(d)).streams);
      slot_busy_.emplace_back(streams, false);
    }
    for (std::size_t i = 0; i < graph.n_inputs(); ++i) {
      if (options.input_devices.empty()) {
        std::fill(input_there_[i].begin(), input_there_[i].end(), 0.0);
      } else {
        input_there_[i][options.input_devices[i].index()] = 0;
      }
    }
    if (options.choice == Choice::priority) {
      priority_ = options.priorities;
      if (priority_.empty()) {
        priority_ = levels(graph, CostTable(graph, cluster, cost_model)).b_level;
      }
    }
  }

  Execution run() {
    if (options_.schedule == Schedule::work_conserving) {
      run_until_quiet(true);
    } else {
      run_bulk_synchronous();
    }
    return result();
  }

 private:
  // --- the two schedules ---

  void run_bulk_synchronous() {
    request_inputs();
    run_until_quiet(false);
    std::int32_t depth = 0;
    for (const NodeId node : graph_.topological_order()) {
      depth = std::max(depth, graph_.level(node));
    }
    for (phase_ = 0; phase_ <= depth; ++phase_) {
      phase_start_ = now_;
      run_until_quiet(false);
      std::vector<NodeId> nodes;
      for (std::size_t v = 0; v < graph_.n_nodes(); ++v) {
        if (graph_.level(as_id<NodeId>(v)) == phase_) nodes.push_back(as_id<NodeId>(v));
      }
      phase_start_ = kNever;
      request_outputs(nodes);
      run_until_quiet(false);
    }
  }

  // Instants and rounds until nothing runs or travels; `conserve` requests a node's transfers when
  // it ends, and those of the inputs in the first round.
  void run_until_quiet(bool conserve) {
    bool first = conserve;
    for (double next = now_; next < kNever; next = next_event()) {
      now_ = next;
      do {
        const std::vector<NodeId> ended = collect();
        start_nodes();
        if (first) request_inputs();
        first = false;
        if (conserve) request_outputs(ended);
      } while (next_event() == now_);
    }
  }

  [[nodiscard]] double next_event() const {
    double next = kNever;
    for (std::size_t v = 0; v < runs_.size(); ++v) {
      if (started_[v] && !ended_[v]) next = std::min(next, runs_[v].end);
    }
    for (const Traveller& traveller : travellers_) next = std::min(next, event_of(traveller));
    return next;
  }

  static double event_of(const Traveller& traveller) {
    switch (traveller.state) {
      case Traveller::State::held:
        return traveller.run.end;
      case Traveller::State::latency:
        return traveller.begins;
      case Traveller::State::moving:
        return traveller.finish;
      default:
        return kNever;
    }
  }

  // --- steps 1 to 3 ---

  // Takes all ends and arrivals of this instant; the nodes that ended, ascending.
  std::vector<NodeId> collect() {
    std::vector<NodeId> ended;
    for (std::size_t v = 0; v < runs_.size(); ++v) {
      if (!started_[v] || ended_[v] || runs_[v].end != now_) continue;
      const NodeId node = as_id<NodeId>(v);
      ended_[v] = true;
      ended.push_back(node);
      slot_busy_[runs_[v].device.index()][static_cast<std::size_t>(runs_[v].slot)] = false;
      for (std::size_t i = 0; i < graph_.n_outputs(node); ++i) {
        tensor_there_[graph_.first_tensor(node).index() + i][runs_[v].device.index()] = now_;
      }
    }
    for (bool again = true; again;) {
      again = false;
      for (const Traveller& traveller : travellers_) again |= event_of(traveller) == now_;
      if (!again) break;
      if (options_.network == Network::fair) {
        for (std::size_t c = 0; c < cluster_.n_channels(); ++c) update_shares(as_id<ChannelId>(c));
      } else {
        for (Traveller& traveller : travellers_) {
          if (event_of(traveller) == now_) arrive(traveller);
        }
        if (options_.network == Network::channel) fill_channels();
      }
    }
    return ended;
  }

  // The instant since which a node has all that it needs on its device; kNever if not yet.
  [[nodiscard]] double ready_since(NodeId node) const {
    if (options_.schedule == Schedule::bulk_synchronous) {
      return graph_.level(node) == phase_ ? phase_start_ : kNever;
    }
    const std::size_t device = assignment_[node].index();
    double ready = 0;
    for (const EdgeId edge : graph_.in_edges(node)) {
      ready = std::max(ready, tensor_there_[graph_.edge_tensor(edge).index()][device]);
    }
    for (std::size_t i = 0; i < graph_.n_inputs(); ++i) {
      const std::vector<NodeId>& readers = graph_.inputs()[i].readers;
      if (std::find(readers.begin(), readers.end(), node) != readers.end()) {
        ready = std::max(ready, input_there_[i][device]);
      }
    }
    return ready;
  }

  // Whether the choice rule takes a before b.
  [[nodiscard]] bool before(std::pair<double, NodeId> a, std::pair<double, NodeId> b) const {
    if (options_.choice == Choice::priority) {
      const double of_a = priority_[a.second.index()];
      const double of_b = priority_[b.second.index()];
      if (of_a != of_b) return of_a > of_b;
    }
    if (options_.choice == Choice::random) {
      const auto key = [&](NodeId node) {
        return luck_bits(options_.seed, LuckStream::choice, node.index());
      };
      if (key(a.second) != key(b.second)) return key(a.second) < key(b.second);
    }
    return a < b;
  }

  void start_nodes() {
    std::vector<std::vector<std::pair<double, NodeId>>> waiting(cluster_.n_devices());
    for (std::size_t v = 0; v < runs_.size(); ++v) {
      if (started_[v]) continue;
      const double ready = ready_since(as_id<NodeId>(v));
      if (ready <= now_) {
        waiting[assignment_[as_id<NodeId>(v)].index()].emplace_back(ready, as_id<NodeId>(v));
      }
    }
    for (std::size_t d = 0; d < waiting.size(); ++d) {
      for (std::size_t slot = 0; slot < slot_busy_[d].size(); ++slot) {
        if (slot_busy_[d][slot] || waiting[d].empty()) continue;
        const auto first = std::min_element(waiting[d].begin(), waiting[d].end(),
                                            [&](auto a, auto b) { return before(a, b); });
        const NodeId node = first->second;
        runs_[node.index()] = {as_id<DeviceId>(d), static_cast<std::int32_t>(slot), first->first,
                               now_, now_ + duration_[node.index()]};
        started_[node.index()] = true;
        slot_busy_[d][slot] = true;
        waiting[d].erase(first);
      }
    }
  }

  // --- step 4 ---

  // Devices that have a reader of a tensor.
  [[nodiscard]] std::set<DeviceId> wanted_on(TensorId tensor) const {
    std::set<DeviceId> devices;
    for (const EdgeId edge : graph_.out_edges(graph_.tensor_producer(tensor))) {
      if (graph_.edge_tensor(edge) == tensor) {
        devices.insert(assignment_[graph_.edge(edge).reader]);
      }
    }
    return devices;
  }

  [[nodiscard]] std::set<DeviceId> wanted_on(InputId input) const {
    std::set<DeviceId> devices;
    for (const NodeId reader : graph_.inputs()[input.index()].readers) {
      devices.insert(assignment_[reader]);
    }
    return devices;
  }

  void request_inputs() {
    if (options_.input_devices.empty()) return;
    for (std::size_t i = 0; i < graph_.n_inputs(); ++i) {
      const InputId input = as_id<InputId>(i);
      for (const DeviceId to : wanted_on(input)) {
        if (to == options_.input_devices[i]) continue;
        TransferRun run;
        run.of_input = true;
        run.input = input;
        run.from = options_.input_devices[i];
        run.to = to;
        run.bytes = graph_.inputs()[i].tensor.bytes;
        request(run, noise_factor(options_.noise, options_.seed, LuckStream::input, i, to.index()));
      }
    }
  }

  void request_outputs(const std::vector<NodeId>& nodes) {
    for (const NodeId node : nodes) {
      for (std::size_t i = 0; i < graph_.n_outputs(node); ++i) {
        const TensorId tensor = as_id<TensorId>(graph_.first_tensor(node).index() + i);
        for (const DeviceId to : wanted_on(tensor)) {
          if (to == assignment_[node]) continue;
          TransferRun run;
          run.tensor = tensor;
          run.from = assignment_[node];
          run.to = to;
          run.bytes = graph_.tensor_bytes(tensor);
          request(run, noise_factor(options_.noise, options_.seed, LuckStream::transfer,
                                    tensor.index(), to.index()));
        }
      }
    }
  }

  void request(const TransferRun& run, double factor) {
    Traveller traveller;
    traveller.run = run;
    traveller.route = cost_model_.route(cluster_, run.from, run.to);
    traveller.run.channel = traveller.route.channel;
    traveller.run.requested = now_;
    traveller.run.start = now_;
    traveller.factor = factor;
    if (options_.network == Network::fair) {
      traveller.state = Traveller::State::latency;
      traveller.begins = now_ + traveller.route.latency * factor;
      traveller.left = run.bytes * factor;
    }
    travellers_.push_back(traveller);
    if (options_.network == Network::independent) hold(travellers_.back());
    if (options_.network == Network::channel) fill_channels();
  }

  // --- networks ---

  void hold(Traveller& traveller) const {
    const Route& route = traveller.route;
    traveller.state = Traveller::State::held;
    traveller.run.start = now_;
    traveller.run.end =
        now_ + (route.latency + traveller.run.bytes / route.bandwidth) * traveller.factor;
  }

  void arrive(Traveller& traveller) {
    traveller.state = Traveller::State::arrived;
    traveller.run.end = now_;
    std::vector<double>& there = traveller.run.of_input
                                     ? input_there_[traveller.run.input.index()]
                                     : tensor_there_[traveller.run.tensor.index()];
    there[traveller.run.to.index()] = now_;
  }

  // Every channel that nobody holds goes to the first in line.
  void fill_channels() {
    std::set<ChannelId> taken;
    for (const Traveller& traveller : travellers_) {
      if (traveller.state == Traveller::State::held) taken.insert(traveller.run.channel);
    }
    for (Traveller& traveller : travellers_) {
      if (traveller.state != Traveller::State::queued) continue;
      if (taken.insert(traveller.run.channel).second) hold(traveller);
    }
  }

  // An event of a channel under `fair`, if this instant has one.
  void update_shares(ChannelId channel) {
    const double capacity = cluster_.channel_capacity(channel);
    std::vector<Traveller*> here;
    bool event = false;
    for (Traveller& traveller : travellers_) {
      if (traveller.run.channel != channel) continue;
      if (traveller.state == Traveller::State::latency && traveller.begins == now_ &&
          (traveller.left == 0 || std::min(capacity, traveller.route.bandwidth) == kUnlimited)) {
        arrive(traveller);
        continue;
      }
      here.push_back(&traveller);
      event |= event_of(traveller) == now_;
    }
    if (!event) return;
    std::vector<Traveller*> moving;
    for (Traveller* traveller : here) {
      if (traveller->state == Traveller::State::moving) {
        const double moved = traveller->rate * (now_ - channel_updated_[channel.index()]);
        traveller->left = std::max(0.0, traveller->left - moved);
        if (traveller->finish == now_) {
          arrive(*traveller);
        } else {
          moving.push_back(traveller);
        }
      } else if (traveller->state == Traveller::State::latency && traveller->begins == now_) {
        traveller->state = Traveller::State::moving;
        moving.push_back(traveller);
      }
    }
    channel_updated_[channel.index()] = now_;
    std::stable_sort(moving.begin(), moving.end(), [](const Traveller* a, const Traveller* b) {
      return a->route.bandwidth < b->route.bandwidth;
    });
    double free = capacity;
    for (std::size_t i = 0; i < moving.size(); ++i) {
      const double share = free / static_cast<double>(moving.size() - i);
      if (moving[i]->route.bandwidth > share) {
        for (std::size_t j = i; j < moving.size(); ++j) moving[j]->rate = share;
        break;
      }
      moving[i]->rate = moving[i]->route.bandwidth;
      free -= moving[i]->rate;
    }
    for (Traveller* traveller : moving)
      traveller->finish = now_ + traveller->left / traveller->rate;
  }

  // --- what it was ---

  // Bytes on a device from one instant (included) to another (excluded).
  struct Buffer {
    DeviceId device;
    double bytes = 0;
    double from = 0;
    double to = kNever;
  };

  // The latest end of the readers of a tensor on a device; kNever if there is none.
  [[nodiscard]] double last_read(TensorId tensor, DeviceId device) const {
    double last = -1;
    for (const EdgeId edge : graph_.out_edges(graph_.tensor_producer(tensor))) {
      const NodeId reader = graph_.edge(edge).reader;
      if (graph_.edge_tensor(edge) == tensor && assignment_[reader] == device) {
        last = std::max(last, runs_[reader.index()].end);
      }
    }
    return last < 0 ? kNever : last;
  }

  [[nodiscard]] std::vector<Buffer> buffers() const {
    std::vector<Buffer> all;
    for (std::size_t t = 0; t < graph_.n_tensors(); ++t) {
      const TensorId tensor = as_id<TensorId>(t);
      const NodeRun& producer = runs_[graph_.tensor_producer(tensor).index()];
      double to = last_read(tensor, producer.device);
      double sent = -1;
      for (const Traveller& traveller : travellers_) {
        if (traveller.run.of_input || traveller.run.tensor != tensor) continue;
        sent = std::max(sent, traveller.run.end);
      }
      if (sent >= 0) to = to == kNever ? sent : std::max(to, sent);
      all.push_back({producer.device, graph_.tensor_bytes(tensor), producer.start, to});
    }
    for (const Traveller& traveller : travellers_) {
      const TransferRun& run = traveller.run;
      all.push_back(
          {run.to, run.bytes, run.start, run.of_input ? kNever : last_read(run.tensor, run.to)});
    }
    for (std::size_t i = 0; i < graph_.n_inputs(); ++i) {
      const GraphInput& input = graph_.inputs()[i];
      if (input.readers.empty()) continue;
      if (!options_.input_devices.empty()) {
        all.push_back({options_.input_devices[i], input.tensor.bytes, 0, kNever});
        continue;
      }
      for (const DeviceId device : wanted_on(as_id<InputId>(i))) {
        all.push_back({device, input.tensor.bytes, 0, kNever});
      }
    }
    return all;
  }

  [[nodiscard]] std::vector<DeviceUse> device_use() const {
    std::vector<DeviceUse> use(cluster_.n_devices());
    for (std::size_t v = 0; v < runs_.size(); ++v)
      use[runs_[v].device.index()].busy += duration_[v];
    const std::vector<Buffer> all = buffers();
    // Use grows only where a buffer begins.
    for (const Buffer& begun : all) {
      double sum = 0;
      for (const Buffer& other : all) {
        if (other.device == begun.device && other.from <= begun.from && begun.from < other.to) {
          sum += other.bytes;
        }
      }
      double& peak = use[begun.device.index()].peak_memory;
      peak = std::max(peak, sum);
    }
    return use;
  }

  [[nodiscard]] Execution result() const {
    Execution execution;
    for (const NodeRun& run : runs_) execution.makespan = std::max(execution.makespan, run.end);
    execution.devices = device_use();
    for (const Traveller& traveller : travellers_) execution.bytes_moved += traveller.run.bytes;
    for (std::size_t t = 0; t < graph_.n_tensors(); ++t) {
      const TensorId tensor = as_id<TensorId>(t);
      const DeviceId home = assignment_[graph_.tensor_producer(tensor)];
      if (wanted_on(tensor).count(home) > 0) execution.bytes_local += graph_.tensor_bytes(tensor);
    }
    for (std::size_t i = 0; i < options_.input_devices.size(); ++i) {
      if (wanted_on(as_id<InputId>(i)).count(options_.input_devices[i]) > 0) {
        execution.bytes_local += graph_.inputs()[i].tensor.bytes;
      }
    }
    if (options_.record_timeline) {
      execution.nodes = runs_;
      for (const Traveller& traveller : travellers_) execution.transfers.push_back(traveller.run);
    }
    for (std::size_t d = 0; options_.enforce_memory && d < cluster_.n_devices(); ++d) {
      const double available = cluster_.device(as_id<DeviceId>(d)).memory;
      const double needed = execution.devices[d].peak_memory;
      if (needed <= available) continue;
      execution.makespan = kNever;
      execution.out_of_memory = OutOfMemory{as_id<DeviceId>(d), needed, available};
      break;
    }
    return execution;
  }

  const Graph& graph_;
  const Cluster& cluster_;
  const CostModel& cost_model_;
  const Assignment& assignment_;
  const RunOptions& options_;

  double now_ = 0;
  std::int32_t phase_ = -1;                   // bulk-synchronous: the depth that runs
  double phase_start_ = kNever;               // bulk-synchronous: kNever between compute phases
  std::vector<NodeRun> runs_;                 // [n_nodes]
  std::vector<double> duration_;              // [n_nodes] seconds with noise
  std::vector<bool> started_;                 // [n_nodes]
  std::vector<bool> ended_;                   // [n_nodes]
  std::vector<double> priority_;              // [n_nodes] for Choice::priority
  std::vector<std::vector<bool>> slot_busy_;  // [n_devices][streams]
  std::vector<std::vector<double>> tensor_there_;  // [n_tensors][n_devices] since when
  std::vector<std::vector<double>> input_there_;   // [n_inputs][n_devices] since when
  std::vector<Traveller> travellers_;              // in the order of requests
  std::vector<double> channel_updated_;            // [n_channels] fair: instant of the last event
};

}  // namespace

Execution reference_run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                        const Assignment& assignment, const RunOptions& options) {
  return Reference(graph, cluster, cost_model, assignment, options).run();
}

}  // namespace doppler::testing
