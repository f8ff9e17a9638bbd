#include "executor/shared_engine.h"

#include <unistd.h>

namespace doppler {

SharedEngine::SharedEngine(const std::string& spelling) : spelling_(spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const EngineEntry& entry = engines().at(call.name);
  spelling_ = Parameters(entry.parameters, call).canonical();
}

SharedEngine::~SharedEngine() { leave_to_parent(); }

Execution SharedEngine::run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                            const Assignment& assignment, const RunOptions& options) {
  const std::lock_guard in_turn(queue_);
  leave_to_parent();
  if (!engine_) {
    engine_ = make_engine(spelling_);
    owner_ = ::getpid();
  }
  return engine_->run(graph, cluster, cost_model, assignment, options);
}

// Destroying the parent's engine would wait for its threads, which are not here. What it holds is
// the parent's to give back.
void SharedEngine::leave_to_parent() {
  if (engine_ && owner_ != ::getpid()) static_cast<void>(engine_.release());
}

}  // namespace doppler
