// doppler-gym record: an agent's episodes as a data set.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agents/through_env.h"
#include "cli/commands/commands.h"
#include "cli/decision.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"
#include "cli/output.h"
#include "cli/parallel.h"
#include "cli/problem.h"
#include "cli/progress.h"
#include "cli/units.h"
#include "datasets/trajectories/dataset_id.h"
#include "datasets/trajectories/env_recording.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr HelpText kHelp = {
    .summary = "Record an agent's episodes as a data set that Minari opens",
    .details = R"(--out DIR is a root of data sets (MINARI_DATASETS_PATH=DIR): the one of a task and
an agent is DIR/dopplergym/TASK/AGENT-v0. Episode k has the seed of --first-seed plus k. Each
finished episode is safe from then on, whatever stops the command; --resume goes on where it was, to
the same data set as without a break. Static arrays of the graph stand once an episode, in the group
static; --full repeats them in each observation. --json prints an object: id, folder, episodes,
steps, bytes, recorded (episodes of this run), seconds.)",
    .examples =
        R"(doppler-gym record --task ffnn@p100x4 --agent critical-path --episodes 1000 --out data
doppler-gym record --task ffnn@p100x4 --agent 'annealing(moves=all)' --evaluations 10000 \
    --episodes 100 --out data --resume
doppler-gym record --graph model.json --cluster p100x4 --agent heft --mode place --out data)"};

struct RecordOptions {
  ProblemOptions problem;
  std::string agent;
  std::int64_t episodes = 1;
  std::string out;
  std::optional<std::string> id;
  bool resume = false;
  std::string mode = "sequential";
  std::string features = "paper";
  std::string reward = "sparse";
  std::string engine = "simulator";
  EnvRecordingOptions arrays;
  FlushOptions flush;
  BudgetOptions budget;
  std::int64_t jobs = 1;
  bool json = false;
};

std::shared_ptr<const EnvModel> make_model(const RecordOptions& options) {
  EnvOptions env;
  env.mode = options.mode;
  env.features = parse_features(options.features);
  env.reward = parse_reward(options.reward);
  env.engine = options.engine;
  std::vector<Task> tasks;
  tasks.push_back(make_problem(options.problem));
  return std::make_shared<const EnvModel>(std::move(tasks), std::move(env));
}

Provenance provenance_of(const RecordOptions& options) {
  Provenance provenance;
  provenance.agent = canonical_agent(options.agent);
  provenance.parameters = agent_parameters(options.agent);
  provenance.first_seed = static_cast<std::uint64_t>(options.problem.seed);
  if (agents().at(NamedCall::parse(options.agent).name).family != "heuristic")
    provenance.max_evaluations = options.budget.evaluations;
  provenance.code_version = DOPPLER_VERSION;
  return provenance;
}

// Seeds that are to be played.
std::vector<std::uint64_t> missing_seeds(const RecordOptions& options,
                                         const RecordingFolder& folder) {
  const std::set<std::uint64_t> done(folder.seeds().begin(), folder.seeds().end());
  std::vector<std::uint64_t> missing;
  for (std::int64_t k = 0; k < options.episodes; ++k) {
    const auto seed = static_cast<std::uint64_t>(options.problem.seed + k);
    if (!done.contains(seed)) missing.push_back(seed);
  }
  return missing;
}

// Plays episodes one after the other; one for each thread.
class Player {
 public:
  Player(const RecordOptions& options, const std::shared_ptr<const EnvRecordingPlan>& plan,
         const std::shared_ptr<const EnvModel>& model, TrajectoryRecorder& trajectories)
      : agent_(named_agent(options.agent)), env_(model), recorder_(plan, trajectories) {
    assign_.max_evaluations = options.budget.evaluations;
    assign_.max_seconds = options.budget.seconds;
  }
  void play(std::uint64_t seed) {
    assign_.seed = seed;
    assign_through_env(*agent_, env_, assign_, &recorder_);
  }

 private:
  std::unique_ptr<Agent> agent_;
  Env env_;
  EnvRecorder recorder_;
  AssignOptions assign_;
};

