#include "agents/learned/head_search.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace doppler {

namespace {

using Json = nlohmann::json;

constexpr double kCrossShare = 0.7;
constexpr double kDenseShare = 0.3;         // of mutations that change all weights
constexpr double kPlainShare = 0.5;         // of mutations that leave the rows of latents alone
constexpr double kStepRange = 2;            // step sizes are exp(-this) to 1
constexpr double kLeastScale = 0.4;         // a step is relative to the weight's size plus this
constexpr double kLatentScale = 0.5;        // steps of the rows of latents over those of row 0
constexpr double kPullStep = 1.5;           // of the logarithm of a pull
constexpr double kPullShare = 0.7;          // of mutations of a pulled head that change it
constexpr double kMostPull = 1;             // of a child, before its step; time scales
constexpr int kTries = 10;                  // for a child whose assignment was not measured before
constexpr std::int64_t kMaxRepeats = 8;     // batches without news before old ones count again
constexpr std::int64_t kImproveBatch = 64;  // moves an update
constexpr double kSettleShare = 0.3;        // of the evaluations, at most, for several lucks
constexpr std::int64_t kMostLucks = 20;     // that an assignment is measured by
constexpr double kCooling = 5;              // the last temperature is exp(-this) times the first

std::vector<std::int32_t> values_of(std::span<const DeviceId> devices) {
  std::vector<std::int32_t> values;
  for (DeviceId device : devices) values.push_back(static_cast<std::int32_t>(device.value));
  return values;
}

std::vector<DeviceId> devices_of(const Json& values) {
  std::vector<DeviceId> devices;
  for (const Json& value : values) devices.emplace_back(value.get<std::int32_t>());
  return devices;
}

}  // namespace

