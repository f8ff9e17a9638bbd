#include "agents/learned/softmax_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace doppler {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr std::size_t kFirstCapacity = 8;

double log_of_sum(double a, double b) {
  const double larger = std::max(a, b);
  if (larger == kNothing) return kNothing;
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

}  // namespace

void SoftmaxTree::clear() {
  n_members_ = 0;
  std::fill(log_sum_.begin(), log_sum_.end(), kNothing);
  std::fill(waiting_.begin(), waiting_.end(), 0.0);
  free_.clear();
  for (std::size_t slot = capacity_; slot > 0; --slot) free_.push_back(slot - 1);
}

std::size_t SoftmaxTree::insert(double score) {
  if (free_.empty()) grow();
  const std::size_t slot = free_.back();
  free_.pop_back();
  push_down(slot);
  waiting_[capacity_ + slot] = 0;
  set(slot, score);
  ++n_members_;
  return slot;
}

void SoftmaxTree::erase(std::size_t slot) {
  push_down(slot);
  set(slot, kNothing);
  free_.push_back(slot);
  --n_members_;
}

double SoftmaxTree::log_sum() const { return n_members_ == 0 ? kNothing : log_sum_[1]; }

void SoftmaxTree::add(double weight) {
  if (n_members_ > 0) waiting_[1] += weight;
}

double SoftmaxTree::gather(std::size_t slot) {
  push_down(slot);
  return std::exchange(waiting_[capacity_ + slot], 0.0);
}

std::size_t SoftmaxTree::draw(double quantile) const {
  std::size_t node = 1;
  while (node < capacity_) {
    const std::size_t left = 2 * node;
    const double share = std::exp(log_sum_[left] - log_sum_[node]);
    // Rounding must not lead into a part without members.
    const bool only_left = log_sum_[left + 1] == kNothing;
    if (only_left || (log_sum_[left] != kNothing && quantile < share)) {
      quantile /= share;
      node = left;
    } else {
      quantile = share < 1 ? (quantile - share) / (1 - share) : 0;
      node = left + 1;
    }
  }
  return node - capacity_;
}

void SoftmaxTree::push_down(std::size_t slot) {
  std::size_t depth = 0;
  while ((capacity_ >> (depth + 1)) > 0) ++depth;
  for (; depth > 0; --depth) {
    const std::size_t node = (capacity_ + slot) >> depth;
    if (waiting_[node] == 0) continue;
    for (std::size_t child : {2 * node, 2 * node + 1}) {
      if (log_sum_[child] == kNothing) continue;
      waiting_[child] += waiting_[node] * std::exp(log_sum_[child] - log_sum_[node]);
    }
    waiting_[node] = 0;
  }
}

void SoftmaxTree::set(std::size_t slot, double log_value) {
  std::size_t node = capacity_ + slot;
  log_sum_[node] = log_value;
  while (node > 1) {
    node /= 2;
    log_sum_[node] = log_of_sum(log_sum_[2 * node], log_sum_[2 * node + 1]);
  }
}

void SoftmaxTree::grow() {
  const std::size_t old = capacity_;
  for (std::size_t slot = 0; slot < old; ++slot) push_down(slot);
  const std::vector<double> scores(log_sum_.begin() + static_cast<std::ptrdiff_t>(old),
                                   log_sum_.end());
  const std::vector<double> gathered(waiting_.begin() + static_cast<std::ptrdiff_t>(old),
                                     waiting_.end());
  capacity_ = std::max(kFirstCapacity, 2 * old);
  log_sum_.assign(2 * capacity_, kNothing);
  waiting_.assign(2 * capacity_, 0.0);
  std::copy(scores.begin(), scores.end(),
            log_sum_.begin() + static_cast<std::ptrdiff_t>(capacity_));
  std::copy(gathered.begin(), gathered.end(),
            waiting_.begin() + static_cast<std::ptrdiff_t>(capacity_));
  for (std::size_t node = capacity_ - 1; node > 0; --node) {
    log_sum_[node] = log_of_sum(log_sum_[2 * node], log_sum_[2 * node + 1]);
  }
  for (std::size_t slot = capacity_; slot > old; --slot) free_.push_back(slot - 1);
}

}  // namespace doppler
