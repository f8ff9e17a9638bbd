// Graphs on a machine (executor/runtime/device_api.h) with inputs of the test's own.
#pragma once

#include <memory>
#include <vector>

#include "executor/runtime/device_api.h"
#include "executor/runtime/session.h"
#include "graphs/assignment.h"
#include "graphs/cluster.h"
#include "tests/support/graph_values.h"

namespace doppler::testing {

class MachineRun {
 public:
  MachineRun(std::unique_ptr<runtime::DeviceApi> api, const Cluster& cluster,
             runtime::Lookahead lookahead = {});

  // Runs the graph once. By node: what the outputs hold of nodes that nobody reads, nothing for the
  // others. A graph is run with the same inputs each time.
  std::vector<Bytes> run(const Graph& graph, const std::vector<Bytes>& inputs,
                         const Assignment& assignment, const RunOptions& options = {});

 private:
  Cluster cluster_;
  std::vector<Bytes> inputs_;
  runtime::Session session_;
};

}  // namespace doppler::testing
