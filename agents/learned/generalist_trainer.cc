#include "agents/learned/generalist_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "agents/draws.h"
#include "agents/learned/doppler_trainer.h"
#include "agents/learned/head_search.h"

namespace doppler {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kHeadsOfTask = 6;    // of each task that may join the pool
constexpr std::size_t kLessonsOfTask = 2;  // trajectories that are imitated
constexpr double kWorstLoss = 1;  // a head that is e times as slow as the best is as bad as can be
constexpr std::size_t kHeuristicHeads = 2;  // partner-list and critical-path lead the pool
constexpr double kGateRate = 2e-3;

Head with_rows(const Head& head, std::size_t n_latents) {
  Head longer = head;
  longer.resize((1 + n_latents) * kRuleWeights, 0.0);
  return longer;
}

// A policy file keeps float32; what is measured must be what is kept.
Head rounded(Head head) {
  for (double& weight : head) weight = static_cast<float>(weight);
  return head;
}

}  // namespace

GeneralistTrainer::GeneralistTrainer(GeneralistOptions options, const TrainProblem& problem,
                                     DopplerPolicy policy)
    : options_(options), run_(problem.options), policy_(std::move(policy)) {
  check_doppler_options(run_);
  if (run_.stages != std::vector{1, 2}) {
    throw UsageError(
        "doppler learns over several tasks in stages 1 and 2 together; give --stages "
        "1,2");
  }
  const auto n_tasks = static_cast<std::int64_t>(problem.tasks.size());
  const std::int64_t least = 100 * n_tasks;
  if (run_.max_evaluations < least) {
    throw UsageError("doppler over " + std::to_string(n_tasks) + " tasks needs at least " +
                     std::to_string(least) + " evaluations, 100 a task; " +
                     std::to_string(run_.max_evaluations) + " were given");
  }
  if (run_.n_threads > 1) pool_of_threads_ = std::make_unique<ThreadPool>(run_.n_threads);
  for (const auto& model : problem.tasks) {
    if (model->n_nodes() == 0) {
      throw UsageError("task '" + model->task().name + "' has no nodes; nothing is to be learnt");
    }
    places_.push_back(
        {.model = model, .inputs = NetworkInputs(*model), .gradient = PolicyGradient(model)});
  }
  losses_.resize(places_.size());
  promises_.resize(places_.size());
}

void GeneralistTrainer::next_phase(Phase phase) {
  phase_ = phase;
  step_ = 0;
}

bool GeneralistTrainer::update() {
  const auto n_tasks = static_cast<std::int64_t>(places_.size());
  const auto task = static_cast<std::size_t>(std::min(step_, n_tasks - 1));
  switch (phase_) {
    case Phase::search:
      search(places_[task]);
      if (++step_ == n_tasks) next_phase(Phase::imitate);
      break;
    case Phase::imitate:
      imitate();
      if (++step_ == options_.n_imitation_updates) next_phase(Phase::refine);
      break;
    case Phase::refine:
      refine(places_[task]);
      if (++step_ == n_tasks) {
        make_pool();
        next_phase(Phase::compare);
      }
      break;
    case Phase::compare:
      compare(places_[task]);
      if (++step_ == n_tasks) {
        choose_heads();
        next_phase(Phase::gate);
      }
      break;
    case Phase::gate:
      learn_gate();
      if (++step_ == options_.n_gate_updates) next_phase(Phase::done);
      break;
    case Phase::done:
      return false;
  }
  ++n_updates_;
  return true;
}

void GeneralistTrainer::note(Place& place, const Decision& decision) {
  n_evaluations_ += decision.evaluations;
  if (!place.best.makespan || *decision.makespan < *place.best.makespan) place.best = decision;
}

void GeneralistTrainer::search(Place& place) {
  const double share = options_.search_share / static_cast<double>(places_.size());
  const Latents none{.n_latents = 0};
  HeadSearch found(
      place.model, none,
      {plain_head(partner_list_weights(), 0), plain_head(critical_path_weights(), 0)},
      {.seed = mix64(run_.seed + static_cast<std::uint64_t>(step_)),
       .max_evaluations = std::max<std::int64_t>(
           1, static_cast<std::int64_t>(share * static_cast<double>(run_.max_evaluations)))});
  found.set_options({.improve_share = 0});
  found.set_threads(pool_of_threads_.get());
  while (found.update()) {
  }
  n_episodes_ += found.n_episodes();
  note(place, found.decision());
  HeadRollout rollout(place.model, none);
  for (const HeadSearch::Parent& parent : found.parents()) {
    if (place.heads.size() >= kHeadsOfTask / 2) break;
    place.heads.push_back(parent.head);
    if (place.lessons.size() >= kLessonsOfTask) continue;
    const auto devices = rollout.decide(parent.head);
    place.lessons.push_back({.order = {rollout.order().begin(), rollout.order().end()},
                             .devices = {devices.begin(), devices.end()}});
  }
}

