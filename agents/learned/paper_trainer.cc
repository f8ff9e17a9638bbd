#include "agents/learned/paper_trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "agents/learned/adam.h"
#include "agents/learned/learned.h"
#include "agents/learned/paper_progress.h"
#include "agents/learned/torch_device.h"
#include "env/thread_pool.h"
#include "graphs/hash.h"

namespace doppler {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kStateKind = "doppler(preset=paper) training";
constexpr const char* kStateSource = "the saved training";
constexpr double kLargestLoss = 1e9;  // of an episode; rewards are of order 1

// One update: which episodes, and how they act and teach.
struct UpdatePlan {
  int stage = 0;
  std::int64_t first_episode = 0;  // of the stage
  std::size_t n_episodes = 0;
  std::size_t task = 0;
  double epsilon = 0;
  double learning_rate = 0;
  double entropy_weight = 0;
};

struct StagePlan {
  int stage = 0;
  std::int64_t n_episodes = 0;
};

// The loss of one policy, and what it moves.
struct Gradient {
  double loss = 0;
  double entropy = 0;  // mean over the steps
  double norm = 0;
  std::vector<at::Tensor> parts = {};
};

// loss = - mean over the episodes of the sum over their steps of weight x log-probability
//        + entropy weight x entropy.
Gradient gradient_of(const ChoiceValues& values, const std::vector<double>& weights,
                     double entropy_weight, std::size_t n_episodes,
                     const std::vector<at::Tensor>& parameters) {
  const at::Tensor factors = torch::tensor(at::ArrayRef<double>(weights), torch::kFloat64);
  const at::Tensor entropy = values.entropy.sum();
  const at::Tensor loss = -((values.log_probability * factors).sum() + entropy_weight * entropy) /
                          static_cast<double>(n_episodes);
  Gradient gradient{
      .loss = loss.item<double>(),
      .entropy = entropy.item<double>() / std::max<double>(1, static_cast<double>(weights.size()))};
  gradient.parts = torch::autograd::grad({loss}, parameters, {}, /*retain_graph=*/std::nullopt,
                                         /*create_graph=*/false, /*allow_unused=*/true);
  double squares = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!gradient.parts[i].defined()) gradient.parts[i] = torch::zeros_like(parameters[i]);
    const double norm = gradient.parts[i].norm().item<double>();
    squares += norm * norm;
  }
  gradient.norm = std::sqrt(squares);
  return gradient;
}

class PaperTrainer : public Trainer {
 public:
  PaperTrainer(const PaperHyperparameters& hyperparameters, const TrainProblem& problem);

  bool update() override;
  [[nodiscard]] TrainProgress progress() const override { return progress_.shown; }
  [[nodiscard]] Decision best(std::size_t task) const override;
  [[nodiscard]] std::string policy() const override;
  [[nodiscard]] std::string state() const override;
  void restore(std::string_view state) override;

 private:
  // Of one thread.
  struct Worker {
    std::vector<std::unique_ptr<PaperRollout>> rollouts;  // by task
    std::vector<std::optional<Simulator>> simulators;
    std::unique_ptr<Teacher> teacher;  // with steps
  };
  // Of one policy's optimiser.
  struct Optimisers {
    Adam select;
    Adam place;
  };

  [[nodiscard]] bool over() const;
  [[nodiscard]] UpdatePlan plan(const PaperProgress& progress) const;
  void decide_teacher(std::size_t task, PaperProgress& progress);
  void run_episodes(const UpdatePlan& plan, const PaperEmbedding& embedding,
                    const PaperProgress& progress);
  void run_episode(Worker& worker, const UpdatePlan& plan, std::size_t episode,
                   const PaperEmbedding& embedding, const PaperProgress& progress);
  [[nodiscard]] double reward(std::size_t task, double makespan) const;
  // One weight a step of SEL and of PLC, over all episodes of the update.
  struct StepWeights {
    std::vector<double> select;
    std::vector<double> place;
  };
  [[nodiscard]] StepWeights step_weights(const UpdatePlan& plan,
                                         const PaperProgress& progress) const;
  void record(const UpdatePlan& plan, PaperProgress& progress) const;
  static void check(const Gradient& gradient, const char* policy);
  void fresh_optimisers();
  void both(const std::function<void(bool)>& work);
  [[nodiscard]] std::string fingerprint() const;
  PaperRollout& rollout(Worker& worker, std::size_t task) const;

