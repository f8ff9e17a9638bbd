#include "executor/simulator/simulator.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "executor/simulator/bulk_synchronous.h"
#include "executor/simulator/event_loop.h"
#include "executor/simulator/list_scheduler.h"
#include "executor/simulator/memory.h"
#include "executor/simulator/model.h"
#include "executor/simulator/record.h"
#include "graphs/error.h"

namespace doppler {
namespace {

using simulation::BulkSynchronous;
using simulation::EventLoop;
using simulation::ListScheduler;
using simulation::MemoryMeter;
using simulation::Model;
using simulation::record;
using simulation::Timeline;

// What one thread needs to run assignments of a model; made of parts as they are first used.
class Worker {
 public:
  explicit Worker(const Model& model) : model_(&model), devices_(model.n_nodes) {
    if (ListScheduler::applies(model)) fast_.emplace(model);
  }

  // Reads an assignment into topological order. `row` is for the message; negative: there is one.
  void load(std::span<const DeviceId> assignment, std::int64_t row) {
    if (assignment.size() != model_->n_nodes) {
      throw InvalidError("an assignment of " + std::to_string(assignment.size()) + " devices for " +
                         std::to_string(model_->n_nodes) + " nodes; give one device a node");
    }
    const auto n_devices = static_cast<std::uint32_t>(model_->n_devices);
    bool fits = true;
    for (std::size_t p = 0; p < devices_.size(); ++p) {
      const std::int32_t device = assignment[static_cast<std::size_t>(model_->node[p])].value;
      fits = fits && static_cast<std::uint32_t>(device) < n_devices;
      devices_[p] = device;
    }
    if (!fits) throw_illegal(assignment, row);
  }

  void move(NodeId node, DeviceId device) {
    devices_[static_cast<std::size_t>(model_->graph.position(node))] = device.value;
  }

  // The makespan of the loaded assignment.
  double makespan(std::uint64_t seed) {
    if (fast_) return fast_->makespan(devices_, seed);
    run(seed);
    if (model_->memory_matters && exceeds_memory()) {
      return std::numeric_limits<double>::infinity();
    }
    return timeline_.makespan;
  }

  // Fills the timeline for the loaded assignment.
  void run(std::uint64_t seed) {
    if (model_->options.schedule == Schedule::bulk_synchronous) {
      if (!bulk_) bulk_.emplace(*model_);
      bulk_->run(devices_, seed, timeline_);
    } else {
      if (!events_) events_.emplace(*model_);
      events_->run(devices_, seed, timeline_);
    }
  }

  Execution execute(std::uint64_t seed);

  [[nodiscard]] bool can_resume() const { return fast_ && fast_->can_resume(); }
  ListScheduler& fast() { return *fast_; }
  [[nodiscard]] std::span<const std::int32_t> devices() const { return devices_; }

 private:
  [[noreturn]] void throw_illegal(std::span<const DeviceId> assignment, std::int64_t row) const {
    std::size_t v = 0;
    while (assignment[v].value >= 0 && assignment[v].index() < model_->n_devices) ++v;
    const std::string where = row < 0 ? "" : "row " + std::to_string(row) + ": ";
    throw InvalidError(where + "node " + std::to_string(v) + " is on device " +
                       std::to_string(assignment[v].value) + ", but the cluster has " +
                       std::to_string(model_->n_devices) + " devices, numbered from 0");
  }

  std::span<const double> peaks() {
    if (!memory_) memory_.emplace(*model_);
    return memory_->peaks(devices_, timeline_);
  }

  bool exceeds_memory() {
    if (!memory_) memory_.emplace(*model_);
    if (!memory_->could_exceed(devices_, timeline_)) return false;
    const auto peak = peaks();
    for (std::size_t d = 0; d < peak.size(); ++d) {
      if (peak[d] > model_->cluster.device(DeviceId(static_cast<std::int64_t>(d))).memory) {
        return true;
      }
    }
    return false;
  }

  const Model* model_;
  std::vector<std::int32_t> devices_;  // by position
  Timeline timeline_;
  std::optional<ListScheduler> fast_;
  std::optional<EventLoop> events_;
  std::optional<BulkSynchronous> bulk_;
  std::optional<MemoryMeter> memory_;
};

Execution Worker::execute(std::uint64_t seed) {
  run(seed);
  return record(*model_, devices_, timeline_, peaks());
}

}  // namespace

struct Simulator::State {
  State(const Graph& graph, const Cluster& cluster, CostModel cost_model, RunOptions options)
      : model(graph, cluster, std::move(cost_model), std::move(options)) {
    workers.emplace_back(model);
  }

