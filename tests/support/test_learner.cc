#include "tests/support/test_learner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "agents/training.h"
#include "graphs/error.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler::testing {
namespace {

using Json = nlohmann::ordered_json;

struct Learnt {
  std::vector<std::vector<double>> weights = {};  // [nodes][devices]
  Assignment best = {};
  double best_makespan = std::numeric_limits<double>::infinity();
};

class TestTrainer : public Trainer {
 public:
  TestTrainer(const Parameters& parameters, const TrainProblem& problem)
      : tasks_(problem.tasks),
        options_(problem.options),
        batch_(parameters.get<std::int64_t>("batch")),
        pause_(parameters.get<double>("pause")),
        fault_(parameters.get<std::string>("fault")),
        fault_at_(parameters.get<std::int64_t>("at")),
        learnt_(tasks_.size()) {
    for (int stage : options_.stages) {
      if (stage == 3) throw UsageError("test-learner has no stage 3, for it runs no real engine");
    }
    total_ = options_.max_evaluations > 0 ? options_.max_evaluations
                                          : parameters.get<std::int64_t>("episodes");
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      learnt_[t].weights.assign(tasks_[t]->n_nodes(), std::vector<double>(tasks_[t]->n_devices()));
    }
    if (!options_.initial_policy.empty()) read_policy(options_.initial_policy);
  }

  bool update() override {
    if (progress_.episodes >= total_) return false;
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_));
    if (progress_.updates + 1 == fault_at_) {
      if (fault_ == "nan") throw RunError("the loss is nan");
      while (fault_ == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    const bool imitates = options_.stages.front() == 1 &&
                          (options_.stages.size() == 1 || progress_.episodes * 4 < total_);
    progress_.stage = imitates ? 1 : 2;
    const auto t = static_cast<std::size_t>(progress_.updates) % tasks_.size();
    Learnt& learnt = learnt_[t];
    Simulator simulator = tasks_[t]->task().simulator();
    double sum = 0;
    std::int64_t n = 0;
    for (; n < batch_ && progress_.episodes < total_; ++n, ++progress_.episodes) {
      const Assignment sampled = sample(learnt);
      if (imitates) continue;
      const double makespan = simulator.makespan(sampled.devices);
      ++progress_.evaluations;
      sum += makespan;
      if (makespan < learnt.best_makespan) {
        learnt.best_makespan = makespan;
        learnt.best = sampled;
      }
    }
    for (std::size_t v = 0; v < learnt.best.size(); ++v) {
      learnt.weights[v][learnt.best.devices[v].index()] += 0.1;
    }
    ++progress_.updates;
    progress_.share = static_cast<double>(progress_.episodes) / static_cast<double>(total_);
    progress_.best_makespan = learnt_[0].best_makespan;
    progress_.values = {{"loss", imitates ? std::nan("") : sum / static_cast<double>(n)},
                        {"luck", uniform()}};
    return true;
  }

  [[nodiscard]] TrainProgress progress() const override { return progress_; }

  [[nodiscard]] Decision best(std::size_t task) const override {
    const Learnt& learnt = learnt_[task];
    if (std::isinf(learnt.best_makespan)) {
      return {.assignment = Assignment(tasks_[task]->n_nodes(), DeviceId{0}),
              .evaluations = progress_.evaluations};
    }
    return {.assignment = learnt.best,
            .makespan = fault_ == "lie" ? learnt.best_makespan / 2 : learnt.best_makespan,
            .evaluations = progress_.evaluations};
  }

  [[nodiscard]] std::string policy() const override {
    Json tables = Json::array();
    for (const Learnt& learnt : learnt_) tables.push_back(learnt.weights);
    return Json{{"format", "test-learner"}, {"weights", std::move(tables)}}.dump() + "\n";
  }

  [[nodiscard]] std::string state() const override {
    Json json = {{"policy", policy()},
                 {"draws", n_draws_},
                 {"stage", progress_.stage},
                 {"updates", progress_.updates},
                 {"episodes", progress_.episodes},
                 {"evaluations", progress_.evaluations},
                 {"best", Json::array()}};
    for (const Learnt& learnt : learnt_) {
      Json devices = Json::array();
      for (DeviceId device : learnt.best.devices) devices.push_back(device.value);
      json["best"].push_back({{"devices", devices}, {"makespan", learnt.best_makespan}});
    }
    return json.dump();
  }

  void restore(std::string_view state) override {
    const nlohmann::json json = parse_strict_json(state, "state");
    if (json["best"].size() != tasks_.size()) throw ParseError("state of another problem");
    read_policy(json["policy"].get<std::string>());
    n_draws_ = json["draws"];
    progress_.stage = json["stage"];
    progress_.updates = json["updates"];
    progress_.episodes = json["episodes"];
    progress_.evaluations = json["evaluations"];
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      Learnt& learnt = learnt_[t];
      learnt.best.devices.clear();
      for (std::int32_t device : json["best"][t]["devices"])
        learnt.best.devices.emplace_back(device);
      const auto& makespan = json["best"][t]["makespan"];
      if (makespan.is_number()) learnt.best_makespan = makespan.get<double>();
    }
    progress_.share = static_cast<double>(progress_.episodes) / static_cast<double>(total_);
    progress_.best_makespan = learnt_[0].best_makespan;
  }

 private:
  // Uniform in [0, 1), of the seed and the number of draws before.
  double uniform() {
    return static_cast<double>(mix64(mix64(options_.seed) + ++n_draws_) >> 11) * 0x1p-53;
  }

  Assignment sample(const Learnt& learnt) {
    Assignment assignment(learnt.weights.size(), DeviceId{0});
    for (std::size_t v = 0; v < learnt.weights.size(); ++v) {
      double best = -1;
      for (std::size_t d = 0; d < learnt.weights[v].size(); ++d) {
        const double score = learnt.weights[v][d] + uniform();
        if (score <= best) continue;
        best = score;
        assignment.devices[v] = DeviceId(static_cast<std::int64_t>(d));
      }
    }
    return assignment;
  }

  void read_policy(std::string_view content) {
    const nlohmann::json json = parse_strict_json(content, "policy");
    const JsonElement root(json, kPolicy);
    if (root.field("format").text() != "test-learner") root.fail("no policy of a test-learner");
    const auto tables = root.field("weights").elements();
    if (tables.size() != tasks_.size()) root.fail("a policy for other tasks");
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      auto weights = json["weights"][t].get<std::vector<std::vector<double>>>();
      if (weights.size() != learnt_[t].weights.size()) root.fail("a policy for another graph");
      learnt_[t].weights = std::move(weights);
    }
  }

  inline static const std::string kPolicy = "policy";

  std::vector<std::shared_ptr<const PlacementModel>> tasks_;
  TrainOptions options_;
  std::int64_t batch_;
  double pause_;
  std::string fault_;
  std::int64_t fault_at_;
  std::int64_t total_ = 0;
  std::uint64_t n_draws_ = 0;
  std::vector<Learnt> learnt_;
  TrainProgress progress_;
};