  PaperHyperparameters hyperparameters_;
  TrainOptions options_;
  Clock::time_point begin_ = Clock::now();
  torch::Device device_;
  std::vector<std::shared_ptr<const PlacementModel>> models_;
  std::vector<StagePlan> stages_;
  std::int64_t n_episodes_ = 0;  // of all stages
  PaperNetwork network_;
  std::optional<Optimisers> optimisers_;
  std::vector<PaperTensors> tensors_;  // by task
  bool teacher_has_steps_ = true;
  ThreadPool pool_;
  std::vector<Worker> workers_;
  PaperProgress progress_;
  // Of the update in progress.
  PaperWeights weights_;
  std::vector<PaperEpisode> episodes_;
  std::vector<double> makespans_;
  // Kept until the next ones are there: memory of their size that is given back to the system and
  // taken anew in each update costs a sixth of it.
  std::array<Gradient, 2> gradients_;
};

std::vector<StagePlan> stages_of(const PaperHyperparameters& numbers, const TrainOptions& options) {
  std::vector<StagePlan> stages;
  const bool simulates = std::ranges::count(options.stages, 2) > 0;
  for (int stage : options.stages) {
    if (stage == 3) {
      throw UsageError(
          "stage 3, learning on a real engine, is not there yet: there is no real engine in this "
          "version; give stages 1,2");
    }
    std::int64_t n = stage == 1 ? numbers.imitation_episodes : numbers.simulator_episodes;
    if (simulates && options.max_evaluations > 0 &&
        options.max_evaluations < numbers.simulator_episodes) {
      const double share = static_cast<double>(options.max_evaluations) /
                           static_cast<double>(numbers.simulator_episodes);
      n = stage == 2 ? options.max_evaluations : std::llround(share * static_cast<double>(n));
    }
    if (n > 0) stages.push_back({stage, n});
  }
  return stages;
}

PaperTrainer::PaperTrainer(const PaperHyperparameters& hyperparameters, const TrainProblem& problem)
    : hyperparameters_(hyperparameters),
      options_(problem.options),
      device_(torch_device(problem.options.device)),
      models_(problem.tasks),
      stages_(stages_of(hyperparameters, problem.options)),
      network_(hyperparameters.sizes, problem.options.seed),
      pool_(problem.options.n_threads) {
  for (const StagePlan& stage : stages_) n_episodes_ += stage.n_episodes;
  if (!hyperparameters.teacher.empty() && hyperparameters.teacher != "critical-path") {
    teacher_has_steps_ = make_host_agent(hyperparameters.teacher)->has_steps();
  }
  if (!options_.initial_policy.empty()) {
    const std::string source = "the initial policy";
    network_.set_arrays(parse_policy(options_.initial_policy, kPaperPolicyKind, source), source);
  }
  network_.select->to(device_);
  network_.place->to(device_);
  fresh_optimisers();
  const SingleThreadedTorch single_threaded;
  for (const auto& model : models_) {
    tensors_.emplace_back(
        std::make_shared<const PaperTask>(model, static_cast<int>(hyperparameters.sizes.steps)),
        device_);
  }
  progress_.tasks.resize(models_.size());
  workers_.resize(pool_.n_threads());
  for (Worker& worker : workers_) {
    worker.rollouts.resize(models_.size());
    worker.simulators.resize(models_.size());
  }
  progress_.shown.share = n_episodes_ > 0 ? 0 : 1;
}

void PaperTrainer::fresh_optimisers() {
  optimisers_.emplace(Optimisers{.select = Adam(network_.select->parameters()),
                                 .place = Adam(network_.place->parameters())});
}

bool PaperTrainer::over() const {
  if (progress_.stage_index >= stages_.size()) return true;
  // A teacher may have used some of them.
  if (stages_[progress_.stage_index].stage == 2 && options_.max_evaluations > 0 &&
      progress_.shown.evaluations >= options_.max_evaluations) {
    return true;
  }
  if (std::isinf(options_.max_seconds)) return false;
  return std::chrono::duration<double>(Clock::now() - begin_).count() >= options_.max_seconds;
}

