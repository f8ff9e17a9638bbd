#include "agents/learned/episode.h"

#include <algorithm>
#include <cmath>

namespace doppler {

std::size_t draw_choice(std::span<const float> log_probabilities, double epsilon, Draws& draws) {
  if (epsilon > 0 && draws.uniform() < epsilon) {
    return static_cast<std::size_t>(draws.below(log_probabilities.size()));
  }
  double quantile = draws.uniform();
  for (std::size_t i = 0; i + 1 < log_probabilities.size(); ++i) {
    quantile -= std::exp(static_cast<double>(log_probabilities[i]));
    if (quantile < 0) return i;
  }
  return log_probabilities.size() - 1;
}

std::size_t best_choice(std::span<const float> scores) {
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

}  // namespace doppler
