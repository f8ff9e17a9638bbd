#include "agents/learned/doppler_trainer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agents/learned/learned.h"

namespace doppler {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kFirstShare = 4;  // of the evaluations, one in so many for a gate's heads
constexpr std::size_t kHeadsKept = 4;    // in the policy file of a run

bool has_stage(const TrainOptions& options, int stage) {
  return std::find(options.stages.begin(), options.stages.end(), stage) != options.stages.end();
}

Json binary(const std::string& bytes) { return Json::binary({bytes.begin(), bytes.end()}); }

}  // namespace

void check_doppler_options(const TrainOptions& options) {
  if (options.device != "cpu") {
    throw UsageError(
        "doppler(preset=best) spends its time in rollouts and has its gradients on the "
        "CPU; give --device cpu, or train doppler(preset=paper)");
  }
}

DopplerTrainer::DopplerTrainer(DopplerTrainerOptions options, const TrainProblem& problem,
                               DopplerPolicy policy)
    : options_(std::move(options)),
      run_(problem.options),
      model_(problem.tasks.at(0)),
      inputs_(*model_),
      policy_(std::move(policy)),
      gradient_(model_) {
  for (Head& head : policy_.heads) fix_half(options_.search.half, head);
  check_doppler_options(run_);
  if (run_.max_evaluations < 1) {
    throw UsageError("doppler has no number of episodes of its own; give --evaluations");
  }
  if (options_.search.half == HeadHalf::both) pattern_ = pattern_of(model_);
  if (run_.n_threads > 1) pool_ = std::make_unique<ThreadPool>(run_.n_threads);
  const bool searches = has_stage(run_, 2);
  const bool is_taught = !options_.teacher.empty() || run_.demonstrations;
  if (has_stage(run_, 1) && model_->n_nodes() > 0 && (is_taught || !searches)) {
    n_imitation_updates_ = options_.n_imitation_updates;
    if (!run_.demonstrations) take_lessons();
    imitation_.emplace(
        std::vector<ImitationTask>{
            {.inputs = &inputs_, .gradient = &gradient_, .n_nodes = model_->n_nodes()}},
        policy_.heads[0]);
  }
  if (n_imitation_updates_ == 0) start_search();
}

void DopplerTrainer::take_lessons() {
  const auto teacher =
      make_host_agent(options_.teacher.empty() ? "critical-path" : options_.teacher);
  for (std::int64_t i = 0; i < options_.n_teacher_episodes; ++i) {
    lessons_.push_back(
        trajectory_of(*teacher, model_, mix64(run_.seed + static_cast<std::uint64_t>(i))));
  }
}

Head DopplerTrainer::imitating_head() const {
  Head head = imitation_->head();
  fix_half(options_.search.half, head);
  return head;
}

void DopplerTrainer::start_search() {
  Latents latents = policy_.network.latents(inputs_);
  std::vector<Head> first;
  if (imitation_) first.push_back(imitating_head());
  for (std::size_t k : order_heads(policy_, model_, inputs_, latents)) {
    first.push_back(policy_.heads[k]);
  }
  // The rest of the budget looks around the best of them.
  const auto most =
      static_cast<std::size_t>(std::max<std::int64_t>(1, run_.max_evaluations / kFirstShare));
  if (policy_.network.options().n_heads > 0 && first.size() > most) first.resize(most);
  // Without stage II: what it starts from is measured, once.
  const bool searches = has_stage(run_, 2);
  const std::int64_t n_evaluations = searches ? run_.max_evaluations : 1;
  if (searches && !pattern_.empty() &&
      (n_evaluations > 1 || pattern_promises_more(model_, latents, first.front(), pattern_))) {
    first.insert(first.begin(), pulled(first.front(), kFullPull));
  }
  search_.emplace(model_, std::move(latents), std::move(first),
                  AssignOptions{.seed = run_.seed,
                                .max_evaluations = n_evaluations,
                                .max_seconds = run_.max_seconds,
                                .on_better = run_.on_better});
  search_->set_pattern(pattern_);
  search_->set_options(options_.search);
  search_->set_threads(pool_.get());
}

void DopplerTrainer::start_online() {
  std::vector<Head> heads;
  for (const HeadSearch::Parent& parent : search_->parents()) {
    if (heads.size() < kHeadsKept) heads.push_back(parent.head);
  }
  for (const Head& head : policy_.heads) {
    if (heads.size() < 2 * kHeadsKept) heads.push_back(head);
  }
  online_ = std::make_unique<OnlineSearch>(
      model_, policy_.network, std::pair(std::move(heads), search_->decision().assignment),
      OnlineSearchOptions{.engine = run_.engine,
                          .max_executions = run_.max_executions,
                          .max_regret = run_.max_regret,
                          .pattern = pattern_,
                          .seed = run_.seed});
}

