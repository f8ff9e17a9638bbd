#include "tests/support/machine_run.h"

#include <algorithm>

#include "executor/simulator/event_loop.h"
#include "executor/simulator/model.h"

namespace doppler::testing {

MachineRun::MachineRun(std::unique_ptr<runtime::DeviceApi> api, const Cluster& cluster,
                       runtime::Lookahead lookahead)
    : cluster_(cluster),
      session_(std::move(api), cluster,
               {.lanes = runtime::Lanes::pairs,
                .lookahead = lookahead,
                .make_input = [this](const Graph&, InputId input, std::span<std::byte> data) {
                  const Bytes& given = inputs_.at(input.index());
                  std::copy(given.begin(), given.end(), data.begin());
                }}) {}

std::vector<Bytes> MachineRun::run(const Graph& graph, const std::vector<Bytes>& inputs,
                                   const Assignment& assignment, const RunOptions& options) {
  inputs_ = inputs;
  const simulation::Model model(graph, cluster_, CostModel::analytical(), options);
  std::vector<std::int32_t> devices;
  for (const std::int32_t node : model.node) {
    devices.push_back(assignment.devices[static_cast<std::size_t>(node)].value);
  }
  std::vector<Bytes> outputs(graph.n_nodes());
  simulation::Timeline timeline;
  session_.run(model, devices, timeline, [&](TensorId tensor, std::span<const std::byte> data) {
    outputs[graph.tensor_producer(tensor).index()].assign(data.begin(), data.end());
  });
  return outputs;
}

}  // namespace doppler::testing