  // The worker that set_base() and its like use, apart from the others' loaded assignments.
  Worker& base_worker() {
    if (!base) throw UsageError("no base assignment; call set_base() first");
    return *base;
  }
  // Throws InvalidError unless the move names a node and a device.
  void check_move(NodeId node, DeviceId device) const {
    if (node.value < 0 || node.index() >= model.n_nodes || device.value < 0 ||
        device.index() >= model.n_devices) {
      throw InvalidError("a move of node " + std::to_string(node.value) + " to device " +
                         std::to_string(device.value) + ", but there are " +
                         std::to_string(model.n_nodes) + " nodes and " +
                         std::to_string(model.n_devices) + " devices, numbered from 0");
    }
  }

  Model model;
  std::vector<Worker> workers;  // one a thread
  std::optional<Worker> base;
  double base_makespan = 0;
};

Simulator::Simulator(const Graph& graph, const Cluster& cluster, CostModel cost_model,
                     RunOptions options)
    : state_(std::make_unique<State>(graph, cluster, std::move(cost_model), std::move(options))) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

const Graph& Simulator::graph() const { return state_->model.graph; }
const Cluster& Simulator::cluster() const { return state_->model.cluster; }
const CostTable& Simulator::costs() const { return state_->model.costs; }
const RunOptions& Simulator::options() const { return state_->model.options; }

Execution Simulator::run(const Assignment& assignment) {
  return run(assignment, state_->model.options.seed);
}

Execution Simulator::run(const Assignment& assignment, std::uint64_t seed) {
  Worker& worker = state_->workers.front();
  worker.load(assignment.devices, -1);
  return worker.execute(seed);
}

double Simulator::makespan(std::span<const DeviceId> assignment) {
  return makespan(assignment, state_->model.options.seed);
}

double Simulator::makespan(std::span<const DeviceId> assignment, std::uint64_t seed) {
  Worker& worker = state_->workers.front();
  worker.load(assignment, -1);
  return worker.makespan(seed);
}

std::vector<double> Simulator::makespans(std::span<const DeviceId> assignments, int threads) {
  const std::size_t n = state_->model.n_nodes;
  if (n == 0 ? !assignments.empty() : assignments.size() % n != 0) {
    throw InvalidError(std::to_string(assignments.size()) +
                       " devices are no whole number of rows of " + std::to_string(n) + " nodes");
  }
  const std::size_t n_rows = n == 0 ? 0 : assignments.size() / n;
  if (threads < 0 || threads > 1024) {
    throw InvalidError(std::to_string(threads) + " threads; use 0 (one a core) to 1024");
  }
  std::size_t n_threads = threads == 0 ? std::max(1U, std::thread::hardware_concurrency())
                                       : static_cast<std::size_t>(threads);
  n_threads = std::max<std::size_t>(1, std::min(n_threads, n_rows));
  while (state_->workers.size() < n_threads) state_->workers.emplace_back(state_->model);

  std::vector<double> result(n_rows);
  const std::uint64_t seed = state_->model.options.seed;
  // Rows are cut into consecutive parts; each thread writes its own part of the result.
  std::vector<std::exception_ptr> failures(n_threads);
  const auto work = [&](std::size_t thread) {
    try {
      Worker& worker = state_->workers[thread];
      for (std::size_t r = n_rows * thread / n_threads; r < n_rows * (thread + 1) / n_threads;
           ++r) {
        worker.load(assignments.subspan(r * n, n), static_cast<std::int64_t>(r));
        result[r] = worker.makespan(seed);
      }
    } catch (...) {
      failures[thread] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < n_threads; ++t) others.emplace_back(work, t);
    work(0);
  }
  // The first failing row, whatever the number of threads.
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return result;
}

double Simulator::set_base(std::span<const DeviceId> assignment) {
  State& state = *state_;
  // Refused here, before the base of former calls is touched: half of an assignment is no base.
  state.workers.front().load(assignment, -1);
  if (!state.base) state.base.emplace(state.model);
  state.base->load(assignment, -1);
  state.base_makespan = state.base->can_resume()
                            ? state.base->fast().set_base(state.base->devices())
                            : state.base->makespan(options().seed);
  return state.base_makespan;
}

double Simulator::makespan_after_move(NodeId node, DeviceId device) {
  Worker& worker = state_->base_worker();
  state_->check_move(node, device);
  const auto position = static_cast<std::size_t>(graph().position(node));
  const DeviceId before(worker.devices()[position]);
  if (before == device) return state_->base_makespan;
  if (worker.can_resume()) return worker.fast().after_move(position, device.value);
  worker.move(node, device);
  const double result = worker.makespan(options().seed);
  worker.move(node, before);
  return result;
}

double Simulator::accept_move(NodeId node, DeviceId device) {
  Worker& worker = state_->base_worker();
  state_->check_move(node, device);
  worker.move(node, device);
  state_->base_makespan = worker.can_resume() ? worker.fast().set_base(worker.devices())
                                              : worker.makespan(options().seed);
  return state_->base_makespan;
}

}  // namespace doppler