void GeneralistTrainer::start_imitation() {
  std::vector<ImitationTask> tasks;
  for (Place& place : places_) {
    tasks.push_back(
        {.inputs = &place.inputs, .gradient = &place.gradient, .n_nodes = place.model->n_nodes()});
  }
  imitation_.emplace(std::move(tasks), policy_.heads[0]);
}

void GeneralistTrainer::imitate() {
  if (!imitation_) start_imitation();
  Draws draws(mix64(run_.seed + 1) + static_cast<std::uint64_t>(step_));
  std::vector<ImitationExample> examples;
  for (std::int64_t i = 0; i < options_.imitation_batch; ++i) {
    const auto task = static_cast<std::size_t>(draws.below(places_.size()));
    const std::vector<Trajectory>& lessons = places_[task].lessons;
    examples.push_back({.task = task, .trajectory = &lessons[draws.below(lessons.size())]});
  }
  const double fall =
      1 - static_cast<double>(step_) / static_cast<double>(options_.n_imitation_updates);
  const Imitation::Rates rates;
  loss_ = imitation_->update(policy_.network, examples,
                             {.head = rates.head * fall, .network = rates.network * fall});
  n_episodes_ += options_.imitation_batch;
}

void GeneralistTrainer::refine(Place& place) {
  const auto n_latents = static_cast<std::size_t>(policy_.network.options().n_latents);
  const double share = options_.refine_share / static_cast<double>(places_.size());
  std::vector<Head> first = {imitation_->head()};
  for (const Head& head : place.heads) first.push_back(with_rows(head, n_latents));
  HeadSearch found(
      place.model, policy_.network.latents(place.inputs), std::move(first),
      {.seed = mix64(run_.seed + 2 + static_cast<std::uint64_t>(step_)),
       .max_evaluations = std::max<std::int64_t>(
           1, static_cast<std::int64_t>(share * static_cast<double>(run_.max_evaluations)))});
  found.set_options({.improve_share = 0});
  found.set_threads(pool_of_threads_.get());
  while (found.update()) {
  }
  n_episodes_ += found.n_episodes();
  note(place, found.decision());
  for (const HeadSearch::Parent& parent : found.parents()) {
    if (place.heads.size() >= kHeadsOfTask) break;
    place.heads.push_back(parent.head);
  }
}

void GeneralistTrainer::make_pool() {
  const auto n_latents = static_cast<std::size_t>(policy_.network.options().n_latents);
  pool_ = {plain_head(partner_list_weights(), n_latents),
           plain_head(critical_path_weights(), n_latents), rounded(imitation_->head())};
  const std::int64_t n_left = run_.max_evaluations - n_evaluations_;
  const auto n_most = static_cast<std::size_t>(std::max<std::int64_t>(
      static_cast<std::int64_t>(pool_.size()), n_left / static_cast<std::int64_t>(places_.size())));
  // The first of every task, then the second of every task, and so on: those with latents first,
  // which came last.
  for (std::size_t rank = 0; rank < kHeadsOfTask; ++rank) {
    for (const Place& place : places_) {
      if (pool_.size() >= n_most || rank >= place.heads.size()) continue;
      const std::size_t index = (rank + kHeadsOfTask / 2) % place.heads.size();
      pool_.push_back(rounded(with_rows(place.heads[index], n_latents)));
    }
  }
}

void GeneralistTrainer::compare(Place& place) {
  const Latents latents = policy_.network.latents(place.inputs);
  HeadRollout rollout(place.model, latents);
  Evaluations evaluations(*place.model,
                          {.max_evaluations = static_cast<std::int64_t>(pool_.size())});
  std::vector<double>& makespans = losses_[static_cast<std::size_t>(step_)];
  makespans.clear();
  for (const Head& head : pool_) makespans.push_back(evaluations.run(rollout.decide(head)));
  std::vector<float>& promises = promises_[static_cast<std::size_t>(step_)];
  promises.clear();
  for (const EstimateFeatures& row : estimate_heads(place.model, latents, pool_)) {
    promises.push_back(row[0]);
  }
  n_episodes_ += static_cast<std::int64_t>(pool_.size());
  note(place, evaluations.decision());
}

