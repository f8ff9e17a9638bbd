#include "agents/learned/online_search.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "agents/learned/head_search.h"
#include "agents/search/walk.h"

namespace doppler {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kFirstRuns = 3;      // of the first assignment, before anything else
constexpr std::int64_t kBatch = 4;          // runs an update; one of them is the incumbent's
constexpr std::int64_t kLeastInterval = 8;  // runs between two searches
constexpr double kIntervalShare = 0.2;      // of the runs so far, if that is more
constexpr std::int64_t kPatience = 3;       // searches in a row without news that end the stage
constexpr std::size_t kHeadsKept = 8;
constexpr std::size_t kArmsKept = 40;    // that were not run
constexpr std::size_t kMostSingle = 16;  // devices that may take the whole graph
constexpr double kLastShare = 0.04;      // of the runs, for the final comparison
constexpr std::int64_t kLeastLast = 4;
constexpr double kHot = 0.003;  // first temperature of the moves over the makespan
constexpr double kCooling = 4;  // the last is exp(-this) times the first
constexpr int kStops = 3;       // assignments that one walk of moves gives

// What learning takes, in seconds for each node, half as much again as was measured on one core of
// 2.5 GHz: so the share of learning holds on slower machines too, and what is learnt on a simulator
// depends on the seed alone.
constexpr double kSecondsOfHead = 2.5e-6;  // an evaluation: four rollouts and a run
constexpr double kSecondsOfMove = 0.1e-6;
constexpr double kSecondsOfModel = 100e-6;  // a corrected model with its latents
constexpr double kMoveShare = 0.4;          // of a search's seconds

// That this thread has computed: what others do on the machine does not count as learning.
double thread_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

OnlineSearch::OnlineSearch(std::shared_ptr<const PlacementModel> model,
                           const DopplerNetwork& network,
                           std::pair<std::vector<Head>, Assignment> begin,
                           OnlineSearchOptions options)
    : model_(std::move(model)),
      network_(&network),
      options_(std::move(options)),
      executions_(model_, options_.engine, options_.seed),
      virtual_time_(NamedCall::parse(options_.engine).name == "simulator"),
      system_(model_),
      heads_(std::move(begin.first)),
      arms_(std::move(begin.second)),
      draws_(mix64(options_.seed + 3)) {
  Simulator simulator = model_->task().simulator();
  arms_.set_predicted(0, simulator.makespan(arms_[0].assignment.devices));
  // What is good on the simulator alone may be bad on the system: beside it the pattern and what
  // the heads decide, the rules of partner-list and of critical-path among them.
  const auto add = [&](std::span<const DeviceId> devices) {
    arms_.add(Assignment{{devices.begin(), devices.end()}}, simulator.makespan(devices));
  };
  if (!options_.pattern.empty()) add(options_.pattern);
  const Latents latents = network_->latents(NetworkInputs(*model_));
  HeadRollout rollout(model_, latents, options_.pattern);
  for (const Head& head : heads_) add(rollout.decide(head));
  // A way out where the first assignment cannot run.
  for (std::size_t d = 0; d < std::min(model_->n_devices(), kMostSingle); ++d) {
    const Assignment single(model_->n_nodes(), DeviceId(static_cast<std::int64_t>(d)));
    arms_.add(single, simulator.makespan(single.devices));
  }
}

std::int64_t OnlineSearch::n_last_runs() const {
  const auto share = static_cast<double>(options_.max_executions) * kLastShare;
  return std::min(std::max(kLeastLast, static_cast<std::int64_t>(share)),
                  options_.max_executions / 2);
}

double OnlineSearch::allowed_regret() const {
  const Arm& first = arms_[0];
  const double unit = first.n_runs > 0 ? first.mean() : model_->time_scale();
  return options_.max_regret * static_cast<double>(options_.max_executions) * unit;
}

// Whether the regret stays within its budget even if the arm is as bad as can be expected.
bool OnlineSearch::may_explore(std::size_t arm) const {
  const Belief belief = arms_.belief(arm);
  const Belief now = arms_.belief(incumbent_);
  const double worst = belief.mean + 2 * belief.deviation - now.mean;
  return std::isfinite(worst) && regret_ + std::max(0.0, worst) <= allowed_regret();
}

std::size_t OnlineSearch::choose() const {
  const std::size_t arm = arms_.most_promising();
  const bool must_leave = arms_[incumbent_].n_failures > 0;
  return arm != incumbent_ && (must_leave || may_explore(arm)) ? arm : incumbent_;
}

void OnlineSearch::run(std::size_t arm) {
  const double reference = arms_[incumbent_].n_runs > 0
                               ? arms_.belief(incumbent_).mean
                               : Executions::kPenalty * model_->time_scale();
  const ExecutionResult result = executions_.run(arms_[arm].assignment);
  last_makespan_ = result.cost;
  executing_seconds_ += virtual_time_ ? result.cost : result.seconds;
  if (arm != incumbent_) {
    regret_ += result.cost - reference;
    ++n_explored_;
  }
  const double begin = thread_seconds();
  if (result.failure.empty()) {
    arms_.add_run(arm, result.execution.makespan);
    system_.add(result.execution);
  } else {
    arms_.add_failure(arm);
    ++n_failures_;
  }
  arms_.estimate();
  incumbent_ = arms_.incumbent();
  learning_seconds_ += thread_seconds() - begin;
}

double OnlineSearch::learning_left() const {
  const double spent =
      virtual_time_ ? planned_seconds_ : std::max(planned_seconds_, learning_seconds_);
  return options_.learning_share * executing_seconds_ - spent;
}

void OnlineSearch::plan() {
  const double begin = thread_seconds();
  const auto corrected = system_.corrected();
  const bool has_searched = find_candidates(corrected);
  if (has_searched && executions_.n_runs() > kFirstRuns) {
    n_idle_ = n_explored_ == n_explored_before_ ? n_idle_ + 1 : 0;
    n_explored_before_ = n_explored_;
  }
  Simulator simulator = corrected->task().simulator();
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    arms_.set_predicted(i, simulator.makespan(arms_[i].assignment.devices));
  }
  arms_.keep(kArmsKept);
  arms_.estimate();
  incumbent_ = arms_.incumbent();
  const auto n_runs = executions_.n_runs();
  const auto share = static_cast<double>(n_runs) * kIntervalShare;
  next_plan_ = n_runs + std::max(kLeastInterval, static_cast<std::int64_t>(share));
  learning_seconds_ += thread_seconds() - begin;
}

