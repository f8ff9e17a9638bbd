#include "agents/online/arms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace doppler {

namespace {

constexpr double kPriorTau = 0.05;   // the model's relative error before anything is known,
constexpr double kPriorTauRuns = 3;  // as if so many arms had shown it
constexpr double kPriorSigma = 0.03;
constexpr double kPriorSigmaRuns = 2;
constexpr double kLeastTau = 0.002;
constexpr std::int64_t kLeastRuns = 2;  // of an incumbent

}  // namespace

Arms::Arms(Assignment start) : tau_(kPriorTau), sigma_(kPriorSigma) {
  arms_.push_back({.assignment = std::move(start)});
  index();
}

void Arms::index() {
  numbers_.clear();
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    numbers_[arms_[i].assignment.hash()].push_back(i);
  }
}

std::size_t Arms::add(const Assignment& assignment, double predicted) {
  auto& same_hash = numbers_[assignment.hash()];
  for (std::size_t i : same_hash) {
    if (arms_[i].assignment == assignment) return i;
  }
  same_hash.push_back(arms_.size());
  arms_.push_back({.assignment = assignment, .predicted = predicted});
  return arms_.size() - 1;
}

void Arms::keep(std::size_t n) {
  std::vector<std::size_t> others;
  for (std::size_t i = 1; i < arms_.size(); ++i) {
    if (arms_[i].n_runs + arms_[i].n_failures == 0) others.push_back(i);
  }
  if (others.size() <= n) return;
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    return arms_[a].predicted < arms_[b].predicted;
  });
  std::vector<bool> drop(arms_.size(), false);
  for (std::size_t k = n; k < others.size(); ++k) drop[others[k]] = true;
  std::vector<Arm> kept;
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (!drop[i]) kept.push_back(std::move(arms_[i]));
  }
  arms_ = std::move(kept);
  index();
}

void Arms::add_run(std::size_t arm, double makespan) {
  ++arms_[arm].n_runs;
  arms_[arm].sum += makespan;
  arms_[arm].squares += makespan * makespan;
}

void Arms::estimate() {
  double noise = kPriorSigmaRuns * kPriorSigma * kPriorSigma;
  double n_noise = kPriorSigmaRuns;
  for (const Arm& arm : arms_) {
    if (arm.n_runs < 2 || !(arm.mean() > 0)) continue;
    const auto n = static_cast<double>(arm.n_runs);
    const double variance = std::max(0.0, arm.squares - n * arm.mean() * arm.mean());  // x (n - 1)
    noise += variance / (arm.mean() * arm.mean());
    n_noise += n - 1;
  }
  sigma_ = std::sqrt(noise / n_noise);

  // Logarithms of measured over predicted, each worth what its runs say beyond the noise.
  const auto residuals = [&](auto&& visit) {
    for (const Arm& arm : arms_) {
      if (arm.n_runs == 0 || !(arm.mean() > 0) || !(arm.predicted > 0) ||
          !std::isfinite(arm.predicted)) {
        continue;
      }
      visit(std::log(arm.mean() / arm.predicted),
            sigma_ * sigma_ / static_cast<double>(arm.n_runs));
    }
  };
  double sum = 0;
  double weights = 0;
  residuals([&](double residual, double noise_variance) {
    const double weight = 1 / (tau_ * tau_ + noise_variance);
    sum += weight * residual;
    weights += weight;
  });
  const double mean = weights > 0 ? sum / weights : 0;
  factor_ = std::exp(mean);
  double squares = kPriorTauRuns * kPriorTau * kPriorTau;
  double n_arms = kPriorTauRuns;
  residuals([&](double residual, double noise_variance) {
    const double off = residual - mean;
    squares += std::max(0.0, off * off - noise_variance);
    n_arms += 1;
  });
  tau_ = std::max(kLeastTau, std::sqrt(squares / n_arms));
}

Belief Arms::belief(std::size_t number) const {
  const Arm& arm = arms_[number];
  const double prior = factor_ * arm.predicted;
  if (arm.n_runs == 0) return {.mean = prior, .deviation = tau_ * prior};
  const double noise = sigma_ * arm.mean() / std::sqrt(static_cast<double>(arm.n_runs));
  if (!(prior > 0) || !std::isfinite(prior)) return {.mean = arm.mean(), .deviation = noise};
  const double of_prior = 1 / (tau_ * tau_ * prior * prior);
  const double of_runs = noise > 0 ? 1 / (noise * noise) : std::numeric_limits<double>::infinity();
  if (std::isinf(of_runs)) return {.mean = arm.mean(), .deviation = 0};
  const double precision = of_prior + of_runs;
  return {.mean = (of_prior * prior + of_runs * arm.mean()) / precision,
          .deviation = 1 / std::sqrt(precision)};
}

std::size_t Arms::incumbent() const {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (arms_[i].n_runs < kLeastRuns || arms_[i].n_failures > 0) continue;
    const double mean = belief(i).mean;
    if (mean >= least) continue;
    least = mean;
    best = i;
  }
  return best;
}

std::size_t Arms::most_promising() const {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < arms_.size(); ++i) {
    if (arms_[i].n_failures > 0) continue;
    const Belief now = belief(i);
    const double bound = now.mean - now.deviation;
    if (!(bound < least)) continue;
    least = bound;
    best = i;
  }
  return best;
}

nlohmann::json Arms::state() const {
  nlohmann::json arms = nlohmann::json::array();
  for (const Arm& arm : arms_) {
    std::vector<std::int32_t> devices;
    for (DeviceId device : arm.assignment.devices) devices.push_back(device.value);
    arms.push_back({devices, arm.predicted, arm.n_runs, arm.sum, arm.squares, arm.n_failures});
  }
  return {{"arms", std::move(arms)}, {"factor", factor_}, {"tau", tau_}, {"sigma", sigma_}};
}

void Arms::restore(const nlohmann::json& state) {
  arms_.clear();
  for (const nlohmann::json& item : state.at("arms")) {
    Arm arm;
    for (const nlohmann::json& device : item.at(0)) {
      arm.assignment.devices.emplace_back(device.get<std::int32_t>());
    }
    arm.predicted = item.at(1).get<double>();
    arm.n_runs = item.at(2).get<std::int64_t>();
    arm.sum = item.at(3).get<double>();
    arm.squares = item.at(4).get<double>();
    arm.n_failures = item.at(5).get<std::int64_t>();
    arms_.push_back(std::move(arm));
  }
  factor_ = state.at("factor").get<double>();
  tau_ = state.at("tau").get<double>();
  sigma_ = state.at("sigma").get<double>();
  index();
}

}  // namespace doppler
