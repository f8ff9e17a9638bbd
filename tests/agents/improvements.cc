// What AssignOptions::on_better is told.
#include <string>
#include <vector>

#include "agents/agent.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

struct Watched {
  AssignResult result;
  std::vector<Improvement> curve;
};

Watched watch(const std::string& agent, const Task& task, AssignOptions options) {
  Watched watched;
  options.on_better = [&](const Improvement& improvement) { watched.curve.push_back(improvement); };
  watched.result = assign(*make_agent(agent), task, options);
  return watched;
}

TEST_CASE("improvements lead down to the result and change nothing of it") {
  const Task task = make_task("published/ffnn");
  for (const std::string agent :
       {"annealing", "annealing(start=random,moves=single)", "local-search(start=random)",
        "rule-search", "enumerative", "partner-list", "critical-path", "random"}) {
    INFO(agent);
    const AssignOptions options{.seed = 3, .max_evaluations = 400};
    const AssignResult plain = assign(*make_agent(agent), task, options);
    const Watched watched = watch(agent, task, options);
    CHECK(watched.result.assignment == plain.assignment);
    CHECK(watched.result.evaluations == plain.evaluations);
    REQUIRE(!watched.curve.empty());
    for (std::size_t i = 1; i < watched.curve.size(); ++i) {
      CHECK(watched.curve[i].makespan < watched.curve[i - 1].makespan);
      CHECK(watched.curve[i].evaluations > watched.curve[i - 1].evaluations);
      CHECK(watched.curve[i].seconds >= watched.curve[i - 1].seconds);
    }
    CHECK(watched.curve.front().evaluations == 1);
    CHECK(watched.curve.back().makespan == watched.result.makespan);
    CHECK(watched.curve.back().evaluations <= watched.result.evaluations);
    CHECK(watched.curve.back().seconds <= watched.result.seconds);
  }
}

TEST_CASE("an improvement comes at the evaluation at which a shorter search would have ended") {
  const Task task = make_task("published/ffnn");
  const Watched whole = watch("rule-search", task, {.seed = 1, .max_evaluations = 200});
  REQUIRE(whole.curve.size() >= 3);
  for (const Improvement& improvement : whole.curve) {
    const auto result = assign(*make_agent("rule-search"), task,
                               {.seed = 1, .max_evaluations = improvement.evaluations});
    CHECK(result.makespan == improvement.makespan);
  }
}

// Measures the same assignment as often as it may and keeps its silence.
class Silent : public Agent {
 public:
  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    const Assignment assignment(model->n_nodes(), DeviceId{0});
    Simulator simulator = model->task().simulator();
    double makespan = 0;
    for (std::int64_t i = 0; i < options.max_evaluations; ++i) {
      makespan = simulator.makespan(assignment.devices);
    }
    return {.assignment = assignment, .makespan = makespan, .evaluations = options.max_evaluations};
  }
};

TEST_CASE("of an agent that tells nothing, the result is told") {
  Silent agent;
  std::vector<Improvement> curve;
  const AssignResult result = assign(
      agent, make_task("published/ffnn"),
      {.max_evaluations = 5, .on_better = [&](const Improvement& told) { curve.push_back(told); }});
  CHECK(curve == std::vector<Improvement>{{5, result.seconds, result.makespan}});
}

}  // namespace
}  // namespace doppler
