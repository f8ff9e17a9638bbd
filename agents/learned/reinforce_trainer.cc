#include "agents/learned/reinforce_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "agents/learned/adam.h"
#include "agents/learned/learned.h"
#include "agents/learned/reinforce_progress.h"
#include "agents/learned/torch_device.h"
#include "agents/online/executions.h"
#include "graphs/hash.h"

namespace doppler {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kStateSource = "the saved training";
constexpr double kLargestLoss = 1e9;  // of an episode; rewards are of order 1

class ReinforceTrainer : public Trainer {
 public:
  ReinforceTrainer(const MakeReinforcePolicy& make, const ReinforceOptions& numbers,
                   const TrainProblem& problem);

  bool update() override;
  [[nodiscard]] TrainProgress progress() const override { return progress_.shown; }
  [[nodiscard]] Decision best(std::size_t task) const override;
  [[nodiscard]] std::string policy() const override;
  [[nodiscard]] std::string state() const override;
  void restore(std::string_view state) override;

 private:
  // Of one thread.
  struct Worker {
    std::vector<std::optional<Simulator>> simulators;  // by task
    std::unique_ptr<Teacher> teacher;                  // with steps
  };

  [[nodiscard]] const PolicyTraits& traits() const { return policy_->traits(); }
  void check_budgets() const;
  [[nodiscard]] std::int64_t evaluations_of_episode(std::size_t task) const;
  // Runs of the stage's engine.
  [[nodiscard]] std::int64_t runs_left(const ReinforceProgress& progress, int stage) const;
  void skip_unpayable(ReinforceProgress& progress) const;
  [[nodiscard]] bool over(const ReinforceProgress& next) const;
  [[nodiscard]] UpdatePlan plan(const ReinforceProgress& progress) const;
  void decide_teacher(std::size_t task, ReinforceProgress& progress);
  void run_episodes(const UpdatePlan& plan, const ReinforceProgress& progress);
  void run_episode(std::size_t worker, const UpdatePlan& plan, std::size_t episode,
                   const ReinforceProgress& progress);
  void measure(Worker& worker, std::size_t task, std::size_t episode);
  void execute_episodes(const UpdatePlan& plan, ReinforceProgress& progress);
  double execute(const Assignment& assignment, std::size_t task, ReinforceProgress& progress);
  [[nodiscard]] double cost(std::size_t task, double makespan) const;
  // What each step of an episode is worth beyond the baseline.
  [[nodiscard]] std::vector<double> advantages(const UpdatePlan& plan, std::size_t episode,
                                               const TaskRecord& task) const;
  // Of a refinement.
  [[nodiscard]] std::vector<double> returns(const UpdatePlan& plan, std::size_t episode) const;
  // By part: one weight a counted choice, over all episodes of the update.
  [[nodiscard]] std::vector<std::vector<double>> weights(const UpdatePlan& plan,
                                                         const ReinforceProgress& progress) const;
  void record(const UpdatePlan& plan, ReinforceProgress& progress) const;
  void record_episode(const UpdatePlan& plan, std::size_t episode, TaskRecord& task) const;
  static void check(const PartGradient& gradient, const std::string& part);
  [[nodiscard]] std::vector<Adam> fresh_optimisers() const;
  [[nodiscard]] std::string adam_prefix(std::size_t part) const;
  void for_each_part(const std::function<void(std::size_t)>& work);
  [[nodiscard]] std::string fingerprint() const;

