#include "agents/online/executions.h"

#include <chrono>
#include <cmath>
#include <sstream>
#include <utility>

#include "graphs/hash.h"

namespace doppler {

Executions::Executions(std::shared_ptr<const PlacementModel> model, const std::string& engine,
                       std::uint64_t seed)
    : model_(std::move(model)), engine_(engine), seed_(seed) {}

ExecutionResult Executions::run(const Assignment& assignment) {
  const Task& task = model_->task();
  RunOptions options = task.options;
  options.seed = mix64(seed_ ^ mix64(static_cast<std::uint64_t>(n_runs_) + 1));
  options.record_timeline = true;
  ++n_runs_;
  ExecutionResult result;
  const auto begin = std::chrono::steady_clock::now();
  try {
    result.execution = engine_.run(task.graph, task.cluster, task.cost_model, assignment, options);
    if (result.execution.out_of_memory) {
      std::ostringstream text;
      text << "device " << result.execution.out_of_memory->device << " is out of memory";
      result.failure = text.str();
    }
    has_run_ = true;
  } catch (const OutOfMemoryError& error) {
    has_run_ = true;
    result.execution = {.makespan = std::numeric_limits<double>::infinity()};
    result.failure = error.what();
  } catch (const RunError& error) {
    if (!has_run_ && ++n_failures_ >= kMostFailures) throw;
    result.execution = {.makespan = std::numeric_limits<double>::infinity()};
    result.failure = error.what();
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  result.seconds = spent.count();
  result.cost = std::isfinite(result.execution.makespan) ? result.execution.makespan
                                                         : kPenalty * model_->time_scale();
  return result;
}

}  // namespace doppler
