// What is recorded of environments is what they showed.
#include "datasets/trajectories/env_recording.h"

#include <cstring>
#include <map>

#include "datasets/tasks.h"
#include "datasets/trajectories/dataset_files.h"
#include "executor/simulator/simulator.h"
#include "tests/datasets/trajectories/support.h"
#include "tests/env/diamond.h"
#include "tests/support/catch.h"
#include "tests/support/random_cases.h"

namespace doppler::testing {
namespace {

const std::string kId = "test/env-v0";

std::shared_ptr<const EnvModel> make_model(const EnvOptions& options) {
  Task noisy = diamond();
  noisy.options.noise = 0.2;
  return std::make_shared<const EnvModel>(std::vector<Task>{noisy, lone_node()}, options);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The rows of one episode, kept as they were shown.
struct Witness {
  std::map<std::string, std::string> rows = {};
  std::int64_t n_steps = 0;
  double makespan = 0;
  std::size_t task = 0;

  void look(const Env& env, bool illegal) {
    for (std::size_t a = 0; a < env.spec().observations.size(); ++a) {
      const ArraySpec& array = env.spec().observations[a];
      rows["observations/" + array.name] += text_of(env.observation(a));
    }
    rows["infos/illegal"] += illegal ? '\1' : '\0';
  }
  void note(std::span<const std::int64_t> action, const StepResult& result) {
    ++n_steps;
    rows["actions"] += text_of(std::as_bytes(action));
    rows["rewards"] += text_of(std::as_bytes(std::span(&result.reward, 1)));
    rows["terminations"] += result.terminated ? '\1' : '\0';
    rows["truncations"] += result.truncated ? '\1' : '\0';
  }
};

// Legal three times in four.
std::vector<std::int64_t> some_action(const Env& env, Draws& draws) {
  std::vector<std::int64_t> action;
  for (std::int64_t size : env.spec().action.sizes) action.push_back(draws.between(0, size - 1));
  if (env.spec().action.discrete && draws.chance(0.75)) {
    const auto legal = env.legal_actions();
    action = {legal[draws.below(legal.size())]};
  }
  return action;
}

void check_episode(const EpisodeFileReader& reader, std::int64_t i, const Witness& seen,
                   const EnvModel& model, bool full) {
  CHECK(reader.n_steps(i) == seen.n_steps);
  for (const auto& [path, rows] : seen.rows) {
    const std::string name = path.substr(path.find('/') + 1);
    const auto& arrays = model.spec().observations;
    const auto array = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const ArraySpec& one) { return one.name == name; });
    INFO(path);
    if (array != arrays.end() && array->is_static && !full) {
      CHECK_FALSE(reader.array(i, path));
      const auto kept = reader.array(i, "static/" + name);
      REQUIRE(kept);
      CHECK(kept->n_rows == 1);
      CHECK(kept->rows == rows.substr(0, kept->rows.size()));
      continue;
    }
    const auto found = reader.array(i, path);
    REQUIRE(found);
    CHECK(found->rows == rows);
  }
  const Attributes attributes = reader.attributes(i);
  for (const auto& [name, value] : attributes) {
    if (name == "makespan") CHECK(std::get<double>(value) == seen.makespan);
    if (name == "task_index") CHECK(std::get<std::int64_t>(value) == std::int64_t(seen.task));
  }
}

TEST_CASE("Every array of every step of an Env is recorded bit for bit") {
  for (const char* mode : {"sequential", "joint", "place", "refine", "oneshot"}) {
    for (const bool full : {false, true}) {
      INFO(mode << " full " << full);
      const TemporaryFolder root;
      const auto model = make_model({.mode = mode,
                                     .reward = Reward::dense,
                                     .features = Features::full,
                                     .on_illegal = OnIllegal::penalize});
      const EnvRecordingOptions options{.full = full};
      const auto plan = std::make_shared<const EnvRecordingPlan>(model, options);
      TrajectoryRecorder trajectories(
          RecordingFolder::create(
              root.path(), {kId, recording_metadata(kId, *model, options, {.agent = "random"})}),
          {.flush_episodes = 4});
      EnvRecorder recorder(plan, trajectories);
      Env env(model);
      Draws draws(3);
      std::vector<Witness> seen;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        env.reset({.seed = seed});
        recorder.began(env, seed);
        Witness witness{.task = env.task_index()};
        witness.look(env, false);
        while (env.running()) {
          const auto action = some_action(env, draws);
          const StepResult result = env.step(action);
          recorder.stepped(env, action, result);
          witness.note(action, result);
          witness.look(env, result.illegal);
          if (result.terminated) witness.makespan = env.result().makespan;
        }
        seen.push_back(std::move(witness));
      }
      // One that does not end is not recorded.
      env.reset({.seed = 99});
      recorder.began(env, 99);
      trajectories.build();
      const DatasetPaths paths(root.path(), kId);
      const DatasetCheck check = check_dataset(paths);
      for (const std::string& fault : check.faults) UNSCOPED_INFO(fault);
      CHECK(check.faults.empty());
      const EpisodeFileReader reader(paths.main());
      REQUIRE(reader.n_episodes() == 12);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        check_episode(reader, std::int64_t(i), seen[i], *model, full);
      }
    }
  }
}

