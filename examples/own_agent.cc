// An agent of one's own: of the nodes that may be placed the one with the most work behind it, on
// the device where it starts first.
#include <algorithm>
#include <iostream>

#include "agents/agent.h"
#include "datasets/tasks.h"

class EarliestStart : public doppler::Agent {
 public:
  doppler::NodeId select(const doppler::PartialSchedule& schedule) override {
    const auto& b_level = schedule.model().levels().b_level;
    return std::ranges::max(schedule.candidates(), {},
                            [&](doppler::NodeId node) { return b_level[node.index()]; });
  }

  doppler::DeviceId place(const doppler::PartialSchedule& schedule, doppler::NodeId node) override {
    doppler::DeviceId best;
    for (std::size_t d = 1; d < schedule.model().n_devices(); ++d) {
      const doppler::DeviceId device(static_cast<std::int64_t>(d));
      if (schedule.earliest_start(node, device) < schedule.earliest_start(node, best)) {
        best = device;
      }
    }
    return best;
  }
};

int main() {
  EarliestStart agent;
  const auto result = doppler::assign(agent, doppler::make_task("ffnn@p100x4"));
  std::cout << result.makespan * 1e3 << " ms, decided in " << result.seconds * 1e3 << " ms\n";
}