// Everything on the first device: what it would be without training does not matter here.
class Untrained : public Agent {
 public:
  explicit Untrained(bool lies) : lies_(lies) {}

  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& options) override {
    Decision decision = Agent::decide(std::move(model), options);
    if (lies_ && options.seed == 1) decision.makespan = -1;
    return decision;
  }
  NodeId select(const PartialSchedule& schedule) override { return schedule.candidates()[0]; }
  DeviceId place(const PartialSchedule& /*schedule*/, NodeId /*node*/) override {
    return DeviceId{0};
  }

 private:
  bool lies_;
};

}  // namespace

void register_test_learner() {
  AgentEntry entry;
  entry.name = "test-learner";
  entry.summary = "samples from a table and moves it toward the best";
  entry.source = "own";
  entry.family = "learned";
  entry.parameters = {
      {.name = "episodes", .summary = "of a whole run", .default_value = std::int64_t{40}},
      {.name = "batch", .summary = "episodes an update", .default_value = std::int64_t{4}},
      {.name = "pause", .summary = "seconds asleep in an update", .default_value = 0.0},
      {.name = "fault",
       .summary = "what goes wrong",
       .default_value = std::string("none"),
       .choices = {"none", "nan", "hang", "lie"}},
      {.name = "at", .summary = "the update where it does", .default_value = std::int64_t{0}}};
  entry.make = [](const Parameters& parameters) {
    return std::make_unique<Untrained>(parameters.get<std::string>("fault") == "lie");
  };
  entry.train = [](const Parameters& parameters, const TrainProblem& problem) {
    return std::make_unique<TestTrainer>(parameters, problem);
  };
  register_agent(std::move(entry));
}

}  // namespace doppler::testing
