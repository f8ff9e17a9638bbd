// Engine: executes an assignment. The simulator computes what would happen; the real ones do it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "executor/execution.h"
#include "executor/run_options.h"
#include "graphs/assignment.h"
#include "graphs/cluster.h"
#include "graphs/cost_model.h"
#include "graphs/error.h"
#include "graphs/graph.h"
#include "graphs/registry.h"

namespace doppler {

// A real device's memory was full. The simulator returns Execution::out_of_memory instead.
class OutOfMemoryError : public RunError {
 public:
  OutOfMemoryError(const OutOfMemory& memory_lack, const std::string& message)
      : RunError(message), lack(memory_lack) {}
  OutOfMemory lack;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Runs the whole graph once. Throws InvalidError for an assignment or options that do not fit,
  // and RunError if the run itself fails; the engine is usable afterwards.
  virtual Execution run(const Graph& graph, const Cluster& cluster, const CostModel& cost_model,
                        const Assignment& assignment, const RunOptions& options) = 0;
};

// A registered engine.
struct EngineEntry : Description {
  std::function<std::unique_ptr<Engine>(const Parameters&)> make;
};

// Every engine of this build: "simulator", and the real ones as they are built.
const Registry<EngineEntry>& engines();
// From a spelling with parameters, "cpu(repeats=5)"; throws UsageError.
std::unique_ptr<Engine> make_engine(std::string_view spelling);

}  // namespace doppler
