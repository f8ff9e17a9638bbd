// doppler(preset=paper) as an agent, by the rules of tests/agents/conformance.cc.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agents/learned/learned.h"
#include "agents/learned/paper_policy.h"
#include "agents/through_env.h"
#include "graphs/file.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler {
namespace {

Task drawn_task(std::uint64_t seed) {
  const auto drawn = testing::random_case(seed);
  return {"drawn", drawn.graph, drawn.cluster, drawn.cost_model, drawn.options, Split::none};
}

std::unique_ptr<Agent> paper_agent(const std::string& parameters = "") {
  const std::string more = parameters.empty() ? "" : "," + parameters;
  const NamedCall call = NamedCall::parse("doppler(preset=paper" + more + ")");
  return make_learned_agent("doppler", Parameters(agents().at("doppler").parameters, call));
}

// A policy file in the system's folder for such, gone with the object.
class PolicyOnDisk {
 public:
  explicit PolicyOnDisk(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("doppler-paper-" + std::to_string(std::hash<std::string>()(content)) + ".json")) {
    write_file(path_.string(), content);
  }
  ~PolicyOnDisk() { std::filesystem::remove(path_); }
  PolicyOnDisk(const PolicyOnDisk&) = delete;
  PolicyOnDisk& operator=(const PolicyOnDisk&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string untrained_policy(std::uint64_t seed) {
  return write_policy(paper_traits(PaperNetwork({}, seed)));
}

TEST_CASE("the paper's agent assigns random tasks, the same for a seed, within its evaluations") {
  const auto agent = paper_agent();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Task task = drawn_task(seed);
    for (std::int64_t max_evaluations : {1, 6}) {
      INFO("case " << seed << ", " << max_evaluations << " evaluations");
      const AssignOptions options{.seed = seed, .max_evaluations = max_evaluations};
      const AssignResult result = assign(*agent, task, options);
      CHECK(result.evaluations == max_evaluations);
      CHECK(result.makespan == task.simulator().run(result.assignment).makespan);
      CHECK(assign(*paper_agent(), task, options).assignment == result.assignment);
    }
  }
}

TEST_CASE("no time left still gives an assignment") {
  const AssignResult result =
      assign(*paper_agent(), drawn_task(3), {.max_evaluations = 100, .max_seconds = 0});
  CHECK(result.evaluations == 1);
}

TEST_CASE("improvements are told as they are found") {
  const Task task = drawn_task(4);
  std::vector<Improvement> curve;
  AssignOptions options{.seed = 1, .max_evaluations = 30};
  options.on_better = [&](const Improvement& improvement) { curve.push_back(improvement); };
  const AssignResult result = assign(*paper_agent(), task, options);
  REQUIRE_FALSE(curve.empty());
  CHECK(curve.front().evaluations == 1);
  CHECK(curve.back().makespan == result.makespan);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i].makespan < curve[i - 1].makespan);
    CHECK(curve[i].evaluations > curve[i - 1].evaluations);
  }
}

TEST_CASE("a policy decides by steps what it decides as a whole, on any task") {
  const PolicyOnDisk policy(untrained_policy(1));
  const auto agent = paper_agent("policy=" + policy.path());
  REQUIRE(agent->has_steps());
  CHECK_FALSE(paper_agent()->has_steps());
  CHECK_THROWS_AS(
      paper_agent()->select(PartialSchedule(std::make_shared<const PlacementModel>(drawn_task(1)))),
      std::logic_error);
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Task task = drawn_task(seed);
    if (task.graph.n_nodes() == 0) continue;
    const AssignResult direct = assign(*agent, task, {.seed = seed});
    CHECK(direct.evaluations == 1);
    for (const char* mode : {"sequential", "oneshot"}) {
      Env env(task, {.mode = mode});
      CHECK(assign_through_env(*agent, env, {.seed = seed}).assignment == direct.assignment);
    }
  }
}

TEST_CASE("evaluations beyond the first train the policy further, and never make it worse") {
  const PolicyOnDisk policy(untrained_policy(2));
  const auto agent = paper_agent("policy=" + policy.path());
  const Task task = drawn_task(5);
  const AssignResult greedy = assign(*agent, task, {.seed = 1});
  const AssignResult more = assign(*agent, task, {.seed = 1, .max_evaluations = 12});
  CHECK(more.evaluations == 12);
  CHECK(more.makespan <= greedy.makespan);
}

TEST_CASE("what is no policy of this agent is refused, by name of its file") {
  CHECK_THROWS_AS(paper_agent("policy=/nowhere/p.json"), RunError);
  CHECK_THROWS_WITH(paper_agent("policy=generalist"), Catch::Contains("preset best"));
  PolicyFile other;
  other.kind = "doppler";
  const PolicyOnDisk wrong_kind(write_policy(other));
  CHECK_THROWS_WITH(paper_agent("policy=" + wrong_kind.path()),
                    Catch::Contains(wrong_kind.path()) && Catch::Contains("of 'doppler'"));
  other.kind = kPaperPolicyKind;
  const PolicyOnDisk empty(write_policy(other));
  CHECK_THROWS_WITH(paper_agent("policy=" + empty.path()),
                    Catch::Contains(empty.path()) && Catch::Contains("no array"));
}

TEST_CASE("a GPU that is not there is told in one clear line") {
  TrainProblem problem{.tasks = {std::make_shared<const PlacementModel>(drawn_task(1))}};
  problem.options.device = "cuda";
  problem.options.max_evaluations = 2;
  try {
    const auto trainer = make_paper_trainer(PaperOptions{}, problem);
    while (trainer->update()) {
    }
    CHECK(trainer->progress().evaluations == 2);
  } catch (const RunError& error) {
    const std::string message = error.what();
    CHECK(message.find("GPU") != std::string::npos);
    CHECK(message.find("cpu") != std::string::npos);
    CHECK(std::count(message.begin(), message.end(), '\n') == 0);
  }
}

}  // namespace
}  // namespace doppler