// A rollout for the time of its life.
class HeadSearch::Lease {
 public:
  explicit Lease(HeadSearch& search) : search_(&search) {
    {
      const std::scoped_lock lock(search.rollouts_mutex_);
      if (!search.rollouts_.empty()) {
        rollout_ = std::move(search.rollouts_.back());
        search.rollouts_.pop_back();
      }
    }
    if (!rollout_) {
      rollout_ = std::make_unique<HeadRollout>(search.model_, search.latents_, search.pattern_);
    }
  }
  ~Lease() {
    const std::scoped_lock lock(search_->rollouts_mutex_);
    search_->rollouts_.push_back(std::move(rollout_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  HeadRollout& operator*() const { return *rollout_; }
  HeadRollout* operator->() const { return rollout_.get(); }

 private:
  HeadSearch* search_;
  std::unique_ptr<HeadRollout> rollout_;
};

HeadSearch::HeadSearch(std::shared_ptr<const PlacementModel> model, Latents latents,
                       std::vector<Head> first, const AssignOptions& options)
    : model_(std::move(model)),
      latents_(std::move(latents)),
      first_(std::move(first)),
      max_evaluations_(options.max_evaluations),
      evaluations_(*model_, options),
      draws_(options.seed),
      has_luck_(model_->task().options.has_luck()),
      moves_(*model_, MoveKinds::all) {}

double HeadSearch::improve_share() const {
  if (has_luck_ || !moves_.any() || options_.half != HeadHalf::both) return 0;
  const double decades = std::log10(static_cast<double>(max_evaluations_)) - 3;
  return options_.improve_share * std::clamp(decades, 0.0, 1.0);
}

std::size_t HeadSearch::n_leaders() const {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(max_evaluations_ / 50, 6, 20));
}

double HeadSearch::settle_share() const {
  if (!has_luck_) return 0;
  const auto most = static_cast<double>(n_leaders()) * kMostLucks;
  return std::min(kSettleShare, most / static_cast<double>(max_evaluations_));
}

bool HeadSearch::update() {
  if (!evaluations_.left()) return false;
  sum_makespans_ = 0;
  n_measured_ = 0;
  if (!first_.empty()) {
    const Head head = std::move(first_.front());
    first_.erase(first_.begin());
    const Lease rollout(*this);
    const auto assignment = rollout->decide(head);
    ++n_episodes_;
    // An assignment that was measured already teaches nothing; the first one is always needed.
    if (measured_.add(assignment)) measure(head, assignment);
  } else if (evaluations_.progress() >= 1 - settle_share()) {
    settle();
  } else if (evaluations_.progress() < 1 - improve_share()) {
    explore();
  } else {
    improve();
  }
  if (n_measured_ > 0) mean_makespan_ = sum_makespans_ / static_cast<double>(n_measured_);
  return true;
}

void HeadSearch::measure(const Head& head, std::span<const DeviceId> assignment) {
  const double makespan = evaluations_.run(assignment);
  sum_makespans_ += makespan;
  ++n_measured_;
  add_parent(head, makespan);
  if (has_luck_) lead(assignment, makespan);
}

void HeadSearch::lead(std::span<const DeviceId> assignment, double makespan) {
  const auto place = std::ranges::upper_bound(leaders_, makespan, {}, &Leader::makespan);
  const bool is_there = std::ranges::any_of(leaders_, [&](const Leader& leader) {
    return std::ranges::equal(leader.assignment, assignment);
  });
  if (is_there) return;
  leaders_.insert(place, {.assignment = {assignment.begin(), assignment.end()},
                          .makespan = makespan,
                          .sum = makespan,
                          .n_lucks = 1});
  if (leaders_.size() > n_leaders()) leaders_.pop_back();
}

// One more luck for each leader, the same for all.
void HeadSearch::settle() {
  const std::uint64_t luck = draws_.next();
  for (Leader& leader : leaders_) {
    if (!evaluations_.left()) break;
    const double makespan = evaluations_.run_with(leader.assignment, luck);
    leader.sum += makespan;
    ++leader.n_lucks;
    sum_makespans_ += makespan;
    ++n_measured_;
  }
}

Decision HeadSearch::decision() const {
  if (!has_luck_) return evaluations_.decision();
  // Those that the last luck was not measured by are compared by one less.
  const Leader& best = *std::ranges::min_element(leaders_, {}, &Leader::mean);
  return {.assignment = Assignment{best.assignment},
          .makespan = best.makespan,
          .evaluations = evaluations_.n_used()};
}

void HeadSearch::explore() {
  std::vector<Child> children(options_.n_batch * options_.n_screened);
  for (Child& child : children) child.seed = draws_.next();
  const auto make = [&](std::size_t begin, std::size_t end) {
    const Lease rollout(*this);
    for (std::size_t i = begin; i < end; ++i) make_child(children[i], *rollout);
  };
  if (pool_ != nullptr) {
    pool_->run(children.size(), make);
  } else {
    make(0, children.size());
  }
  n_episodes_ += static_cast<std::int64_t>(children.size());

  bool news = false;
  for (std::size_t i = 0; i < options_.n_batch && evaluations_.left(); ++i) {
    const auto group = std::span(children).subspan(i * options_.n_screened, options_.n_screened);
    const auto best =
        std::min_element(group.begin(), group.end(), [](const auto& a, const auto& b) {
          return a.is_new != b.is_new ? a.is_new : a.estimate < b.estimate;
        });
    // Another group may have found the same one just now.
    const bool is_new = measured_.add(best->assignment);
    if (!is_new && n_repeats_ < kMaxRepeats) continue;
    measure(best->head, best->assignment);
    news = news || is_new;
  }
  n_repeats_ = news ? 0 : n_repeats_ + 1;
}

void HeadSearch::make_child(Child& child, HeadRollout& rollout) const {
  Draws draws(child.seed);
  for (int i = 0; i < kTries && !child.is_new; ++i) {
    child.head = draw_parent(draws);
    double pull = pull_of(child.head);
    child.head.resize(n_row_weights());
    if (parents_.size() > 1 && draws.uniform() < kCrossShare) {
      const Head& other = draw_parent(draws);
      if (!pattern_.empty() && draws.below(2) == 0) pull = pull_of(other);
      const bool mean = draws.below(2) == 0;
      for (std::size_t k = 0; k < child.head.size(); ++k) {
        if (mean) {
          child.head[k] = (child.head[k] + other[k]) / 2;
        } else if (draws.below(2) == 0) {
          child.head[k] = other[k];
        }
      }
    }
    mutate(child.head, draws);
    if (!pattern_.empty() && pull > 0) {
      pull = std::min(pull, kMostPull);
      if (draws.uniform() < kPullShare) pull *= std::exp(kPullStep * normal(draws));
      child.head = pulled(std::move(child.head), pull);
    }
    const auto assignment = rollout.decide(child.head);
    child.assignment.assign(assignment.begin(), assignment.end());
    child.estimate = rollout.estimate();
    child.is_new = !measured_.contains(assignment);
  }
}

const Head& HeadSearch::draw_parent(Draws& draws) const {
  const double u = draws.uniform();  // its square prefers the first
  return parents_[static_cast<std::size_t>(u * u * static_cast<double>(parents_.size()))].head;
}

std::size_t HeadSearch::n_row_weights() const { return (1 + latents_.n_latents) * kRuleWeights; }

// Of rows alone.
void HeadSearch::mutate(Head& head, Draws& draws) const {
  const bool plain = latents_.n_latents == 0 || draws.uniform() < kPlainShare;
  const std::size_t n_weights = plain ? kRuleWeights : head.size();
  const double step = std::exp(-kStepRange * draws.uniform());
  std::size_t n_learnt = 0;
  for (std::size_t i = 0; i < n_weights; ++i) n_learnt += is_learnt(options_.half, i) ? 1 : 0;
  double share = 1;  // of the weights that change: from one of them on average to all
  if (draws.uniform() >= kDenseShare) {
    share = std::pow(static_cast<double>(n_learnt), -draws.uniform());
  }
  bool changed = false;
  while (!changed) {
    for (std::size_t i = 0; i < n_weights; ++i) {
      if (draws.uniform() >= share || !is_learnt(options_.half, i)) continue;
      const double scale = i < kRuleWeights ? 1 : kLatentScale;
      head[i] += scale * step * (std::abs(head[i]) + kLeastScale) * normal(draws);
      changed = true;
    }
  }
}

void HeadSearch::add_parent(const Head& head, double makespan) {
  const auto place =
      std::lower_bound(parents_.begin(), parents_.end(), makespan,
                       [](const Parent& parent, double value) { return parent.makespan < value; });
  // A head of the same makespan replaces the old one, so that weights drift where nothing depends
  // on them.
  if (place != parents_.end() && place->makespan == makespan) {
    place->head = head;
    return;
  }
  parents_.insert(place, {head, makespan});
  if (parents_.size() > options_.n_parents) parents_.pop_back();
}

void HeadSearch::improve() {
  if (!improving_) {
    improving_ = true;
    improve_begin_ = evaluations_.n_used();
    walk_.emplace(evaluations_, evaluations_.best().devices, evaluations_.best_makespan());
    improve_unit_ = std::isfinite(walk_->makespan()) ? walk_->makespan() : model_->time_scale();
  }
  const auto n_moves = static_cast<double>(max_evaluations_ - improve_begin_);
  for (std::int64_t i = 0; i < kImproveBatch && evaluations_.left(); ++i) {
    const double progress = static_cast<double>(evaluations_.n_used() - improve_begin_) / n_moves;
    const double temperature = improve_unit_ * options_.hot * std::exp(-kCooling * progress);
    const auto changes = moves_.draw(walk_->present(), draws_);
    const double makespan = walk_->propose(changes);
    sum_makespans_ += makespan;
    ++n_measured_;
    if (makespan <= walk_->makespan() ||
        draws_.uniform() < std::exp((walk_->makespan() - makespan) / temperature)) {
      walk_->accept(changes);
    }
  }
}

Json HeadSearch::state() const {
  Json parents = Json::array();
  for (const Parent& parent : parents_) parents.push_back({parent.head, parent.makespan});
  Json leaders = Json::array();
  for (const Leader& leader : leaders_) {
    leaders.push_back({values_of(leader.assignment), leader.makespan, leader.sum, leader.n_lucks});
  }
  return {{"first", first_},
          {"draws", draws_.state()},
          {"parents", std::move(parents)},
          {"measured", measured_.hashes()},
          {"repeats", n_repeats_},
          {"episodes", n_episodes_},
          {"mean_makespan", mean_makespan_},
          {"leaders", std::move(leaders)},
          {"evaluations", evaluations_.n_used()},
          {"best", values_of(evaluations_.best().devices)},
          {"best_makespan", evaluations_.best_makespan()},
          {"improve_begin", improving_ ? improve_begin_ : -1},
          {"improve_unit", improve_unit_},
          {"walk", improving_ ? values_of(walk_->present()) : std::vector<std::int32_t>()},
          {"walk_makespan", improving_ ? walk_->makespan() : 0}};
}

void HeadSearch::restore(const Json& state) {
  first_ = state.at("first").get<std::vector<Head>>();
  draws_ = Draws::from_state(state.at("draws").get<std::uint64_t>());
  parents_.clear();
  for (const Json& parent : state.at("parents")) {
    parents_.push_back({parent.at(0).get<Head>(), parent.at(1).get<double>()});
  }
  measured_.set_hashes(state.at("measured").get<std::vector<std::uint64_t>>());
  n_repeats_ = state.at("repeats").get<std::int64_t>();
  n_episodes_ = state.at("episodes").get<std::int64_t>();
  mean_makespan_ = state.at("mean_makespan").get<double>();
  leaders_.clear();
  for (const Json& leader : state.at("leaders")) {
    leaders_.push_back({.assignment = devices_of(leader.at(0)),
                        .makespan = leader.at(1).get<double>(),
                        .sum = leader.at(2).get<double>(),
                        .n_lucks = leader.at(3).get<std::int64_t>()});
  }
  evaluations_.restore(state.at("evaluations").get<std::int64_t>(),
                       Assignment{devices_of(state.at("best"))},
                       state.at("best_makespan").get<double>());
  improve_begin_ = state.at("improve_begin").get<std::int64_t>();
  improve_unit_ = state.at("improve_unit").get<double>();
  improving_ = improve_begin_ >= 0;
  walk_.reset();
  if (improving_) {
    walk_.emplace(evaluations_, devices_of(state.at("walk")),
                  state.at("walk_makespan").get<double>());
  }
}

}  // namespace doppler
