#include "env/env_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "env/action_mode.h"
#include "executor/shared_engine.h"
#include "graphs/error.h"
#include "graphs/hash.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxActions = 100'000;               // of one Discrete space
constexpr std::size_t kMaxElements = std::size_t{1} << 27;  // elements of an array
constexpr double kMaxTime = 1e30;  // time scales; float32 holds it with room to spare

// The smallest float32 that is not below x.
double float_above(double x) {
  const auto rounded = static_cast<float>(x);
  return rounded >= x ? rounded : std::nextafter(rounded, std::numeric_limits<float>::infinity());
}

// No instant of a partial schedule, no sum of computes or transfers, is beyond this: seconds.
double horizon(const PlacementModel& placement) {
  double seconds = 0;
  const Graph& graph = placement.task().graph;
  const CostTable& costs = placement.costs();
  for (std::size_t v = 0; v < placement.n_nodes(); ++v) {
    const auto row = std::span(costs.seconds).subspan(v * costs.n_columns, costs.n_columns);
    seconds += *std::max_element(row.begin(), row.end());
  }
  double worst_latency = 0;
  double worst_seconds_per_byte = 0;
  for (std::size_t a = 0; a < placement.n_devices(); ++a) {
    for (std::size_t b = 0; b < placement.n_devices(); ++b) {
      if (a == b) continue;
      const Route route = placement.task().cost_model.route(
          placement.task().cluster, DeviceId(std::int64_t(a)), DeviceId(std::int64_t(b)));
      worst_latency = std::max(worst_latency, route.latency);
      worst_seconds_per_byte = std::max(worst_seconds_per_byte, 1 / route.bandwidth);
    }
  }
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    seconds += worst_latency + graph.edge_bytes(EdgeId(std::int64_t(e))) * worst_seconds_per_byte;
  }
  return seconds;
}

template <class T>
std::vector<std::byte> to_bytes(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

Assignment critical_path_assignment(std::shared_ptr<const PlacementModel> model) {
  PartialSchedule schedule(model);
  std::vector<double> starts(model->n_devices());
  for (NodeId node : model->b_level_order()) {
    schedule.earliest_starts(node, starts);
    const auto earliest = std::min_element(starts.begin(), starts.end()) - starts.begin();
    schedule.place(node, DeviceId(earliest));
  }
  return schedule.assignment();
}

struct EnvModel::Engines {
  using Simulators = std::vector<std::unique_ptr<Simulator>>;

  // Simulators that no thread uses now. A thread borrows one and gives it back, so that there are
  // as many as threads, not as environments.
  std::mutex mutex;
  std::vector<Simulators> simulators;  // by task
  bool is_simulator = false;

  std::optional<SharedEngine> other;  // any other engine: its threads would wait anyway

  std::unique_ptr<Simulator> borrow(Simulators& idle) {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return nullptr;
    std::unique_ptr<Simulator> one = std::move(idle.back());
    idle.pop_back();
    return one;
  }
  void give_back(Simulators& idle, std::unique_ptr<Simulator> one) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(one));
  }
};

EnvModel::~EnvModel() = default;

EnvModel::EnvModel(std::vector<Task> tasks, EnvOptions options)
    : options_(std::move(options)), engines_(std::make_unique<Engines>()) {
  if (tasks.empty()) throw InvalidError("an environment needs at least one task; give one");
  if (!(options_.memory_penalty > 0 && options_.memory_penalty < kMaxTime)) {
    throw InvalidError("memory_penalty is " + std::to_string(options_.memory_penalty) +
                       " time scales; it must be positive and below 1e30");
  }
  if (!options_.initial.empty() && options_.mode != "refine") {
    throw InvalidError("an initial assignment is for mode refine, not for " + options_.mode);
  }
  if (options_.factored && options_.mode != "joint") {
    throw InvalidError("factored actions are for mode joint, not for " + options_.mode);
  }
  engines_->other.emplace(options_.engine);  // an unknown name is told here
  engines_->is_simulator = engines_->other->spelling() == "simulator";
  engines_->simulators.resize(tasks.size());

  std::set<std::string> kinds;
  for (Task& task : tasks) {
    if (task.graph.n_nodes() == 0) {
      throw InvalidError("task '" + task.name + "' has no nodes; there is nothing to decide");
    }
    EnvTask item;
    item.placement = std::make_shared<const PlacementModel>(std::move(task));
    const Task& placed = item.placement->task();
    item.lower_bound = placed.lower_bound();
    for (std::size_t v = 0; v < placed.graph.n_nodes(); ++v) {
      kinds.emplace(placed.graph.kind(NodeId(std::int64_t(v))));
    }
    tasks_.push_back(std::move(item));
  }
  kinds_.assign(kinds.begin(), kinds.end());
  find_limits();
  make_spec();
  for (EnvTask& task : tasks_) make_static_arrays(task);
  for (EnvTask& task : tasks_) {
    const Task& placed = task.placement->task();
    RunOptions quiet = placed.options;
    quiet.noise = 0;
    quiet.enforce_memory = false;
    quiet.record_timeline = false;
    Simulator simulator(placed.graph, placed.cluster, placed.cost_model, quiet);
    task.critical_path_makespan =
        simulator.makespan(critical_path_assignment(task.placement).devices);
  }

  Hasher hasher;
  for (const EnvTask& task : tasks_) hasher.add(task.placement->task().hash());
  std::ostringstream text;
  text << options_;
  hasher.add(std::string_view(text.str())).add(options_.memory_penalty);
  for (std::size_t limit : {max_nodes_, max_edges_, max_devices_}) hasher.add(limit);
  for (DeviceId device : options_.initial) {
    hasher.add(static_cast<std::uint64_t>(device.value));
  }
  hash_ = hasher.digest();
}

