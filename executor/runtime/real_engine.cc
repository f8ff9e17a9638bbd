#include "executor/runtime/real_engine.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/runtime/input_values.h"
#include "executor/runtime/machine_lock.h"
#include "executor/simulator/memory.h"
#include "executor/simulator/model.h"
#include "executor/simulator/record.h"
#include "graphs/error.h"

namespace doppler::runtime {

using simulation::Model;
using simulation::Timeline;

// What is kept from run to run, in the order in which it is made anew.
struct RealEngine::State {
  std::mutex mutex;
  std::optional<Cluster> cluster = {};  // of `session`
  bool limits_memory = false;
  std::unique_ptr<Session> session = {};
  std::optional<Graph> input_graph = {};
  std::vector<InputValues> inputs = {};  // of input_graph
  std::unique_ptr<Model> model = {};
  std::vector<std::int32_t> devices = {};  // by position

  // Makes everything fit the run. Throws InvalidError or RunError.
  void prepare(const RealEngineOptions& options, const Graph& graph, const Cluster& for_cluster,
               const CostModel& cost_model, const Assignment& assignment,
               const RunOptions& run_options) {
    assignment.check(graph, for_cluster);
    if (!model || !(model->graph == graph && model->cluster == for_cluster &&
                    model->cost_model == cost_model && model->options == run_options)) {
      model.reset();
      model = std::make_unique<Model>(graph, for_cluster, cost_model, run_options);
    }
    devices.clear();
    for (const std::int32_t node : model->node) {
      devices.push_back(assignment.devices[static_cast<std::size_t>(node)].value);
    }
    if (!session || !(cluster == for_cluster) || limits_memory != run_options.enforce_memory) {
      session.reset();
      SessionOptions session_options{.lanes = options.lanes,
                                     .lookahead = options.lookahead,
                                     .emulate_links = options.emulate_links};
      session_options.make_input = [this, seed = options.input_seed](const Graph& of, InputId input,
                                                                     std::span<std::byte> data) {
        if (!input_graph || !(*input_graph == of)) {
          inputs = input_values(of);
          input_graph = of;
        }
        fill_input(inputs[input.index()], seed, data);
      };
      session = std::make_unique<Session>(options.open(for_cluster, run_options.enforce_memory),
                                          for_cluster, std::move(session_options));
      cluster = for_cluster;
      limits_memory = run_options.enforce_memory;
    }
  }

  [[nodiscard]] Execution record(const Timeline& timeline) const {
    simulation::MemoryMeter meter(*model);
    Execution execution =
        simulation::record(*model, devices, timeline, meter.peaks(devices, timeline));
    execution.clock_error = session->clock_error();
    return execution;
  }
};

RealEngine::RealEngine(RealEngineOptions options)
    : options_(std::move(options)), state_(std::make_unique<State>()) {}
RealEngine::~RealEngine() = default;

Execution RealEngine::run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                          const Assignment& assignment, const RunOptions& options) {
  const std::lock_guard one_at_a_time(state_->mutex);
  const MachineLock lock;
  state_->prepare(options_, graph, cluster, cost_model, assignment, options);
  Timeline timeline;
  for (std::int64_t i = 0; i < options_.warm_up; ++i) {
    state_->session->run(*state_->model, state_->devices, timeline);
  }
  std::vector<Timeline> runs(static_cast<std::size_t>(options_.repeats));
  std::vector<double> makespans;
  for (Timeline& one : runs) {
    state_->session->run(*state_->model, state_->devices, one);
    makespans.push_back(one.makespan);
  }
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((runs.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [&](std::size_t a, std::size_t b) {
    return makespans[a] != makespans[b] ? makespans[a] < makespans[b] : a < b;
  });
  Execution execution = state_->record(runs[*middle]);
  execution.makespans = std::move(makespans);
  return execution;
}

Execution RealEngine::run_once(const Graph& graph, const Cluster& cluster,
                               const CostModel& cost_model, const Assignment& assignment,
                               const RunOptions& options, const ResultReader& results) {
  const std::lock_guard one_at_a_time(state_->mutex);
  const MachineLock lock;
  state_->prepare(options_, graph, cluster, cost_model, assignment, options);
  Timeline timeline;
  state_->session->run(*state_->model, state_->devices, timeline, results);
  Execution execution = state_->record(timeline);
  execution.makespans = {timeline.makespan};
  return execution;
}

}  // namespace doppler::runtime
