// Recording: episodes a second of a VectorEnv that critical-path acts in, with and without a
// recorder, in turns within one run. What was recorded is compared with a second, unrecorded run
// before anything is timed.
#include <benchmark/benchmark.h>

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agents/agent.h"
#include "datasets/tasks.h"
#include "datasets/trajectories/dataset_files.h"
#include "datasets/trajectories/env_recording.h"
#include "env/thread_pool.h"
#include "env/vector_env.h"

namespace doppler::benchmarks {
namespace {

constexpr std::size_t kEnvs = 256;
constexpr int kThreads = 2;
const std::string kId = "benchmark/critical-path-v0";

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "doppler-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// 256 environments in `sequential`, an agent each; acts on as many threads as it steps.
class Players {
 public:
  explicit Players(const std::shared_ptr<const EnvModel>& model)
      : envs(model, kEnvs, {.autoreset = Autoreset::disabled, .n_threads = kThreads}),
        pool_(kThreads),
        actions_(kEnvs),
        nodes_(kEnvs),
        seeds_(kEnvs) {
    for (std::size_t i = 0; i < kEnvs; ++i) agents_.push_back(make_agent("critical-path"));
  }

  // One episode of each.
  void play(std::uint64_t first_seed, VectorEnvRecorder* recorder) {
    for (std::size_t i = 0; i < kEnvs; ++i) seeds_[i] = first_seed + i;
    envs.reset(seeds_);
    if (recorder != nullptr) recorder->began(seeds_);
    for (std::size_t i = 0; i < kEnvs; ++i) {
      agents_[i]->begin(envs.model().tasks()[0].placement, seeds_[i]);
    }
    while (envs.env(0).running()) {
      pool_.run(kEnvs, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) act(i);
      });
      envs.step(actions_);
      if (recorder != nullptr) recorder->stepped(actions_);
    }
  }

  VectorEnv envs;

 private:
  void act(std::size_t i) {
    const Env& env = envs.env(i);
    if (env.selecting()) {
      nodes_[i] = agents_[i]->select(env.schedule());
      actions_[i] = nodes_[i].value;
    } else {
      actions_[i] = static_cast<std::int64_t>(env.model().max_nodes()) +
                    agents_[i]->place(env.schedule(), nodes_[i]).value;
    }
  }
  ThreadPool pool_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::int64_t> actions_;
  std::vector<NodeId> nodes_;
  std::vector<std::uint64_t> seeds_;
};

std::shared_ptr<const EnvModel> make_model(const std::string& task) {
  return std::make_shared<const EnvModel>(std::vector<Task>{make_task(task)}, EnvOptions{});
}

RecordingFolder make_folder(const std::string& root, const EnvModel& model) {
  return RecordingFolder::create(
      root, {kId, recording_metadata(kId, model, {}, {.agent = "critical-path"})});
}

bool agrees(const std::shared_ptr<const EnvModel>& model) {
  const Folder folder;
  Players players(model);
  TrajectoryRecorder trajectories(make_folder(folder.path(), *model), {.flush_episodes = 64});
  const auto plan = std::make_shared<const EnvRecordingPlan>(model, EnvRecordingOptions{});
  VectorEnvRecorder recorder(plan, trajectories, players.envs);
  players.play(0, &recorder);
  trajectories.build();
  const DatasetPaths paths(folder.path(), kId);
  if (!check_dataset(paths).faults.empty()) return false;
  players.play(0, nullptr);
  const EpisodeFileReader reader(paths.main());
  for (std::size_t i = 0; i < kEnvs; ++i) {
    const auto attributes = reader.attributes(static_cast<std::int64_t>(i));
    const auto makespan = std::find_if(attributes.begin(), attributes.end(),
                                       [](const auto& item) { return item.first == "makespan"; });
    if (std::get<double>(makespan->second) != players.envs.result(i).makespan) return false;
  }
  return reader.n_episodes() == static_cast<std::int64_t>(kEnvs);
}

void time_unrecorded(benchmark::State& state, const std::string& task) {
  Players players(make_model(task));
  std::uint64_t seed = 0;
  for (auto _ : state) players.play(seed += kEnvs, nullptr);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kEnvs));
}

// `builds`: what is timed includes making the HDF5 file of the parts.
void time_recorded(benchmark::State& state, const std::string& task, std::int64_t flush_episodes,
                   bool builds) {
  const auto model = make_model(task);
  if (!agrees(model)) {
    state.SkipWithError("the recording differs from what was played");
    return;
  }
  Players players(model);
  const auto plan = std::make_shared<const EnvRecordingPlan>(model, EnvRecordingOptions{});
  std::uint64_t seed = 0;
  double bytes = 0;
  for (auto _ : state) {
    const Folder folder;
    TrajectoryRecorder trajectories(make_folder(folder.path(), *model), {flush_episodes});
    VectorEnvRecorder recorder(plan, trajectories, players.envs);
    for (int k = 0; k < 4; ++k) players.play(seed += kEnvs, &recorder);
    trajectories.flush();
    if (!builds) state.PauseTiming();
    trajectories.build();
    bytes =
        static_cast<double>(std::filesystem::file_size(DatasetPaths(folder.path(), kId).main()));
    if (!builds) state.ResumeTiming();
  }
  const auto n_episodes = 4 * static_cast<std::int64_t>(kEnvs);
  state.SetItemsProcessed(state.iterations() * n_episodes);
  state.counters["bytes_an_episode"] = bytes / static_cast<double>(n_episodes);
}

void add_all() {
  for (const char* task : {"llama-layer@p100x4", "chainmm@p100x4"}) {
    const std::string what = std::string("recording/") + task + "/vector of 256, 2 threads/";
    const auto add = [&](const std::string& how, auto time) {
      benchmark::RegisterBenchmark((what + how).c_str(), time)
          ->UseRealTime()
          ->MeasureProcessCPUTime()
          ->Unit(benchmark::kMillisecond);
    };
    const std::string name = task;
    add("unrecorded", [name](benchmark::State& state) { time_unrecorded(state, name); });
    add("recorded, flush 256",
        [name](benchmark::State& state) { time_recorded(state, name, 256, false); });
    add("recorded and built, flush 256",
        [name](benchmark::State& state) { time_recorded(state, name, 256, true); });
    add("recorded, flush 1",
        [name](benchmark::State& state) { time_recorded(state, name, 1, false); });
  }
}

}  // namespace
}  // namespace doppler::benchmarks

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  doppler::benchmarks::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