TEST_CASE("A VectorEnv is recorded as its environments one by one") {
  for (const Autoreset autoreset :
       {Autoreset::next_step, Autoreset::same_step, Autoreset::disabled}) {
    for (const int n_threads : {1, 3}) {
      INFO(to_string(autoreset) << " " << n_threads);
      constexpr std::size_t kEnvs = 5;
      const TemporaryFolder root;
      const auto model = make_model({.mode = "sequential", .on_illegal = OnIllegal::penalize});
      const auto plan = std::make_shared<const EnvRecordingPlan>(model, EnvRecordingOptions{});
      TrajectoryRecorder trajectories(RecordingFolder::create(
          root.path(), {kId, recording_metadata(kId, *model, {}, {.agent = "random"})}));
      VectorEnv envs(model, kEnvs, {.autoreset = autoreset, .n_threads = n_threads});
      VectorEnvRecorder recorder(plan, trajectories, envs);
      std::vector<Env> singles(kEnvs, Env(model));
      std::vector<Witness> witnesses(kEnvs);
      std::vector<std::uint8_t> ended(kEnvs, 0);
      std::vector<Witness> seen;
      std::vector<std::uint64_t> seeds = {4, 5, 6, 7, 8};
      envs.reset(seeds);
      recorder.began(seeds);
      const auto begin = [&](std::size_t i) {
        witnesses[i] = {.task = singles[i].task_index()};
        witnesses[i].look(singles[i], false);
        ended[i] = 0;
      };
      for (std::size_t i = 0; i < kEnvs; ++i) {
        singles[i].reset({.seed = seeds[i]});
        begin(i);
      }
      Draws draws(9);
      for (int t = 0; t < 60; ++t) {
        if (autoreset == Autoreset::disabled) {
          for (std::uint64_t& seed : seeds) seed += kEnvs;
          envs.reset(seeds, ended);
          recorder.began(seeds, ended);
          for (std::size_t i = 0; i < kEnvs; ++i) {
            if (ended[i] == 0) continue;
            singles[i].reset({.seed = seeds[i]});
            begin(i);
          }
        }
        std::vector<std::int64_t> actions(kEnvs, 0);
        for (std::size_t i = 0; i < kEnvs; ++i) {
          if (ended[i] != 0) continue;
          actions[i] = some_action(singles[i], draws)[0];
        }
        envs.step(actions);
        recorder.stepped(actions);
        for (std::size_t i = 0; i < kEnvs; ++i) {
          if (ended[i] != 0) {
            singles[i].reset();
            begin(i);
            continue;
          }
          const StepResult result = singles[i].step(actions[i]);
          witnesses[i].note(std::span(&actions[i], 1), result);
          witnesses[i].look(singles[i], result.illegal);
          if (!result.terminated && !result.truncated) continue;
          if (result.terminated) witnesses[i].makespan = singles[i].result().makespan;
          seen.push_back(witnesses[i]);
          ended[i] = 1;
          if (autoreset != Autoreset::same_step) continue;
          singles[i].reset();
          begin(i);
        }
      }
      REQUIRE(seen.size() > 2 * kEnvs);
      trajectories.build();
      const EpisodeFileReader reader(DatasetPaths(root.path(), kId).main());
      REQUIRE(reader.n_episodes() == std::int64_t(seen.size()));
      for (std::size_t i = 0; i < seen.size(); ++i) {
        check_episode(reader, std::int64_t(i), seen[i], *model, false);
      }
    }
  }
}

TEST_CASE("A timeline is the simulator's") {
  const TemporaryFolder root;
  Task task = make_task("ffnn@p100x4");
  task.options.noise = 0.1;
  const auto model =
      std::make_shared<const EnvModel>(std::vector<Task>{task}, EnvOptions{.mode = "oneshot"});
  const EnvRecordingOptions options{.timeline = true};
  const auto plan = std::make_shared<const EnvRecordingPlan>(model, options);
  TrajectoryRecorder trajectories(RecordingFolder::create(
      root.path(), {kId, recording_metadata(kId, *model, options, {.agent = "random"})}));
  EnvRecorder recorder(plan, trajectories);
  Env env(model);
  env.reset({.seed = 5});
  recorder.began(env, 5);
  std::vector<std::int64_t> action;
  for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) action.push_back(std::int64_t(v) % 4);
  recorder.stepped(env, action, env.step(action));
  trajectories.build();

  task.options.record_timeline = true;
  task.options.seed = env.result().engine_seed;
  const Execution execution = task.simulator().run(env.result().assignment);
  CHECK(execution.makespan == env.result().makespan);
  const EpisodeFileReader reader(DatasetPaths(root.path(), kId).main());
  const auto column = [&](const std::string& name) {
    const auto array = reader.array(0, "timeline/" + name);
    REQUIRE(array);
    std::vector<double> values(static_cast<std::size_t>(array->n_rows));
    REQUIRE(array->rows.size() == values.size() * sizeof(double));
    std::memcpy(values.data(), array->rows.data(), array->rows.size());
    return values;
  };
  const auto starts = column("node_start");
  const auto ends = column("transfer_end");
  REQUIRE(starts.size() == execution.nodes.size());
  REQUIRE(ends.size() == execution.transfers.size());
  for (std::size_t v = 0; v < starts.size(); ++v) CHECK(starts[v] == execution.nodes[v].start);
  for (std::size_t k = 0; k < ends.size(); ++k) CHECK(ends[k] == execution.transfers[k].end);
}

}  // namespace
}  // namespace doppler::testing
