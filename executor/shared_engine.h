// One engine for many threads, and for processes that fork.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>

#include "executor/engine.h"

namespace doppler {

// Thread safe: runs queue. The engine is made when it is first used, and again in a child after a
// fork, where the threads of the parent's engine are not.
class SharedEngine {
 public:
  // A spelling with parameters, "cpu(repeats=5)". Throws UsageError.
  explicit SharedEngine(const std::string& spelling);
  ~SharedEngine();
  SharedEngine(const SharedEngine&) = delete;
  SharedEngine& operator=(const SharedEngine&) = delete;

  [[nodiscard]] const std::string& spelling() const { return spelling_; }
  // As Engine::run().
  Execution run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                const Assignment& assignment, const RunOptions& options);

 private:
  void leave_to_parent();

  std::string spelling_;
  std::mutex queue_;
  std::unique_ptr<Engine> engine_;
  pid_t owner_ = 0;  // the process that made it
};

}  // namespace doppler