// Stage II's search on the corrected model, for as long as learning may take.
bool OnlineSearch::find_candidates(const std::shared_ptr<const PlacementModel>& corrected) {
  // On a real engine by the clock: a busy machine learns less.
  const double slowness = virtual_time_ || planned_seconds_ == 0
                              ? 1
                              : std::max(1.0, learning_seconds_ / planned_seconds_);
  const auto n_nodes = static_cast<double>(model_->n_nodes());
  const double seconds = learning_left() / slowness - kSecondsOfModel * n_nodes;
  planned_seconds_ += kSecondsOfModel * n_nodes;
  const auto n_evaluations =
      std::min(options_.max_head_evaluations,
               static_cast<std::int64_t>((1 - kMoveShare) * seconds / (kSecondsOfHead * n_nodes)));
  const auto n_moves =
      std::min(options_.max_moves,
               static_cast<std::int64_t>(kMoveShare * seconds / (kSecondsOfMove * n_nodes)));
  if (n_evaluations < 1) return false;
  planned_seconds_ += n_nodes * (kSecondsOfHead * static_cast<double>(n_evaluations) +
                                 kSecondsOfMove * static_cast<double>(n_moves));

  const Latents latents = network_->latents(NetworkInputs(*corrected));
  HeadSearch search(corrected, latents, heads_,
                    {.seed = draws_.next(), .max_evaluations = n_evaluations});
  search.set_pattern(options_.pattern);
  while (search.update()) {
  }
  HeadRollout rollout(corrected, latents, options_.pattern);
  heads_.clear();
  for (const HeadSearch::Parent& parent : search.parents()) {
    if (heads_.size() == kHeadsKept) break;
    heads_.push_back(parent.head);
    const auto devices = rollout.decide(parent.head);
    arms_.add(Assignment{{devices.begin(), devices.end()}}, parent.makespan);
  }
  improve(corrected, search.decision().assignment, n_moves / 2);
  improve(corrected, Assignment(arms_[incumbent_].assignment), n_moves - n_moves / 2);
  return true;
}

// Anneals an assignment on the corrected model; the best of each part of the walk is a candidate.
void OnlineSearch::improve(const std::shared_ptr<const PlacementModel>& corrected,
                           const Assignment& from, std::int64_t n_moves) {
  if (n_moves < 2) return;
  Evaluations evaluations(*corrected, {.max_evaluations = n_moves});
  Moves moves(*corrected, MoveKinds::all);
  Walk walk(evaluations, from);
  if (!moves.any() || !std::isfinite(walk.makespan())) return;
  const double unit = walk.makespan();
  for (int stop = 1; stop <= kStops; ++stop) {
    const double end = static_cast<double>(stop) / kStops;
    while (evaluations.left() && evaluations.progress() < end) {
      const double temperature = unit * kHot * std::exp(-kCooling * evaluations.progress());
      const auto changes = moves.draw(walk.present(), draws_);
      const double makespan = walk.propose(changes);
      if (makespan <= walk.makespan() ||
          draws_.uniform() < std::exp((walk.makespan() - makespan) / temperature)) {
        walk.accept(changes);
      }
    }
    arms_.add(evaluations.best(), evaluations.best_makespan());
  }
}

