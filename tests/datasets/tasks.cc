#include "datasets/tasks.h"

#include <set>

#include "datasets/clusters.h"
#include "datasets/workloads.h"
#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

std::string message_of(const std::string& spelling) {
  try {
    make_task(spelling);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("every registered task is made, fits together, and bears its name and split") {
  for (const auto& [name, entry] : tasks()) {
    INFO(name);
    const Task task = make_task(name);
    CHECK_NOTHROW(task.check());
    CHECK(task.name == name);
    CHECK(task.split == entry.split);
    CHECK(task.graph.n_nodes() > 0);
    CHECK_FALSE(entry.summary.empty());
    CHECK_FALSE(entry.source.empty());
  }
}

TEST_CASE("a task is its workload on its cluster, with the cluster's memory rule") {
  const Task task = make_task("llama-layer@p100x4");
  CHECK(task.graph == make_workload("llama-layer", 4));
  CHECK(task.cluster == make_cluster("p100x4"));
  CHECK(task.cost_model == CostModel::analytical());
  CHECK(task.options.network == Network::channel);
  CHECK(task.options.enforce_memory);
  CHECK(make_task("llama-layer@p100x8").graph == make_workload("llama-layer", 8));
  CHECK_FALSE(make_task("chainmm@uniform(4)").options.enforce_memory);
}

TEST_CASE("parameters of workload and cluster stand in the name") {
  const Task task = make_task("chainmm(n=4096, shards=8)@uniform(3)");
  CHECK(task.name == "chainmm(n=4096,shards=8)@uniform(n=3)");
  CHECK(task.graph == make_workload("chainmm(n=4096,shards=8)", 3));
  CHECK(task.cluster.n_devices() == 3);
  CHECK(make_task(task.name) == task);
  CHECK(task.split == Split::none);
  CHECK(make_task("llama-layer()@h100x8").split == Split::test);
}

TEST_CASE("a slip in a task's name is answered with the nearest names") {
  CHECK_THAT(message_of("published/llama-layr"), Catch::Contains("published/llama-layer"));
  CHECK_THAT(message_of("llama-layr@p100x4"), Catch::Contains("llama-layer"));
  CHECK_THAT(message_of("llama-layer@p100x5"), Catch::Contains("p100x4"));
  CHECK_THAT(message_of("llama-layer"), Catch::Contains("names no cluster"));
  CHECK_THAT(message_of("chainmm(nn=3)@p100x4"), Catch::Contains("nn"));
  CHECK_FALSE(message_of("").empty());
  CHECK_FALSE(message_of("@").empty());
  CHECK_FALSE(message_of("chainmm@").empty());
  CHECK_FALSE(message_of("@p100x4").empty());
  CHECK_FALSE(message_of("chainmm(@p100x4").empty());
}

TEST_CASE("no graph and cluster is both in the train and in the test split") {
  std::set<std::uint64_t> train;
  std::set<std::uint64_t> test;
  for (const auto& [name, entry] : tasks()) {
    if (entry.split == Split::train) train.insert(make_task(name).hash());
    if (entry.split == Split::test) test.insert(make_task(name).hash());
  }
  CHECK(train.size() >= 10);
  CHECK(test.size() >= 10);
  for (std::uint64_t hash : train) CHECK_FALSE(test.contains(hash));
}

TEST_CASE("training on a test task is refused, by whatever spelling") {
  std::vector<std::string> allowed;
  for (const auto& [name, entry] : tasks()) {
    if (entry.split != Split::test) {
      allowed.push_back(name);
      continue;
    }
    CHECK_THROWS_WITH(check_training_tasks({name}), Catch::Contains(name));
  }
  CHECK_NOTHROW(check_training_tasks(allowed));
  CHECK_NOTHROW(check_training_tasks({"random-dag(seed=17)@uniform(5)"}));
  CHECK_THROWS_AS(check_training_tasks({"ffnn@uniform(4)", "llama-layer()@mesh(4)"}), UsageError);
  CHECK_THROWS_AS(check_training_tasks({"no-such-task"}), UsageError);
}

TEST_CASE("other settings of the engine do not make a test task fit for training") {
  Task task = make_task("ffnn@mesh");
  task.name = "mine";
  task.options.noise = 0.1;
  CHECK_THROWS_WITH(check_training_tasks(std::vector{task}), Catch::Contains("'ffnn@mesh'"));
  task.cluster = Cluster::uniform(3);
  CHECK_NOTHROW(check_training_tasks(std::vector{task}));
}

}  // namespace
}  // namespace doppler
