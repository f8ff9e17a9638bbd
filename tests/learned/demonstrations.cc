// Stage I on demonstrations: the policy comes to decide as they do.
#include "agents/demonstrations.h"

#include "agents/training.h"
#include "datasets/tasks.h"
#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

// Everything on two of the devices, by level: what no teacher of stage I would do.
class TwoDevices : public Demonstrations {
 public:
  explicit TwoDevices(std::shared_ptr<const PlacementModel> model) : model_(std::move(model)) {}
  [[nodiscard]] std::int64_t size(std::size_t /*task*/) const override { return 3; }
  [[nodiscard]] Demonstration read(std::size_t /*task*/, std::int64_t number) const override {
    Demonstration result;
    const auto order = model_->b_level_order();
    result.order.assign(order.begin(), order.end());
    result.assignment = Assignment(model_->n_nodes(), DeviceId{0});
    for (std::size_t i = 0; i < order.size(); ++i) {
      result.assignment[order[i]] = DeviceId((static_cast<std::int64_t>(i) + number) % 2);
    }
    return result;
  }

 private:
  std::shared_ptr<const PlacementModel> model_;
};

double first_and_last_loss(const std::string& agent, double& last) {
  const auto model = std::make_shared<const PlacementModel>(make_task("chainmm@p100x4"));
  TrainOptions options{.stages = {1}, .max_evaluations = agent == "doppler" ? 1 : 0};
  options.demonstrations = std::make_shared<const TwoDevices>(model);
  const auto trainer = make_trainer(agent, {.tasks = {model}, .options = options});
  std::vector<double> losses;
  while (trainer->update()) {
    for (const auto& [name, value] : trainer->progress().values) {
      if (name == "loss") losses.push_back(value);
    }
  }
  REQUIRE(losses.size() >= 20);
  last = losses.back();
  return losses.front();
}

TEST_CASE("Imitating demonstrations, the loss falls") {
  double last = 0;
  const double first = first_and_last_loss("doppler", last);
  CHECK(last < 0.9 * first);
}

TEST_CASE("A data set needs stage 1, and one task for the preset best") {
  const auto model = std::make_shared<const PlacementModel>(make_task("chainmm@p100x4"));
  TrainOptions options{.stages = {2}};
  options.demonstrations = std::make_shared<const TwoDevices>(model);
  CHECK_THROWS_AS(make_trainer("doppler", {.tasks = {model}, .options = options}), UsageError);
  options.stages = {1};
  CHECK_THROWS_AS(make_trainer("doppler", {.tasks = {model, model}, .options = options}),
                  UsageError);
}

TEST_CASE("The paper's preset learns from demonstrations too") {
  const auto model = std::make_shared<const PlacementModel>(make_task("chainmm@p100x4"));
  TrainOptions options{.stages = {1}, .max_evaluations = 0};
  options.demonstrations = std::make_shared<const TwoDevices>(model);
  const auto trainer = make_trainer("doppler(preset=paper,imitation_episodes=300)",
                                    {.tasks = {model}, .options = options});
  while (trainer->update()) {
  }
  // Critical path, its own teacher, uses all four devices.
  std::size_t n_on_two = 0;
  const Assignment decided = trainer->best(0).assignment;
  for (DeviceId device : decided.devices) n_on_two += device.value < 2 ? 1 : 0;
  CHECK(n_on_two > decided.size() * 9 / 10);
}

}  // namespace
}  // namespace doppler::testing
