// A softmax over members that come and go.
#pragma once

#include <cstddef>
#include <vector>

namespace doppler {

// Keeps log(sum of exp(score)) of its members, and how much probability each has gathered over the
// steps of an episode: what the gradient of a sum of log-probabilities needs. A tournament tree of
// partial sums; what a step adds waits at the root and goes down only when a member changes. Every
// change, draw and gather takes O(log members), and nothing is ever subtracted, so that a member of
// large score leaves no rounding behind. Memory: 4 numbers a member. One thread.
class SoftmaxTree {
 public:
  void clear();

  // A finite score. Returns the member's slot, which stays its own until erase().
  std::size_t insert(double score);
  void erase(std::size_t slot);

  [[nodiscard]] std::size_t size() const { return n_members_; }
  [[nodiscard]] double score(std::size_t slot) const { return log_sum_[capacity_ + slot]; }
  // -infinity without members.
  [[nodiscard]] double log_sum() const;
  // Each member gathers `weight` times its present probability.
  void add(double weight);
  // What a member has gathered since it was inserted or last asked.
  double gather(std::size_t slot);
  // The member at a quantile, in [0, 1), of the distribution. Requires members.
  [[nodiscard]] std::size_t draw(double quantile) const;

 private:
  void push_down(std::size_t slot);
  void set(std::size_t slot, double log_value);
  void grow();

  std::size_t capacity_ = 0;  // leaves; 0 or a power of two
  std::size_t n_members_ = 0;
  std::vector<double> log_sum_;    // [2 capacity]; the root is 1, leaves start at capacity_
  std::vector<double> waiting_;    // [2 capacity]; of a leaf: gathered
  std::vector<std::size_t> free_;  // slots
};

}  // namespace doppler