  ReinforceOptions numbers_;
  TrainOptions options_;
  Clock::time_point begin_ = Clock::now();
  PolicyTasks models_;
  std::unique_ptr<ReinforcePolicy> policy_;
  std::vector<StagePlan> stages_;
  std::int64_t n_episodes_ = 0;   // of all stages
  std::vector<Adam> optimisers_;  // by part
  bool teacher_has_steps_ = true;
  ThreadPool pool_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Executions>> executions_;  // by task; of stage III
  ReinforceProgress progress_;
  // Of the update in progress.
  std::vector<PolicyEpisode> episodes_;
  std::vector<std::vector<double>> makespans_;  // by episode: of all that was measured
  // Kept until the next ones are there: memory of their size that is given back to the system and
  // taken anew in each update costs a sixth of it.
  std::vector<PartGradient> gradients_;
};

ReinforceTrainer::ReinforceTrainer(const MakeReinforcePolicy& make, const ReinforceOptions& numbers,
                                   const TrainProblem& problem)
    : numbers_(numbers),
      options_(problem.options),
      models_(problem.tasks),
      pool_(problem.options.n_threads) {
  // The first weights come from LAPACK, whose last bits depend on its number of threads.
  const SingleThreadedTorch single_threaded;
  policy_ = make(models_, torch_device(options_.device), options_.seed);
  std::int64_t evaluations = 1;
  for (std::size_t task = 0; task < models_.size(); ++task) {
    evaluations = std::max(evaluations, evaluations_of_episode(task));
  }
  stages_ = stages_of(numbers_, options_, evaluations, static_cast<std::int64_t>(models_.size()));
  if (std::ranges::count(stages_, 3, &StagePlan::stage) > 0) {
    for (const auto& model : models_) {
      executions_.push_back(std::make_unique<Executions>(model, options_.engine, options_.seed));
    }
  }
  check_budgets();
  for (const StagePlan& stage : stages_) n_episodes_ += stage.n_episodes;
  if (traits().imitates_assignments) {
    teacher_has_steps_ = false;
    make_host_agent(numbers_.teacher);  // its errors now rather than in the first update
  } else if (!numbers_.teacher.empty() && numbers_.teacher != "critical-path") {
    teacher_has_steps_ = make_host_agent(numbers_.teacher)->has_steps();
  }
  if (!options_.initial_policy.empty()) {
    read_policy(traits(), options_.initial_policy, "the initial policy");
  }
  optimisers_ = fresh_optimisers();
  gradients_.resize(traits().parts.size());
  progress_.tasks.resize(models_.size());
  workers_.resize(pool_.n_threads());
  for (Worker& worker : workers_) worker.simulators.resize(models_.size());
  progress_.shown.share = n_episodes_ > 0 ? 0 : 1;
}

// A run that could not learn anything at all is a mistake.
void ReinforceTrainer::check_budgets() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t task = 0; task < models_.size(); ++task) {
    least = std::min(least, evaluations_of_episode(task));
  }
  const std::vector<int>& stages = options_.stages;
  if (stages.front() == 2 && options_.max_evaluations > 0 && options_.max_evaluations < least) {
    throw UsageError("an episode takes " + std::to_string(least) + " evaluations here, and there " +
                     "are " + std::to_string(options_.max_evaluations) + "; give more");
  }
  const std::int64_t executions = least + static_cast<std::int64_t>(models_.size());
  if (stages.back() == 3 && options_.max_executions < executions) {
    throw UsageError("stage 3 takes " + std::to_string(executions) +
                     " executions here for what it begins with and one episode, and there are " +
                     std::to_string(options_.max_executions) + "; give more");
  }
}

std::vector<Adam> ReinforceTrainer::fresh_optimisers() const {
  std::vector<Adam> optimisers;
  for (const PolicyPart& part : traits().parts) optimisers.emplace_back(part.module->parameters());
  return optimisers;
}

std::string ReinforceTrainer::adam_prefix(std::size_t part) const {
  const std::string& name = traits().parts[part].name;
  return name.empty() ? "adam." : "adam." + name + ".";
}

std::int64_t ReinforceTrainer::evaluations_of_episode(std::size_t task) const {
  return traits().refines ? 1 + static_cast<std::int64_t>(models_[task]->n_nodes()) : 1;
}

std::int64_t ReinforceTrainer::runs_left(const ReinforceProgress& progress, int stage) const {
  if (stage == 3) {
    std::int64_t left = options_.max_executions - progress.shown.executions;
    for (const TaskRecord& task : progress.tasks) left -= task.n_executions == 0 ? 1 : 0;
    return left;
  }
  return options_.max_evaluations > 0 ? options_.max_evaluations - progress.shown.evaluations
                                      : std::numeric_limits<std::int64_t>::max();
}

// A teacher may have used some of the runs that a stage was to have.
void ReinforceTrainer::skip_unpayable(ReinforceProgress& progress) const {
  while (progress.stage_index < stages_.size() && plan(progress).n_episodes == 0) {
    ++progress.stage_index;
    progress.stage_episodes = 0;
  }
}