bool OnlineSearch::update() {
  if (over_) return false;
  const std::int64_t n_left = options_.max_executions - executions_.n_runs();
  if (n_left <= 0) {
    over_ = true;
    return false;
  }
  if (executions_.n_runs() == 0) {
    for (std::int64_t i = 0; i < std::min(kFirstRuns, n_left) && arms_[0].n_failures == 0; ++i) {
      run(0);
    }
    return true;
  }
  if (n_last_ < 0 && (n_left <= n_last_runs() || n_idle_ >= kPatience)) n_last_ = 0;
  if (n_last_ >= 0) {
    const std::size_t best = incumbent_;
    if (best == 0 || n_last_ >= n_last_runs()) {
      over_ = true;
      return false;
    }
    for (std::size_t arm : {best, std::size_t{0}}) {
      if (executions_.n_runs() < options_.max_executions) run(arm);
      ++n_last_;
    }
    return true;
  }
  if (executions_.n_runs() >= next_plan_) plan();
  if (arms_[choose()].n_failures > 0) {
    over_ = true;  // the first assignment cannot run, and there is no other
    return false;
  }
  for (std::int64_t i = 0; i < std::min(kBatch, n_left - n_last_runs()); ++i) {
    const bool has_incumbent = arms_[incumbent_].n_runs > 0;
    const std::size_t arm = i == kBatch - 1 && has_incumbent ? incumbent_ : choose();
    if (arms_[arm].n_failures == 0) run(arm);
  }
  return true;
}

const Assignment& OnlineSearch::best() const {
  const Arm& first = arms_[0];
  const Arm& now = arms_[incumbent_];
  const bool is_worse = first.n_runs > 0 && now.n_runs > 0 && first.mean() < now.mean();
  return is_worse ? first.assignment : now.assignment;
}

double OnlineSearch::best_mean() const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t arm : {std::size_t{0}, incumbent_}) {
    if (arms_[arm].n_runs > 0) least = std::min(least, arms_[arm].mean());
  }
  return least;
}

double OnlineSearch::share() const {
  if (over_) return 1;
  return static_cast<double>(executions_.n_runs()) / static_cast<double>(options_.max_executions);
}

std::vector<std::pair<std::string, double>> OnlineSearch::values() const {
  const auto mean = [&](std::size_t arm) {
    return arms_[arm].n_runs > 0 ? arms_[arm].mean() : std::numeric_limits<double>::infinity();
  };
  return {{"makespan", last_makespan_},
          {"first_makespan", mean(0)},
          {"incumbent_makespan", mean(incumbent_)},
          {"regret", regret_},
          {"allowed_regret", allowed_regret()},
          {"explored", static_cast<double>(n_explored_)},
          {"failures", static_cast<double>(n_failures_)},
          {"noise", arms_.noise()},
          {"model_error", arms_.model_error()},
          {"executing_seconds", executing_seconds_},
          {"learning_seconds", learning_seconds_}};
}

Json OnlineSearch::state() const {
  return {{"runs", executions_.n_runs()},
          {"system", system_.state()},
          {"heads", heads_},
          {"arms", arms_.state()},
          {"draws", draws_.state()},
          {"incumbent", incumbent_},
          {"next_plan", next_plan_},
          {"counts", {n_idle_, n_explored_, n_explored_before_, n_failures_, n_last_}},
          {"over", over_},
          {"regret", regret_},
          {"seconds", {last_makespan_, executing_seconds_, planned_seconds_, learning_seconds_}}};
}

void OnlineSearch::restore(const Json& state) {
  executions_.set_n_runs(state.at("runs").get<std::int64_t>());
  system_.restore(state.at("system"));
  heads_ = state.at("heads").get<std::vector<Head>>();
  arms_.restore(state.at("arms"));
  draws_ = Draws::from_state(state.at("draws").get<std::uint64_t>());
  incumbent_ = state.at("incumbent").get<std::size_t>();
  next_plan_ = state.at("next_plan").get<std::int64_t>();
  const auto counts = state.at("counts").get<std::vector<std::int64_t>>();
  n_idle_ = counts.at(0);
  n_explored_ = counts.at(1);
  n_explored_before_ = counts.at(2);
  n_failures_ = counts.at(3);
  n_last_ = counts.at(4);
  over_ = state.at("over").get<bool>();
  regret_ = state.at("regret").get<double>();
  const auto seconds = state.at("seconds").get<std::vector<double>>();
  last_makespan_ = seconds.at(0);
  executing_seconds_ = seconds.at(1);
  planned_seconds_ = seconds.at(2);
  learning_seconds_ = seconds.at(3);
}

}  // namespace doppler
