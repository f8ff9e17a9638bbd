// Heads that are pulled to the assignment of enumerative.
#include <algorithm>
#include <cmath>

#include "agents/agent.h"
#include "agents/learned/doppler_policy.h"
#include "agents/learned/doppler_trainer.h"
#include "datasets/tasks.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

using Model = std::shared_ptr<const PlacementModel>;

Model model_of(const std::string& task) {
  return std::make_shared<const PlacementModel>(make_task(task));
}

std::vector<DeviceId> decided(HeadRollout& rollout, const Head& head) {
  const auto devices = rollout.decide(head);
  return {devices.begin(), devices.end()};
}

double makespan_of(const std::string& agent, const Model& model, std::int64_t evaluations) {
  return assign(*make_agent(agent), model->task(), {.max_evaluations = evaluations}).makespan;
}

TEST_CASE("between no pull and a full one a head goes from its own assignment to the pattern") {
  const auto model = model_of("llama-layer@v100x8");
  const DopplerPolicy policy = DopplerPolicy::untrained(0);
  const Latents latents = policy.network.latents(NetworkInputs(*model));
  const std::vector<DeviceId> pattern = pattern_of(model);
  HeadRollout free(model, latents);
  HeadRollout rollout(model, latents, pattern);
  for (const Head& head : policy.heads) {
    const std::vector<DeviceId> own = decided(free, head);
    CHECK(decided(rollout, head) == own);
    CHECK(decided(rollout, pulled(head, 0)) == own);
    CHECK(decided(free, pulled(head, kFullPull)) == own);
    CHECK(decided(rollout, pulled(head, kFullPull)) == pattern);
    CHECK(pulled(pulled(head, 2), 3) == pulled(head, 3));

    // Neither of the two, between them.
    const std::vector<DeviceId> between = decided(rollout, pulled(head, 0.03));
    CHECK(between != own);
    CHECK(between != pattern);
  }
}

TEST_CASE("the choice of a pulled head is the least cost after the pull, in time scales") {
  // Two equal devices and one node: the cost of a device is its earliest start, 0 on both.
  const auto model = model_of("random-dag(n=1)@uniform(2)");
  LinearRule rule(model);
  const std::vector<DeviceId> pattern = {DeviceId(1)};
  RuleWeights weights = {};
  weights[weight_index(DeviceFeature::earliest_start)] = 1;
  CHECK(rule.decide(weights)[0] == DeviceId(0));
  rule.pull_to(pattern, 1e-9);
  CHECK(rule.decide(weights)[0] == DeviceId(1));
  rule.pull_to({}, 1);
  CHECK(rule.decide(weights)[0] == DeviceId(0));
}

TEST_CASE("a policy file keeps pulls, beside heads without") {
  const auto model = model_of("llama-block@v100x8");
  const DopplerPolicy policy = DopplerPolicy::untrained(5);
  const std::vector<Head> heads = {pulled(policy.heads[0], 0.25), policy.heads[1],
                                   pulled(policy.heads[1], kFullPull)};
  const DopplerPolicy read = DopplerPolicy::parse(policy_text(policy.network, heads), "test");
  REQUIRE(read.heads.size() == 3);
  CHECK(pull_of(read.heads[0]) == 0.25);
  CHECK(pull_of(read.heads[1]) == 0);
  CHECK(pull_of(read.heads[2]) == kFullPull);
  CHECK(DopplerPolicy::parse(policy.text(), "test").heads[0].size() == policy.heads[0].size());
  CHECK(read.text() == policy_text(read.network, read.heads));

  const Latents latents = read.network.latents(NetworkInputs(*model));
  const std::vector<DeviceId> pattern = pattern_of(model);
  HeadRollout rollout(model, latents, pattern);
  CHECK(decided(rollout, read.heads[2]) == pattern);
}

TEST_CASE("from two evaluations on doppler is no worse than enumerative") {
  for (const char* task : {"chainmm@v100x8", "ffnn@p100x4", "llama-block@v100x8",
                           "llama-layer@h100x8", "random-dag(n=80)@mixed"}) {
    CAPTURE(task);
    const auto model = model_of(task);
    const double enumerative = makespan_of("enumerative", model, 1);
    CHECK(makespan_of("doppler", model, 2) <= enumerative);
    CHECK(makespan_of("doppler(policy=generalist)", model, 8) <= enumerative);
  }
}

TEST_CASE("with one evaluation doppler takes the pattern or its first head, by its estimate") {
  // The pattern is the shorter of the two here, and there it is not.
  const auto here = model_of("llama-block@v100x8");
  const double shorter = makespan_of("enumerative", here, 1);
  CHECK(shorter < makespan_of("partner-list", here, 1));
  CHECK(makespan_of("doppler", here, 1) == shorter);
  const auto there = model_of("ffnn@v100x8");
  const double own = makespan_of("partner-list", there, 1);
  CHECK(own < makespan_of("enumerative", there, 1));
  CHECK(makespan_of("doppler", there, 1) == own);
}

TEST_CASE("what the search found under a pull is what its policy file decides") {
  const auto model = model_of("llama-layer@v100x8");
  DopplerTrainer trainer({}, {.tasks = {model}, .options = {.max_evaluations = 200}},
                         DopplerPolicy::untrained(0));
  while (trainer.update()) {
  }
  const DopplerPolicy policy = DopplerPolicy::parse(trainer.policy(), "test");
  REQUIRE(pull_of(policy.heads[0]) > 0);  // on this task the best are
  const Latents latents = policy.network.latents(NetworkInputs(*model));
  const std::vector<DeviceId> pattern = pattern_of(model);
  HeadRollout rollout(model, latents, pattern);
  Simulator simulator = model->task().simulator();
  // A policy file keeps float32.
  CHECK(simulator.makespan(decided(rollout, policy.heads[0])) ==
        Approx(trainer.best(0).makespan.value()).epsilon(0.02));
}

TEST_CASE("one policy alone knows no pattern") {
  const auto model = model_of("llama-block@v100x8");
  for (const char* agent : {"doppler-sel", "doppler-plc"}) {
    CHECK(makespan_of(agent, model, 1) > makespan_of("enumerative", model, 1));
  }
}

}  // namespace
}  // namespace doppler