void EnvModel::find_limits() {
  std::size_t n_nodes = 1;
  std::size_t n_edges = 1;
  std::size_t n_devices = 1;
  for (const EnvTask& task : tasks_) {
    n_nodes = std::max(n_nodes, task.placement->n_nodes());
    n_edges = std::max(n_edges, task.placement->task().graph.n_edges());
    n_devices = std::max(n_devices, task.placement->n_devices());
  }
  const auto limit = [](std::int64_t asked, std::size_t needed, const char* what) {
    if (asked == 0) return needed;
    if (asked < 0 || static_cast<std::size_t>(asked) < needed || asked > (1 << 26)) {
      throw InvalidError("max_" + std::string(what) + " is " + std::to_string(asked) +
                         ", but the tasks have up to " + std::to_string(needed) + " " + what +
                         "; leave it out or give " + std::to_string(needed) + " to 2^26");
    }
    return static_cast<std::size_t>(asked);
  };
  max_nodes_ = limit(options_.max_nodes, n_nodes, "nodes");
  max_edges_ = limit(options_.max_edges, n_edges, "edges");
  max_devices_ = limit(options_.max_devices, n_devices, "devices");
  if (!options_.initial.empty()) {
    for (const EnvTask& task : tasks_) {
      Assignment(options_.initial)
          .check(task.placement->task().graph, task.placement->task().cluster);
    }
  }
}

std::size_t EnvModel::n_device_features() const {
  return options_.features == Features::paper ? 5 : 10;
}