bool ReinforceTrainer::over(const ReinforceProgress& next) const {
  if (next.stage_index >= stages_.size()) return true;
  if (std::isinf(options_.max_seconds)) return false;
  return std::chrono::duration<double>(Clock::now() - begin_).count() >= options_.max_seconds;
}

UpdatePlan ReinforceTrainer::plan(const ReinforceProgress& progress) const {
  const StagePlan& stage = stages_[progress.stage_index];
  UpdatePlan plan{.stage = stage.stage,
                  .first_episode = progress.stage_episodes,
                  .task = static_cast<std::size_t>(progress.shown.updates) % models_.size()};
  std::int64_t left = stage.n_episodes - progress.stage_episodes;
  if (stage.stage != 1) {
    left = std::min(left, runs_left(progress, stage.stage) / evaluations_of_episode(plan.task));
  }
  plan.n_episodes = static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, numbers_.batch));
  fill_rates(numbers_, stage, plan);
  return plan;
}

// Runs work(part) for each part, side by side where there are threads.
void ReinforceTrainer::for_each_part(const std::function<void(std::size_t)>& work) {
  // On this thread, as with one: LibTorch's last bits may depend on the thread.
  if (traits().parts.size() == 1) return work(0);
  pool_.run(traits().parts.size(), [&](std::size_t begin, std::size_t end) {
    const SingleThreadedTorch single_threaded;  // of the pool's thread
    for (std::size_t part = begin; part < end; ++part) work(part);
  });
}

void ReinforceTrainer::decide_teacher(std::size_t task, ReinforceProgress& progress) {
  std::optional<Assignment>& taught = progress.tasks[task].taught;
  if (options_.demonstrations || teacher_has_steps_ || taught) return;
  const auto agent = make_host_agent(numbers_.teacher);
  const Decision decision =
      agent->decide(models_[task], {.seed = options_.seed, .max_evaluations = 1});
  decision.check(models_[task]->task());
  taught = decision.assignment;
  progress.shown.evaluations += decision.evaluations;
}

void ReinforceTrainer::run_episode(std::size_t worker, const UpdatePlan& plan, std::size_t episode,
                                   const ReinforceProgress& progress) {
  const auto drawn = static_cast<std::uint64_t>(plan.first_episode) + episode;
  EpisodeOptions options{
      .epsilon = plan.epsilon,
      .seed = Hasher().add(options_.seed).add(std::uint64_t(plan.stage)).add(drawn).digest()};
  std::unique_ptr<Teacher> fixed;
  Demonstration shown;
  if (plan.stage == 1) {
    const std::optional<Assignment>& taught = progress.tasks[plan.task].taught;
    std::unique_ptr<Teacher>& steps = workers_[worker].teacher;
    if (options_.demonstrations) {
      const std::int64_t n = options_.demonstrations->size(plan.task);
      shown = options_.demonstrations->read(plan.task, static_cast<std::int64_t>(drawn) % n);
      fixed = demonstration_teacher(shown);
      options.taught = &shown.assignment;
    } else if (!teacher_has_steps_) {
      fixed = assignment_teacher(*taught);
      options.taught = &*taught;
    } else if (!steps) {
      const std::string& name = numbers_.teacher;
      steps = name.empty() || name == "critical-path" ? critical_path_teacher()
                                                      : step_teacher(make_host_agent(name));
    }
    options.teacher = fixed ? fixed.get() : steps.get();
  }
  policy_->play(options, worker, episode, episodes_[episode]);
  if (plan.stage == 2) measure(workers_[worker], plan.task, episode);
}

void ReinforceTrainer::measure(Worker& worker, std::size_t task, std::size_t episode) {
  auto& simulator = worker.simulators[task];
  if (!simulator) simulator.emplace(models_[task]->task().simulator());
  const PolicyEpisode& played = episodes_[episode];
  std::vector<double>& makespans = makespans_[episode];
  makespans.clear();
  if (traits().refines) {
    makespans.push_back(simulator->set_base(played.start.devices));
    for (NodeId node : played.order) {
      makespans.push_back(simulator->accept_move(node, played.assignment[node]));
    }
  } else {
    makespans.push_back(simulator->makespan(played.assignment.devices));
  }
}