void GeneralistTrainer::choose_heads() {
  // From makespans to losses.
  for (std::size_t t = 0; t < places_.size(); ++t) {
    const double best = *places_[t].best.makespan;
    for (double& value : losses_[t]) {
      value = std::isfinite(value) && best > 0 ? std::min(std::log(value / best), kWorstLoss)
                                               : kWorstLoss;
    }
  }
  std::vector<std::size_t> chosen;
  struct Chosen {
    double least = kWorstLoss;     // of the chosen heads
    double promised = kWorstLoss;  // of the chosen head that promises most
    float promise = std::numeric_limits<float>::infinity();
  };
  std::vector<Chosen> choices(places_.size());
  const auto with = [&](std::size_t t, std::size_t k) {
    Chosen choice = choices[t];
    choice.least = std::min(choice.least, losses_[t][k]);
    if (promises_[t][k] < choice.promise) {
      choice.promise = promises_[t][k];
      choice.promised = losses_[t][k];
    }
    return choice;
  };
  const std::size_t n_heads = std::min(static_cast<std::size_t>(options_.n_heads), pool_.size());
  const auto keep = [&](std::size_t k) {
    chosen.push_back(k);
    for (std::size_t t = 0; t < places_.size(); ++t) choices[t] = with(t, k);
  };
  // The heuristics' heads are always among them: what a task asks of them is known to everyone.
  for (std::size_t k = 0; k < std::min(kHeuristicHeads, n_heads); ++k) keep(k);
  while (chosen.size() < n_heads) {
    std::size_t best = pool_.size();
    double best_sum = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < pool_.size(); ++k) {
      if (std::find(chosen.begin(), chosen.end(), k) != chosen.end()) continue;
      double sum = 0;
      for (std::size_t t = 0; t < places_.size(); ++t) {
        const Chosen choice = with(t, k);
        sum += choice.least + options_.promised_weight * choice.promised;
      }
      if (sum < best_sum) {
        best_sum = sum;
        best = k;
      }
    }
    keep(best);
  }
  std::vector<Head> heads;
  for (std::size_t k : chosen) heads.push_back(pool_[k]);
  policy_.heads = std::move(heads);
  policy_.network.add_gate(static_cast<std::int64_t>(n_heads), run_.seed + 3);
  for (std::size_t t = 0; t < places_.size(); ++t) {
    std::vector<double> kept;
    for (std::size_t k : chosen) kept.push_back(losses_[t][k]);
    losses_[t] = std::move(kept);
  }
}

void GeneralistTrainer::learn_gate() {
  if (examples_.empty()) {
    for (std::size_t t = 0; t < places_.size(); ++t) {
      const Place& place = places_[t];
      const Latents latents = policy_.network.latents(place.inputs);
      examples_.push_back({.readout = policy_.network.readout(place.inputs),
                           .estimates = estimate_heads(place.model, latents, policy_.heads),
                           .loss = {losses_[t].begin(), losses_[t].end()}});
    }
  }
  Draws draws(mix64(run_.seed + 4) + static_cast<std::uint64_t>(step_));
  std::vector<const GateExample*> batch;
  for (std::int64_t i = 0; i < options_.gate_batch; ++i) {
    batch.push_back(&examples_[draws.below(examples_.size())]);
  }
  const double fall = 1 - static_cast<double>(step_) / static_cast<double>(options_.n_gate_updates);
  loss_ = policy_.network.learn_gate(batch, kGateRate * fall);
}

TrainProgress GeneralistTrainer::progress() const {
  const auto n_tasks = static_cast<double>(places_.size());
  const double whole = 3 * n_tasks + 2;  // both phases without evaluations count as one task
  const auto step = static_cast<double>(step_);
  double done = whole;
  switch (phase_) {
    case Phase::search:
      done = step;
      break;
    case Phase::imitate:
      done = n_tasks + step / static_cast<double>(options_.n_imitation_updates);
      break;
    case Phase::refine:
      done = n_tasks + 1 + step;
      break;
    case Phase::compare:
      done = 2 * n_tasks + 1 + step;
      break;
    case Phase::gate:
      done = 3 * n_tasks + 1 + step / static_cast<double>(options_.n_gate_updates);
      break;
    case Phase::done:
      break;
  }
  TrainProgress progress{.stage = phase_ == Phase::imitate ? 1 : 2,
                         .updates = n_updates_,
                         .episodes = n_episodes_,
                         .evaluations = n_evaluations_,
                         .share = done / whole};
  if (n_updates_ == 0) progress.stage = 0;
  if (places_[0].best.makespan) progress.best_makespan = *places_[0].best.makespan;
  progress.values = {{"phase", static_cast<double>(phase_)}, {"loss", loss_}};
  return progress;
}