UpdatePlan PaperTrainer::plan(const PaperProgress& progress) const {
  const PaperHyperparameters& numbers = hyperparameters_;
  const StagePlan& stage = stages_[progress.stage_index];
  std::int64_t left = stage.n_episodes - progress.stage_episodes;
  if (stage.stage == 2 && options_.max_evaluations > 0) {
    left = std::min(left, options_.max_evaluations - progress.shown.evaluations);
  }
  UpdatePlan plan{.stage = stage.stage,
                  .first_episode = progress.stage_episodes,
                  .n_episodes = static_cast<std::size_t>(std::min(left, numbers.batch)),
                  .task = static_cast<std::size_t>(progress.shown.updates) % models_.size()};
  // 0 in the first update, 1 in the last.
  const std::int64_t n_updates = (stage.n_episodes + numbers.batch - 1) / numbers.batch;
  const double at = n_updates < 2 ? 1
                                  : static_cast<double>(progress.stage_episodes / numbers.batch) /
                                        static_cast<double>(n_updates - 1);
  if (stage.stage == 1) {
    plan.epsilon = numbers.imitation_epsilon * (1 - at);
    plan.learning_rate = numbers.imitation_learning_rate;
    plan.entropy_weight = numbers.imitation_entropy_weight;
  } else {
    plan.epsilon = numbers.simulator_epsilon * (1 - at);
    plan.learning_rate = numbers.first_learning_rate +
                         (numbers.last_learning_rate - numbers.first_learning_rate) * at;
    plan.entropy_weight = numbers.simulator_entropy_weight;
  }
  return plan;
}

// Runs work(true) for SEL and work(false) for PLC, side by side where there are two threads.
void PaperTrainer::both(const std::function<void(bool)>& work) {
  pool_.run(2, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) work(i == 0);
  });
}

void PaperTrainer::decide_teacher(std::size_t task, PaperProgress& progress) {
  std::optional<Assignment>& taught = progress.tasks[task].taught;
  if (options_.demonstrations || teacher_has_steps_ || taught) return;
  const auto agent = make_host_agent(hyperparameters_.teacher);
  const Decision decision =
      agent->decide(models_[task], {.seed = options_.seed, .max_evaluations = 1});
  decision.check(models_[task]->task());
  taught = decision.assignment;
  progress.shown.evaluations += decision.evaluations;
}

PaperRollout& PaperTrainer::rollout(Worker& worker, std::size_t task) const {
  auto& rollout = worker.rollouts[task];
  if (!rollout) rollout = std::make_unique<PaperRollout>(tensors_[task].task);
  return *rollout;
}

void PaperTrainer::run_episode(Worker& worker, const UpdatePlan& plan, std::size_t episode,
                               const PaperEmbedding& embedding, const PaperProgress& progress) {
  const auto number = static_cast<std::uint64_t>(plan.first_episode) + episode;
  PaperEpisodeOptions options{
      .epsilon = plan.epsilon,
      .seed = Hasher().add(options_.seed).add(std::uint64_t(plan.stage)).add(number).digest()};
  std::unique_ptr<Teacher> fixed;
  if (plan.stage == 1) {
    if (options_.demonstrations) {
      const std::int64_t n = options_.demonstrations->size(plan.task);
      fixed = demonstration_teacher(
          options_.demonstrations->read(plan.task, static_cast<std::int64_t>(number) % n));
    } else if (!teacher_has_steps_) {
      fixed = assignment_teacher(*progress.tasks[plan.task].taught);
    } else if (!worker.teacher) {
      const std::string& name = hyperparameters_.teacher;
      worker.teacher = name.empty() || name == "critical-path"
                           ? critical_path_teacher()
                           : step_teacher(make_host_agent(name));
    }
    options.teacher = fixed ? fixed.get() : worker.teacher.get();
  }
  rollout(worker, plan.task).run(weights_, embedding, options, episodes_[episode]);
  if (plan.stage != 2) return;
  auto& simulator = worker.simulators[plan.task];
  if (!simulator) simulator.emplace(models_[plan.task]->task().simulator());
  makespans_[episode] = simulator->makespan(episodes_[episode].assignment.devices);
}

void PaperTrainer::run_episodes(const UpdatePlan& plan, const PaperEmbedding& embedding,
                                const PaperProgress& progress) {
  episodes_.resize(plan.n_episodes);
  makespans_.resize(plan.n_episodes);
  const std::size_t n_workers = workers_.size();
  pool_.run(n_workers, [&](std::size_t begin, std::size_t end) {
    for (std::size_t w = begin; w < end; ++w) {
      for (std::size_t i = w; i < plan.n_episodes; i += n_workers) {
        run_episode(workers_[w], plan, i, embedding, progress);
      }
    }
  });
}

double PaperTrainer::reward(std::size_t task, double makespan) const {
  return std::isinf(makespan) ? -hyperparameters_.memory_penalty
                              : -makespan / models_[task]->time_scale();
}

