// Environments whose assignments are run for real.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <vector>

#include "datasets/tasks.h"
#include "env/vector_env.h"
#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

namespace doppler {
namespace {

using Catch::Matchers::WithinRel;

constexpr const char* kTask = "chainmm(n=16,shards=2)@cpu2";

EnvOptions on_cpu() { return {.mode = "oneshot", .engine = "cpu(repeats=1,warm_up=0)"}; }

TEST_CASE("an episode on a real engine ends with what it measured") {
  Env env(make_task(kTask), on_cpu());
  env.reset({.seed = 1});
  const std::vector<std::int64_t> action(env.spec().action.sizes.size(), 0);
  const StepResult last = env.step(action);
  REQUIRE(last.terminated);
  CHECK(env.result().makespan > 0);
  CHECK(env.result().evaluations == 1);
  CHECK_THAT(last.reward, WithinRel(-env.result().makespan / env.task().time_scale(), 1e-12));
  // A serialized episode remembers what was measured.
  Env copy(make_task(kTask), on_cpu());
  copy.restore(env.serialize());
  CHECK(copy.result() == env.result());
}

TEST_CASE("a real run that does not fit into enforced memory has the penalty") {
  Task task = make_task(kTask);
  ClusterParts parts = task.cluster.parts();
  for (Device& device : parts.devices) device.memory = 1000;
  task.cluster = Cluster(parts);
  EnvOptions options = on_cpu();
  options.memory_penalty = 7;
  Env env(task, options);
  env.reset({.seed = 1});
  const std::vector<std::int64_t> action(env.spec().action.sizes.size(), 0);
  CHECK(env.step(action).reward == -7);
  CHECK(std::isinf(env.result().makespan));
  CHECK(env.result().failure.find("device 0") != std::string::npos);

  task.options.enforce_memory = false;
  Env free(task, options);
  free.reset({.seed = 1});
  free.step(action);
  CHECK(std::isfinite(free.result().makespan));
}

TEST_CASE("environments on several threads queue for a real engine, also after a fork") {
  const auto model =
      std::make_shared<const EnvModel>(std::vector<Task>{make_task(kTask)}, on_cpu());
  VectorEnv envs(model, 6, {.n_threads = 3});
  const auto run = [&] {
    envs.reset(std::uint64_t{3});
    const std::vector<std::int64_t> actions(6 * envs.spec().action.sizes.size(), 1);
    envs.step(actions);
    bool all = true;
    for (std::size_t i = 0; i < envs.size(); ++i) all = all && envs.env(i).result().makespan > 0;
    return all;
  };
  CHECK(run());
  if (testing::kThreadSanitizer) return;  // it follows no threads into a child
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(run() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(run());
}

}  // namespace
}  // namespace doppler