// Returns the number of a signal that ended it; 0: none.
int play_all(const std::vector<std::uint64_t>& seeds, int jobs,
             const std::function<std::unique_ptr<Player>()>& make_player) {
  const CatchInterrupt interrupt;
  Progress progress(seeds.size());
  std::mutex mutex;
  std::vector<std::unique_ptr<Player>> idle;
  std::exception_ptr failure;
  side_by_side(seeds.size(), jobs, [&](std::size_t i) {
    try {
      std::unique_ptr<Player> player;
      {
        const std::scoped_lock lock(mutex);
        if (!idle.empty()) {
          player = std::move(idle.back());
          idle.pop_back();
        }
      }
      if (!player) player = make_player();
      player->play(seeds[i]);
      progress.advance("episodes");
      const std::scoped_lock lock(mutex);
      idle.push_back(std::move(player));
      return interrupt.signal() == 0;
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
      return false;
    }
  });
  if (failure) std::rethrow_exception(failure);
  return interrupt.signal();
}

void record(const RecordOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  named_agent(options.agent);  // a slip is told before anything is made
  const std::shared_ptr<const EnvModel> model = make_model(options);
  const auto plan = std::make_shared<const EnvRecordingPlan>(model, options.arrays);
  const Provenance provenance = provenance_of(options);
  RecordingInfo info;
  info.id = options.id
                ? *options.id
                : dataset_id_of(model->tasks()[0].placement->task().name, provenance.agent, 0);
  info.metadata = recording_metadata(info.id, *model, options.arrays, provenance);
  RecordingFolder folder = options.resume ? RecordingFolder::resume(options.out, info)
                                          : RecordingFolder::create(options.out, info);
  const std::vector<std::uint64_t> seeds = missing_seeds(options, folder);
  TrajectoryRecorder trajectories(std::move(folder), options.flush);
  const int signal = play_all(seeds, static_cast<int>(options.jobs), [&] {
    return std::make_unique<Player>(options, plan, model, trajectories);
  });
  if (signal != 0) {
    trajectories.flush();
    throw Interrupted{signal, "stopped after " +
                                  std::to_string(trajectories.folder().n_episodes()) +
                                  " episodes; the same command with --resume goes on"};
  }
  trajectories.build();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const DatasetPaths& paths = trajectories.folder().paths();
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(paths.main()));
  const std::int64_t n_episodes = trajectories.folder().n_episodes();
  if (options.json) {
    print(json_text(Json{{"id", info.id},
                         {"folder", paths.folder},
                         {"episodes", n_episodes},
                         {"bytes", bytes},
                         {"recorded", seeds.size()},
                         {"seconds", seconds.count()}}));
    return;
  }
  print(info.id + "\nepisodes  " + std::to_string(n_episodes) + ", " +
        std::to_string(seeds.size()) + " of them now, in " + seconds_text(seconds.count()) +
        "\nsize      " + bytes_text(static_cast<double>(bytes), false) +
        "\nopen it   MINARI_DATASETS_PATH=" + options.out + "\n");
}

}  // namespace

void add_record(Command& program) {
  Command command = program.add("record", kHelp);
  auto options = std::make_shared<RecordOptions>();
  command.option({"--agent", "NAME", "Who plays; see doppler-gym tasks --agents"},
                 into(options->agent), true);
  command.option({"--episodes", "N", "Episodes of the whole data set. Default 1"},
                 into(options->episodes, 1, 1'000'000'000));
  command.option({"--out", "DIR", "The root of data sets; made if it is not there"},
                 into(options->out), true);
  command.option({"--id", "ID", "Of the data set. Default: dopplergym/TASK/AGENT-v0"},
                 into(options->id));
  command.flag("--resume", "Go on with a data set that is there, or begin", options->resume);
  command.option({"--mode", "NAME",
                  "What one step decides: sequential, joint, place, refine, oneshot. Default "
                  "sequential"},
                 into(options->mode));
  command.option({"--features", "NAME", "paper or full. Default paper"}, into(options->features));
  command.option({"--reward", "NAME", "sparse or dense. Default sparse"}, into(options->reward));
  command.option({"--engine", "NAME", "What measures assignments. Default simulator"},
                 into(options->engine));
  command.flag("--full", "Static arrays in each observation", options->arrays.full);
  command.flag("--timeline", "Also when each node ran and each tensor moved",
               options->arrays.timeline);
  command.option({"--flush-episodes", "N",
                  "The most finished episodes that a crash may lose beside those under way, plus "
                  "one; more are quicker. Default 1"},
                 into(options->flush.flush_episodes, 1, 1'000'000));
  add_budget_options(command, options->budget);
  command.option({"--jobs", "N", "Threads that play; 0: one a core. Default 1"},
                 into(options->jobs, 0, 1024));
  command.flag("--json", "Print an object", options->json);
  add_problem_options(command, options->problem);
  command.run([options] { record(*options); });
}

}  // namespace doppler::cli