Decision GeneralistTrainer::best(std::size_t task) const {
  const Place& place = places_.at(task);
  Decision best = place.best;
  if (!best.makespan) {
    const Latents latents = policy_.network.latents(place.inputs);
    HeadRollout rollout(place.model, latents);
    const auto devices = rollout.decide(policy_.heads[0]);
    best.assignment = Assignment{{devices.begin(), devices.end()}};
  }
  best.evaluations = n_evaluations_;
  return best;
}

std::string GeneralistTrainer::policy() const { return policy_.text(); }

namespace {

std::vector<std::int32_t> values_of(const auto& ids) {
  std::vector<std::int32_t> values;
  for (const auto& id : ids) values.push_back(id.value);
  return values;
}

template <class T>
std::vector<T> ids_of(const Json& values) {
  std::vector<T> ids;
  for (const Json& value : values) ids.emplace_back(value.get<std::int32_t>());
  return ids;
}

}  // namespace

std::string GeneralistTrainer::state() const {
  const std::string network = policy_.network.state();
  Json state = {{"phase", static_cast<int>(phase_)},
                {"step", step_},
                {"updates", n_updates_},
                {"episodes", n_episodes_},
                {"evaluations", n_evaluations_},
                {"loss", loss_},
                {"network", Json::binary({network.begin(), network.end()})},
                {"heads", policy_.heads},
                {"imitation", imitation_ ? imitation_->state() : Json()},
                {"pool", pool_},
                {"losses", losses_},
                {"promises", promises_},
                {"places", Json::array()}};
  for (const Place& place : places_) {
    Json lessons = Json::array();
    for (const Trajectory& lesson : place.lessons) {
      lessons.push_back({values_of(lesson.order), values_of(lesson.devices)});
    }
    state["places"].push_back(
        {{"heads", place.heads},
         {"lessons", std::move(lessons)},
         {"best", values_of(place.best.assignment.devices)},
         {"makespan", place.best.makespan ? Json(*place.best.makespan) : Json()}});
  }
  std::string bytes;
  Json::to_cbor(state, bytes);
  return bytes;
}

void GeneralistTrainer::restore(std::string_view bytes) {
  try {
    const Json state = Json::from_cbor(bytes);
    const Json& places = state.at("places");
    if (places.size() != places_.size()) {
      throw ParseError("this is the state of a run over " + std::to_string(places.size()) +
                       " tasks, not " + std::to_string(places_.size()));
    }
    const auto& network = state.at("network").get_binary();
    policy_.network.restore(std::string(network.begin(), network.end()));
    policy_.heads = state.at("heads").get<std::vector<Head>>();
    phase_ = static_cast<Phase>(state.at("phase").get<int>());
    step_ = state.at("step").get<std::int64_t>();
    n_updates_ = state.at("updates").get<std::int64_t>();
    n_episodes_ = state.at("episodes").get<std::int64_t>();
    n_evaluations_ = state.at("evaluations").get<std::int64_t>();
    loss_ = state.at("loss").get<double>();
    pool_ = state.at("pool").get<std::vector<Head>>();
    losses_ = state.at("losses").get<std::vector<std::vector<double>>>();
    promises_ = state.at("promises").get<std::vector<std::vector<float>>>();
    for (std::size_t t = 0; t < places_.size(); ++t) {
      Place& place = places_[t];
      place.heads = places[t].at("heads").get<std::vector<Head>>();
      place.lessons.clear();
      for (const Json& lesson : places[t].at("lessons")) {
        place.lessons.push_back(
            {.order = ids_of<NodeId>(lesson.at(0)), .devices = ids_of<DeviceId>(lesson.at(1))});
      }
      place.best = {.assignment = Assignment{ids_of<DeviceId>(places[t].at("best"))}};
      if (!places[t].at("makespan").is_null()) {
        place.best.makespan = places[t].at("makespan").get<double>();
      }
    }
    imitation_.reset();
    if (!state.at("imitation").is_null()) {
      start_imitation();
      imitation_->restore(state.at("imitation"));
    }
    examples_.clear();
  } catch (const Json::exception& error) {
    throw ParseError(std::string("this is no state of a doppler run over several tasks: ") +
                     error.what());
  }
}

}  // namespace doppler