PaperTrainer::StepWeights PaperTrainer::step_weights(const UpdatePlan& plan,
                                                     const PaperProgress& progress) const {
  StepWeights weights;
  const PaperTaskRecord& task = progress.tasks[plan.task];
  const double baseline =
      task.n_rewards > 0 ? task.reward_sum / static_cast<double>(task.n_rewards) : 0;
  for (std::size_t i = 0; i < plan.n_episodes; ++i) {
    const PaperEpisode& episode = episodes_[i];
    if (plan.stage == 1) {
      weights.select.insert(weights.select.end(), episode.select_step.size(), 1);
      weights.place.insert(weights.place.end(), episode.node.size(), 1);
      continue;
    }
    // The reward comes with the last step; what it is worth at each step before.
    std::vector<double> advantage(episode.node.size());
    double worth = reward(plan.task, makespans_[i]);
    for (std::size_t step = advantage.size(); step-- > 0;) {
      advantage[step] = worth - baseline;
      worth *= hyperparameters_.discount;
    }
    for (std::int32_t step : episode.select_step) {
      weights.select.push_back(advantage[static_cast<std::size_t>(step)]);
    }
    weights.place.insert(weights.place.end(), advantage.begin(), advantage.end());
  }
  return weights;
}

void PaperTrainer::record(const UpdatePlan& plan, PaperProgress& progress) const {
  PaperTaskRecord& task = progress.tasks[plan.task];
  progress.shown.stage = plan.stage;
  ++progress.shown.updates;
  progress.shown.episodes += static_cast<std::int64_t>(plan.n_episodes);
  progress.stage_episodes += static_cast<std::int64_t>(plan.n_episodes);
  if (plan.stage == 2) {
    double sum = 0;
    for (std::size_t i = 0; i < plan.n_episodes; ++i) {
      ++progress.shown.evaluations;
      const double value = reward(plan.task, makespans_[i]);
      task.reward_sum += value;
      ++task.n_rewards;
      sum += -value * models_[plan.task]->time_scale();
      if (task.measured && makespans_[i] >= task.best_makespan) continue;
      task.measured = true;
      task.best_makespan = makespans_[i];
      task.best = episodes_[i].assignment;
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

void PaperTrainer::check(const Gradient& gradient, const char* policy) {
  if (std::isfinite(gradient.loss) && std::abs(gradient.loss) < kLargestLoss &&
      std::isfinite(gradient.norm)) {
    return;
  }
  throw RunError(
      std::string("training diverged: the loss of ") + policy + " is " +
      std::to_string(gradient.loss) + " and its gradient has length " +
      std::to_string(gradient.norm) +
      "; nothing was changed by this update. Use another seed or another policy to start "
      "from");
}

bool PaperTrainer::update() {
  if (over()) return false;
  const SingleThreadedTorch single_threaded;
  PaperProgress next = progress_;
  const UpdatePlan now = plan(next);
  if (now.stage == 1) decide_teacher(now.task, next);

  const PaperTensors& tensors = tensors_[now.task];
  SelectPolicy::Embedding select;
  PlacePolicy::Embedding place;
  both([&](bool selects) {
    if (selects) {
      select = network_.select->embed(tensors);
    } else {
      place = network_.place->embed(tensors);
    }
  });
  weights_ = network_.weights();
  run_episodes(now, plain_embedding(select, place), next);

  const StepWeights step = step_weights(now, next);
  Gradient& of_select = gradients_[0];
  Gradient& of_place = gradients_[1];
  both([&](bool selects) {
    if (selects) {
      of_select = gradient_of(network_.select->choices(tensors, select, episodes_), step.select,
                              now.entropy_weight, now.n_episodes, network_.select->parameters());
    } else {
      of_place = gradient_of(network_.place->choices(tensors, place, episodes_), step.place,
                             now.entropy_weight, now.n_episodes, network_.place->parameters());
    }
  });
  check(of_select, "SEL");
  check(of_place, "PLC");
  next.shown.values = {{"learning_rate", now.learning_rate},  {"epsilon", now.epsilon},
                       {"select_loss", of_select.loss},       {"place_loss", of_place.loss},
                       {"select_entropy", of_select.entropy}, {"place_entropy", of_place.entropy},
                       {"select_gradient", of_select.norm},   {"place_gradient", of_place.norm}};
  if (next.stage_episodes == 0) fresh_optimisers();
  record(now, next);
  both([&](bool selects) {
    if (selects) {
      optimisers_->select.step(of_select.parts, now.learning_rate);
    } else {
      optimisers_->place.step(of_place.parts, now.learning_rate);
    }
  });
  progress_ = std::move(next);
  return true;
}

Decision PaperTrainer::best(std::size_t task) const {
  const PaperTaskRecord& record = progress_.tasks.at(task);
  if (record.measured) {
    return {.assignment = record.best,
            .makespan = record.best_makespan,
            .evaluations = progress_.shown.evaluations};
  }
  const torch::NoGradGuard no_gradient;
  const SingleThreadedTorch single_threaded;
  const PaperTensors& tensors = tensors_[task];
  PaperRollout rollout(tensors.task);
  PaperEpisode episode;
  rollout.run(network_.weights(),
              plain_embedding(network_.select->embed(tensors), network_.place->embed(tensors)),
              {.record = false}, episode);
  return {.assignment = episode.assignment, .evaluations = progress_.shown.evaluations};
}

std::string PaperTrainer::policy() const {
  PolicyFile file;
  file.kind = kPaperPolicyKind;
  file.arrays = network_.arrays();
  return write_policy(file);
}

// What must be equal for a state to be continued.
std::string PaperTrainer::fingerprint() const {
  Hasher hasher;
  const PaperHyperparameters& numbers = hyperparameters_;
  hasher.add(numbers.teacher);
  for (std::int64_t x : {numbers.batch, numbers.sizes.hidden, numbers.sizes.edge_hidden,
                         numbers.sizes.head, numbers.sizes.steps}) {
    hasher.add(static_cast<std::uint64_t>(x));
  }
  for (double x : {numbers.imitation_learning_rate, numbers.imitation_epsilon,
                   numbers.imitation_entropy_weight, numbers.first_learning_rate,
                   numbers.last_learning_rate, numbers.simulator_epsilon,
                   numbers.simulator_entropy_weight, numbers.discount, numbers.memory_penalty}) {
    hasher.add(x);
  }
  hasher.add(options_.seed).add(static_cast<std::uint64_t>(options_.max_evaluations));
  for (const StagePlan& stage : stages_) {
    hasher.add(static_cast<std::uint64_t>(stage.stage));
    hasher.add(static_cast<std::uint64_t>(stage.n_episodes));
  }
  for (const auto& model : models_) hasher.add(model->task().hash());
  hasher.add(options_.initial_policy);
  return std::to_string(hasher.digest());
}

std::string PaperTrainer::state() const {
  PolicyFile file;
  file.kind = kStateKind;
  file.arrays = network_.arrays();
  for (auto& array : optimisers_->select.arrays("adam.select.")) file.arrays.push_back(array);
  for (auto& array : optimisers_->place.arrays("adam.place.")) file.arrays.push_back(array);
  file.extra = {{"problem", fingerprint()},
                {"adam_steps", {optimisers_->select.n_steps(), optimisers_->place.n_steps()}},
                {"progress", progress_.json()}};
  return write_policy(file);
}

void PaperTrainer::restore(std::string_view state) {
  const std::string source = kStateSource;
  const PolicyFile file = parse_policy(state, kStateKind, source);
  PaperProgress next;
  std::vector<std::int64_t> adam_steps;
  try {
    if (file.extra.at("problem").get<std::string>() != fingerprint()) {
      throw ParseError(source +
                       ": it is of another task, seed, budget or of other parameters; resume with "
                       "those that it was begun with");
    }
    adam_steps = file.extra.at("adam_steps").get<std::vector<std::int64_t>>();
    next = PaperProgress::parse(file.extra.at("progress"));
  } catch (const nlohmann::json::exception& error) {
    throw ParseError(source + ": " + error.what());
  }
  if (adam_steps.size() != 2 || next.tasks.size() != models_.size() ||
      next.stage_index > stages_.size()) {
    throw ParseError(source + ": its counters do not fit; it is damaged");
  }

  Optimisers optimisers{.select = Adam(network_.select->parameters()),
                        .place = Adam(network_.place->parameters())};
  optimisers.select.set_arrays(file, "adam.select.", adam_steps[0], source);
  optimisers.place.set_arrays(file, "adam.place.", adam_steps[1], source);
  network_.set_arrays(file, source);
  optimisers_.emplace(std::move(optimisers));
  progress_ = std::move(next);
}

}  // namespace

std::unique_ptr<Trainer> make_paper_trainer(const PaperHyperparameters& hyperparameters,
                                            const TrainProblem& problem) {
  return std::make_unique<PaperTrainer>(hyperparameters, problem);
}

}  // namespace doppler