double ReinforceTrainer::execute(const Assignment& assignment, std::size_t task,
                                 ReinforceProgress& progress) {
  TaskRecord& record = progress.tasks[task];
  executions_[task]->set_n_runs(record.n_executions);  // also after an update that was not kept
  const double cost = executions_[task]->run(assignment).cost;
  ++record.n_executions;
  ++progress.shown.executions;
  if (cost < record.best_cost) {
    record.best_cost = cost;
    record.best_executed = assignment;
  }
  return cost;
}

void ReinforceTrainer::execute_episodes(const UpdatePlan& plan, ReinforceProgress& progress) {
  TaskRecord& record = progress.tasks[plan.task];
  if (record.n_executions == 0) {
    execute(record.measured ? record.best : policy_->decide(plan.task), plan.task, progress);
    record.reward_sum = 0;
    record.n_rewards = 0;
    record.return_sums.clear();
  }
  for (std::size_t i = 0; i < plan.n_episodes; ++i) {
    const PolicyEpisode& played = episodes_[i];
    makespans_[i].clear();
    if (!traits().refines) {
      makespans_[i].push_back(execute(played.assignment, plan.task, progress));
      continue;
    }
    Assignment present = played.start;
    makespans_[i].push_back(execute(present, plan.task, progress));
    for (NodeId node : played.order) {
      present[node] = played.assignment[node];
      makespans_[i].push_back(execute(present, plan.task, progress));
    }
  }
}

void ReinforceTrainer::run_episodes(const UpdatePlan& plan, const ReinforceProgress& progress) {
  episodes_.resize(plan.n_episodes);
  makespans_.resize(plan.n_episodes);
  const std::size_t n_workers = workers_.size();
  pool_.run(n_workers, [&](std::size_t begin, std::size_t end) {
    for (std::size_t w = begin; w < end; ++w) {
      for (std::size_t i = w; i < plan.n_episodes; i += n_workers) {
        run_episode(w, plan, i, progress);
      }
    }
  });
}

// In time scales.
double ReinforceTrainer::cost(std::size_t task, double makespan) const {
  return std::isinf(makespan) ? numbers_.memory_penalty : makespan / models_[task]->time_scale();
}

std::vector<double> ReinforceTrainer::returns(const UpdatePlan& plan, std::size_t episode) const {
  std::vector<double> costs;
  for (double makespan : makespans_[episode]) costs.push_back(cost(plan.task, makespan));
  return refining_returns(costs, numbers_.discount);
}

std::vector<double> ReinforceTrainer::advantages(const UpdatePlan& plan, std::size_t episode,
                                                 const TaskRecord& task) const {
  const auto n_rewards = static_cast<double>(std::max<std::int64_t>(task.n_rewards, 1));
  if (!traits().refines) {
    return end_advantages(episodes_[episode].n_steps, -cost(plan.task, makespans_[episode].back()),
                          task.reward_sum / n_rewards, numbers_.discount);
  }
  std::vector<double> advantages = returns(plan, episode);
  for (std::size_t step = 0; step < task.return_sums.size(); ++step) {
    advantages[step] -= task.return_sums[step] / n_rewards;
  }
  return advantages;
}

std::vector<std::vector<double>> ReinforceTrainer::weights(
    const UpdatePlan& plan, const ReinforceProgress& progress) const {
  std::vector<std::vector<double>> weights(traits().parts.size());
  for (std::size_t i = 0; i < plan.n_episodes; ++i) {
    const PolicyEpisode& episode = episodes_[i];
    std::vector<double> advantage;
    if (plan.stage != 1) advantage = advantages(plan, i, progress.tasks[plan.task]);
    for (std::size_t part = 0; part < weights.size(); ++part) {
      for (std::int32_t step : episode.steps[part]) {
        weights[part].push_back(plan.stage == 1 ? 1 : advantage[static_cast<std::size_t>(step)]);
      }
    }
  }
  return weights;
}