void DopplerTrainer::imitate() {
  std::vector<ImitationExample> examples;
  std::vector<Trajectory> read;  // of this update alone
  if (run_.demonstrations) read.reserve(static_cast<std::size_t>(options_.imitation_batch));
  const std::int64_t n_lessons = run_.demonstrations ? run_.demonstrations->size(0)
                                                     : static_cast<std::int64_t>(lessons_.size());
  for (std::int64_t i = 0; i < options_.imitation_batch; ++i) {
    const std::int64_t lesson = (n_updates_ * options_.imitation_batch + i) % n_lessons;
    if (run_.demonstrations) {
      Demonstration demonstration = run_.demonstrations->read(0, lesson);
      read.push_back({std::move(demonstration.order), std::move(demonstration.assignment.devices)});
      examples.push_back({.task = 0, .trajectory = &read.back()});
    } else {
      examples.push_back({.task = 0, .trajectory = &lessons_[static_cast<std::size_t>(lesson)]});
    }
  }
  loss_ = imitation_->update(policy_.network, examples, {});
}

bool DopplerTrainer::update() {
  if (n_updates_ < n_imitation_updates_) {
    imitate();
    if (++n_updates_ == n_imitation_updates_) start_search();
    return true;
  }
  if (!online_ && search_->update()) {
    ++n_updates_;
    return true;
  }
  if (!has_stage(run_, 3)) return false;
  if (!online_) start_online();
  if (!online_->update()) return false;
  ++n_updates_;
  return true;
}

TrainProgress DopplerTrainer::progress() const {
  TrainProgress progress{.updates = n_updates_};
  if (!search_) {
    progress.stage = n_updates_ > 0 ? 1 : 0;
    progress.episodes = n_updates_ * options_.imitation_batch;
    progress.values = {{"loss", loss_}};
    return progress;
  }
  const Evaluations& evaluations = search_->evaluations();
  progress.stage = n_updates_ > n_imitation_updates_ || n_imitation_updates_ == 0 ? 2 : 1;
  if (n_updates_ == 0) progress.stage = 0;
  progress.episodes = n_imitation_updates_ * options_.imitation_batch + search_->n_episodes();
  progress.evaluations = evaluations.n_used();
  progress.share = static_cast<double>(evaluations.n_used()) /
                   static_cast<double>(evaluations.n_used() + evaluations.n_left());
  progress.best_makespan = evaluations.best_makespan();
  progress.values = {{"mean_makespan", search_->mean_makespan()},
                     {"improving", search_->improving() ? 1 : 0}};
  if (has_stage(run_, 3)) progress.share /= 2;
  if (!online_) return progress;
  progress.stage = 3;
  progress.executions = online_->n_executions();
  progress.share = (1 + online_->share()) / 2;
  progress.values = online_->values();
  return progress;
}

Decision DopplerTrainer::best(std::size_t /*task*/) const {
  if (online_ && online_->n_executions() > 0) {
    return {.assignment = online_->best(), .evaluations = search_->evaluations().n_used()};
  }
  if (search_ && search_->evaluations().n_used() > 0) return search_->decision();
  const Latents latents = policy_.network.latents(inputs_);
  HeadRollout rollout(model_, latents, pattern_);
  const auto devices = rollout.decide(imitation_ ? imitating_head() : policy_.heads[0]);
  return {.assignment = Assignment{{devices.begin(), devices.end()}}};
}

std::string DopplerTrainer::policy() const {
  std::vector<Head> heads;
  if (online_) {
    heads = online_->heads();
    if (heads.size() > kHeadsKept) heads.resize(kHeadsKept);
  } else if (search_) {
    for (const HeadSearch::Parent& parent : search_->parents()) {
      if (heads.size() < kHeadsKept) heads.push_back(parent.head);
    }
  } else if (imitation_) {
    heads.push_back(imitating_head());
  }
  if (heads.empty()) return policy_.text();
  return policy_text(policy_.network, heads);
}

std::string DopplerTrainer::state() const {
  Json state = {{"updates", n_updates_},
                {"loss", loss_},
                {"network", binary(policy_.network.state())},
                {"imitation", imitation_ ? imitation_->state() : Json()},
                {"search", search_ ? search_->state() : Json()},
                {"online", online_ ? online_->state() : Json()}};
  std::string bytes;
  Json::to_cbor(state, bytes);
  return bytes;
}

void DopplerTrainer::restore(std::string_view bytes) {
  try {
    const Json state = Json::from_cbor(bytes);
    const auto& network = state.at("network").get_binary();
    policy_.network.restore(std::string(network.begin(), network.end()));
    n_updates_ = state.at("updates").get<std::int64_t>();
    loss_ = state.at("loss").get<double>();
    if (imitation_) imitation_->restore(state.at("imitation"));
    search_.reset();
    if (!state.at("search").is_null()) {
      start_search();
      search_->restore(state.at("search"));
    }
    online_.reset();
    if (!state.at("online").is_null()) {
      start_online();
      online_->restore(state.at("online"));
    }
  } catch (const Json::exception& error) {
    throw ParseError(std::string("this is no state of a doppler run: ") + error.what());
  }
}

}  // namespace doppler