void EnvModel::make_spec() {
  double bound = 1;
  double least_memory = 0;  // the most negative share of memory that can be left
  for (const EnvTask& task : tasks_) {
    const PlacementModel& placement = *task.placement;
    const double times = horizon(placement) / placement.time_scale();
    if (!(times < kMaxTime)) {
      throw InvalidError("task '" + placement.task().name +
                         "' has times of more than 1e30 time scales, too large for observations; "
                         "its transfers dwarf its computes");
    }
    bound = std::max(bound, times);
    double bytes = 0;
    const Graph& graph = placement.task().graph;
    for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
      bytes += graph.tensor_bytes(TensorId(std::int64_t(t)));
    }
    for (std::size_t d = 0; d < placement.n_devices(); ++d) {
      const double memory = placement.task().cluster.device(DeviceId(std::int64_t(d))).memory;
      least_memory = std::min(least_memory, 1 - bytes / std::max(memory, 1.0));
    }
  }
  if (options_.features == Features::full && !(least_memory > -kMaxTime)) {
    throw InvalidError(
        "the tensors of a task have more than 1e30 times the bytes of a device, too many for "
        "observations; use features paper, or a cluster of more memory");
  }
  // Sums in another order may differ in the last digits.
  const double high = float_above(bound * (1 + 1e-9));
  const double low = options_.features == Features::full ? -float_above(-least_memory) : 0;
  const auto n = static_cast<std::int64_t>(max_nodes_);
  const auto e = static_cast<std::int64_t>(max_edges_);
  const auto d = static_cast<std::int64_t>(max_devices_);
  const auto k = static_cast<std::int64_t>(n_device_features());
  const bool full = options_.features == Features::full;
  const double node_high = full ? std::max(high, static_cast<double>(kinds_.size())) : high;

  const auto mode = action_modes().at(options_.mode).make(options_);
  spec_.action = mode->action_spec(*this);
  if (spec_.action.discrete && options_.mode == "joint" && spec_.action.sizes[0] > kMaxActions) {
    throw InvalidError("mode joint would have " + std::to_string(spec_.action.sizes[0]) +
                       " actions, more than " + std::to_string(kMaxActions) +
                       "; use factored = true, or mode sequential or place");
  }
  if (spec_.action.mask_size() > kMaxElements) {
    throw InvalidError("mode " + options_.mode + " would have a mask of " +
                       std::to_string(spec_.action.mask_size()) + " elements, more than " +
                       std::to_string(kMaxElements) + "; use mode sequential or place");
  }
  if (full && options_.mode == "joint") {
    const std::size_t n_pairs = max_nodes_ * max_devices_ * n_device_features();
    if (n_pairs > kMaxElements) {
      throw InvalidError("features full would have " + std::to_string(n_pairs) +
                         " numbers for the pairs of mode joint, more than " +
                         std::to_string(kMaxElements) +
                         "; use features paper, or mode sequential or place");
    }
  }
  spec_.max_steps = mode->n_steps(n);

  const auto add = [&](ArraySpec array) { spec_.observations.push_back(std::move(array)); };
  const auto mask = [&](const char* name, std::int64_t size, bool is_static, const char* summary) {
    add({.name = name,
         .shape = {size},
         .dtype = DType::int8,
         .low = 0,
         .high = 1,
         .is_static = is_static,
         .summary = summary});
  };
  add({.name = "node_features",
       .shape = {n, full ? 7 : 5},
       .low = 0,
       .high = node_high,
       .is_static = true,
       .summary = full ? "time scales: compute, b-level, t-level, sum of incoming, of outgoing "
                         "transfer times; number of the kind; share of all output bytes"
                       : "time scales: compute, b-level, t-level, sum of incoming, of outgoing "
                         "transfer times"});
  add({.name = "edges",
       .shape = {e, 2},
       .dtype = DType::int32,
       .low = -1,
       .high = static_cast<double>(n - 1),
       .is_static = true,
       .summary = "producer and reader of each edge; -1: padding"});
  add({.name = "edge_features",
       .shape = {e, 1},
       .low = 0,
       .high = high,
       .is_static = true,
       .summary = "time scales: mean transfer time of the edge's tensor"});
  mask("node_valid", n, true, "1: a node of the graph; 0: padding");
  mask("edge_valid", e, true, "1: an edge of the graph; 0: padding");
  mask("device_valid", d, true, "1: a device of the cluster; 0: padding");
  add({.name = "placement",
       .shape = {n},
       .dtype = DType::int32,
       .low = -1,
       .high = static_cast<double>(d - 1),
       .summary = "device of each node; -1: not placed, or padding"});
  mask("candidates", n, false, "1: not placed, all predecessors placed");
  add({.name = "node",
       .shape = {1},
       .dtype = DType::int32,
       .low = -1,
       .high = static_cast<double>(n - 1),
       .summary = "the node whose device is decided next; -1: none"});
  mask("phase", 1, false, "0: a node is selected next; 1: anything else");
  add({.name = "device_features",
       .shape = {d, k},
       .low = low,
       .high = high,
       .summary = "of each device for `node`, time scales: compute placed there; compute of the "
                  "node's predecessors there; their earliest start; their latest end; earliest "
                  "start of the node there; zeros without a node"});
  if (full && options_.mode == "joint") {
    add({.name = "pair_features",
         .shape = {n, d, k},
         .low = low,
         .high = high,
         .summary = "device_features for each candidate; zeros for other nodes"});
  }
  mask("action_mask", static_cast<std::int64_t>(spec_.action.mask_size()), false,
       "1: the action is legal");
  if (full) {
    for (ArraySpec& array : spec_.observations) {
      if (array.name != "device_features") continue;
      array.summary +=
          "; then transfer time into the device; transfer time of placed partners "
          "there; compute there of nodes that share a producer; speed (1: fastest); "
          "share of memory left";
    }
  }
}