void ReinforceTrainer::record_episode(const UpdatePlan& plan, std::size_t episode,
                                      TaskRecord& task) const {
  const std::vector<double>& makespans = makespans_[episode];
  const PolicyEpisode& played = episodes_[episode];
  task.reward_sum += -cost(plan.task, makespans.back());
  ++task.n_rewards;
  if (traits().refines) {
    const std::vector<double> of_steps = returns(plan, episode);
    task.return_sums.resize(of_steps.size(), 0);
    for (std::size_t step = 0; step < of_steps.size(); ++step) {
      task.return_sums[step] += of_steps[step];
    }
  }
  if (plan.stage == 3) return;
  const auto best = std::min_element(makespans.begin(), makespans.end());
  if (task.measured && *best >= task.best_makespan) return;
  task.measured = true;
  task.best_makespan = *best;
  task.best = traits().refines ? played.start : played.assignment;
  for (std::size_t step = 0; step < static_cast<std::size_t>(best - makespans.begin()); ++step) {
    const NodeId node = played.order[step];
    task.best[node] = played.assignment[node];
  }
}

void ReinforceTrainer::record(const UpdatePlan& plan, ReinforceProgress& progress) const {
  TaskRecord& task = progress.tasks[plan.task];
  progress.shown.stage = plan.stage;
  ++progress.shown.updates;
  progress.shown.episodes += static_cast<std::int64_t>(plan.n_episodes);
  progress.stage_episodes += static_cast<std::int64_t>(plan.n_episodes);
  if (plan.stage != 1) {
    double sum = 0;
    for (std::size_t i = 0; i < plan.n_episodes; ++i) {
      if (plan.stage == 2) {
        progress.shown.evaluations += static_cast<std::int64_t>(makespans_[i].size());
      }
      sum += cost(plan.task, makespans_[i].back()) * models_[plan.task]->time_scale();
      record_episode(plan, i, task);
    }
    progress.shown.values.emplace_back("mean_makespan", sum / static_cast<double>(plan.n_episodes));
    progress.shown.best_makespan = progress.tasks[0].best_makespan;
  }
  std::int64_t done = progress.stage_episodes;
  for (std::size_t s = 0; s < progress.stage_index; ++s) done += stages_[s].n_episodes;
  progress.shown.share = static_cast<double>(done) / static_cast<double>(n_episodes_);
  if (progress.stage_episodes >= stages_[progress.stage_index].n_episodes) {
    ++progress.stage_index;
    progress.stage_episodes = 0;
  }
}

void ReinforceTrainer::check(const PartGradient& gradient, const std::string& part) {
  if (std::isfinite(gradient.loss) && std::abs(gradient.loss) < kLargestLoss &&
      std::isfinite(gradient.norm)) {
    return;
  }
  throw RunError(
      "training diverged: the loss of " + part + " is " + std::to_string(gradient.loss) +
      " and its gradient has length " + std::to_string(gradient.norm) +
      "; nothing was changed by this update. Use another seed or another policy to start from");
}

bool ReinforceTrainer::update() {
  ReinforceProgress next = progress_;
  skip_unpayable(next);
  if (over(next)) return false;
  const SingleThreadedTorch single_threaded;
  const UpdatePlan now = plan(next);
  if (now.stage == 1) decide_teacher(now.task, next);

  policy_->begin({.task = now.task, .n_episodes = now.n_episodes, .pool = &pool_});
  run_episodes(now, next);
  if (now.stage == 3) execute_episodes(now, next);
  std::vector<std::vector<double>> of_choices = weights(now, next);
  for_each_part([&](std::size_t part) {
    gradients_[part] = policy_->gradient({.part = part,
                                          .weights = std::move(of_choices[part]),
                                          .entropy_weight = now.entropy_weight,
                                          .n_episodes = now.n_episodes});
  });
  for (std::size_t part = 0; part < gradients_.size(); ++part) {
    check(gradients_[part], traits().parts[part].title);
  }
  next.shown.values = {{"learning_rate", now.learning_rate}, {"epsilon", now.epsilon}};
  const auto show = [&](const char* name, double PartGradient::*value) {
    for (std::size_t part = 0; part < gradients_.size(); ++part) {
      const std::string& of = traits().parts[part].name;
      next.shown.values.emplace_back((of.empty() ? "" : of + "_") + name, gradients_[part].*value);
    }
  };
  show("loss", &PartGradient::loss);
  show("entropy", &PartGradient::entropy);
  show("gradient", &PartGradient::norm);
  if (next.stage_episodes == 0) optimisers_ = fresh_optimisers();
  record(now, next);
  for_each_part(
      [&](std::size_t part) { optimisers_[part].step(gradients_[part].parts, now.learning_rate); });
  progress_ = std::move(next);
  return true;
}

