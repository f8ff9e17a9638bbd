// What the heuristics are known to give on the published graphs.
#include "agents/agent.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

struct Known {
  const char* task;
  double critical_path;  // mean, about; raw cost / 1e10
  double partner_list;
};
constexpr Known kKnown[] = {
    {"published/chainmm", 1722, 1200.07},      {"published/ffnn", 84.3, 56.698},
    {"published/llama-block", 250, 166.784},   {"published/llama-layer", 237, 173.867},
    {"published/llama-block-8", 331, 173.673}, {"published/llama-layer-8", 277, 173.766},
};

TEST_CASE("partner-list gives the known makespans on the published graphs") {
  for (const Known& known : kKnown) {
    INFO(known.task);
    const AssignResult result = assign(*make_agent("partner-list"), make_task(known.task));
    CHECK(result.makespan / 1e10 == Approx(known.partner_list).epsilon(0).margin(6e-4));
  }
}

TEST_CASE("critical-path gives about the known means on the published graphs") {
  constexpr int kSeeds = 60;
  for (const Known& known : kKnown) {
    INFO(known.task);
    const Task task = make_task(known.task);
    const auto agent = make_agent("critical-path");
    double sum = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      sum += assign(*agent, task, {.seed = seed}).makespan;
    }
    CHECK(sum / kSeeds / 1e10 == Approx(known.critical_path).epsilon(0.04));
  }
}

}  // namespace
}  // namespace doppler