void EnvModel::make_static_arrays(EnvTask& task) const {
  const PlacementModel& placement = *task.placement;
  const Graph& graph = placement.task().graph;
  const CostTable& costs = placement.costs();
  const double scale = 1 / placement.time_scale();
  const bool full = options_.features == Features::full;
  const std::size_t width = full ? 7 : 5;
  std::vector<float> nodes(max_nodes_ * width, 0);
  std::vector<std::int8_t> node_valid(max_nodes_, 0);
  double all_bytes = 0;
  for (std::size_t t = 0; t < graph.n_tensors(); ++t) {
    all_bytes += graph.tensor_bytes(TensorId(std::int64_t(t)));
  }
  for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
    const NodeId node{std::int64_t(v)};
    double incoming = 0;
    double outgoing = 0;
    for (EdgeId edge : graph.in_edges(node)) {
      incoming += costs.mean_transfer(graph.edge_bytes(edge));
    }
    for (EdgeId edge : graph.out_edges(node)) {
      outgoing += costs.mean_transfer(graph.edge_bytes(edge));
    }
    float* const row = nodes.data() + v * width;
    const double times[] = {costs.mean[v], placement.levels().b_level[v],
                            placement.levels().t_level[v], incoming, outgoing};
    for (std::size_t i = 0; i < 5; ++i) row[i] = static_cast<float>(times[i] * scale);
    const auto kind = std::lower_bound(kinds_.begin(), kinds_.end(), graph.kind(node));
    task.node_kind.push_back(static_cast<std::int32_t>(kind - kinds_.begin()));
    double bytes = 0;
    for (std::size_t i = 0; i < graph.n_outputs(node); ++i) {
      bytes += graph.tensor_bytes(TensorId(graph.first_tensor(node).value + std::int64_t(i)));
    }
    task.output_bytes.push_back(bytes);
    if (full) {
      row[5] = static_cast<float>(task.node_kind.back());
      row[6] = all_bytes > 0 ? static_cast<float>(bytes / all_bytes) : 0.0F;
    }
    node_valid[v] = 1;
  }
  std::vector<std::int32_t> edges(max_edges_ * 2, -1);
  std::vector<float> edge_features(max_edges_, 0);
  std::vector<std::int8_t> edge_valid(max_edges_, 0);
  for (std::size_t e = 0; e < graph.n_edges(); ++e) {
    const EdgeId id{std::int64_t(e)};
    edges[2 * e] = graph.edge(id).producer.value;
    edges[2 * e + 1] = graph.edge(id).reader.value;
    edge_features[e] = static_cast<float>(costs.mean_transfer(graph.edge_bytes(id)) * scale);
    edge_valid[e] = 1;
  }
  std::vector<std::int8_t> device_valid(max_devices_, 0);
  std::fill_n(device_valid.begin(), placement.n_devices(), std::int8_t{1});
  task.static_arrays = {to_bytes(nodes),      to_bytes(edges),      to_bytes(edge_features),
                        to_bytes(node_valid), to_bytes(edge_valid), to_bytes(device_valid)};

  std::vector<double> total(placement.n_devices(), 0);
  for (std::size_t d = 0; d < total.size(); ++d) {
    for (std::size_t v = 0; v < graph.n_nodes(); ++v) {
      total[d] += costs.compute(NodeId(std::int64_t(v)), DeviceId(std::int64_t(d)));
    }
  }
  const double least = *std::min_element(total.begin(), total.end());
  for (double seconds : total) task.device_speed.push_back(seconds > 0 ? least / seconds : 1);
}

Measurement EnvModel::measure(std::size_t task, const Assignment& assignment, std::uint64_t seed,
                              bool explain) const {
  const Task& placed = tasks_[task].placement->task();
  const auto memory_failure = [](const OutOfMemory& memory) {
    std::ostringstream text;
    text << "device " << memory.device << " is out of memory: it needs " << memory.needed << " of "
         << memory.available << " bytes";
    return text.str();
  };
  Measurement result;
  if (engines_->is_simulator) {
    auto& idle = engines_->simulators[task];
    std::unique_ptr<Simulator> simulator = engines_->borrow(idle);
    if (!simulator) simulator = std::make_unique<Simulator>(placed.simulator());
    result.makespan = simulator->makespan(assignment.devices, seed);
    if (explain && std::isinf(result.makespan)) {
      const Execution execution = simulator->run(assignment, seed);
      if (execution.out_of_memory) result.failure = memory_failure(*execution.out_of_memory);
    }
    engines_->give_back(idle, std::move(simulator));
    return result;
  }
  RunOptions run_options = placed.options;
  run_options.seed = seed;
  run_options.record_timeline = false;
  try {
    const Execution execution = engines_->other->run(placed.graph, placed.cluster,
                                                     placed.cost_model, assignment, run_options);
    result.makespan = execution.makespan;
    if (explain && execution.out_of_memory) {
      result.failure = memory_failure(*execution.out_of_memory);
    }
  } catch (const OutOfMemoryError& error) {
    if (!run_options.enforce_memory) throw;
    result.makespan = std::numeric_limits<double>::infinity();
    if (explain) result.failure = error.what();
  }
  return result;
}

}  // namespace doppler