Decision ReinforceTrainer::best(std::size_t task) const {
  const TaskRecord& record = progress_.tasks.at(task);
  if (record.n_executions > 0) {
    return {.assignment = record.best_executed, .evaluations = progress_.shown.evaluations};
  }
  if (record.measured) {
    return {.assignment = record.best,
            .makespan = record.best_makespan,
            .evaluations = progress_.shown.evaluations};
  }
  const SingleThreadedTorch single_threaded;
  return {.assignment = policy_->decide(task), .evaluations = progress_.shown.evaluations};
}

std::string ReinforceTrainer::policy() const { return write_policy(traits()); }

// What must be equal for a state to be continued.
std::string ReinforceTrainer::fingerprint() const {
  Hasher hasher;
  hasher.add(numbers_.teacher);
  hasher.add(static_cast<std::uint64_t>(numbers_.batch));
  for (std::int64_t x : traits().sizes) hasher.add(static_cast<std::uint64_t>(x));
  add_numbers(numbers_, hasher);
  hasher.add(options_.seed).add(static_cast<std::uint64_t>(options_.max_evaluations));
  for (const StagePlan& stage : stages_) {
    hasher.add(static_cast<std::uint64_t>(stage.stage));
    hasher.add(static_cast<std::uint64_t>(stage.n_episodes));
  }
  for (const auto& model : models_) hasher.add(model->task().hash());
  hasher.add(options_.initial_policy);
  if (!executions_.empty()) {
    hasher.add(options_.engine).add(static_cast<std::uint64_t>(options_.max_executions));
  }
  return std::to_string(hasher.digest());
}

std::string ReinforceTrainer::state() const {
  PolicyFile file;
  file.kind = traits().kind + " training";
  file.arrays = policy_arrays(traits());
  std::vector<std::int64_t> adam_steps;
  for (std::size_t part = 0; part < optimisers_.size(); ++part) {
    for (auto& array : optimisers_[part].arrays(adam_prefix(part))) {
      file.arrays.push_back(std::move(array));
    }
    adam_steps.push_back(optimisers_[part].n_steps());
  }
  file.extra = {
      {"problem", fingerprint()}, {"adam_steps", adam_steps}, {"progress", progress_.json()}};
  return write_policy(file);
}

void ReinforceTrainer::restore(std::string_view state) {
  const std::string source = kStateSource;
  const PolicyFile file = parse_policy(state, traits().kind + " training", source);
  ReinforceProgress next;
  std::vector<std::int64_t> adam_steps;
  try {
    if (file.extra.at("problem").get<std::string>() != fingerprint()) {
      throw ParseError(source +
                       ": it is of another task, seed, budget or of other parameters; resume with "
                       "those that it was begun with");
    }
    adam_steps = file.extra.at("adam_steps").get<std::vector<std::int64_t>>();
    next = ReinforceProgress::parse(file.extra.at("progress"));
  } catch (const nlohmann::json::exception& error) {
    throw ParseError(source + ": " + error.what());
  }
  if (adam_steps.size() != optimisers_.size() || next.tasks.size() != models_.size() ||
      next.stage_index > stages_.size()) {
    throw ParseError(source + ": its counters do not fit; it is damaged");
  }

  std::vector<Adam> optimisers = fresh_optimisers();
  for (std::size_t part = 0; part < optimisers.size(); ++part) {
    optimisers[part].set_arrays(file, adam_prefix(part), adam_steps[part], source);
  }
  set_policy_arrays(traits(), file, source);
  optimisers_ = std::move(optimisers);
  progress_ = std::move(next);
}

}  // namespace

std::unique_ptr<Trainer> make_reinforce_trainer(const MakeReinforcePolicy& make,
                                                const ReinforceOptions& options,
                                                const TrainProblem& problem) {
  return std::make_unique<ReinforceTrainer>(make, options, problem);
}

}  // namespace doppler
