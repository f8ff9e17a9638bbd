#include "cli/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace doppler::cli {
namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) {
      result[order[i]] = static_cast<double>(first + last) / 2;
    }
    first = last + 1;
  }
  return result;
}

}  // namespace

double spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return NAN;
  const std::vector<double> x = ranks(a);
  const std::vector<double> y = ranks(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : NAN;
}

double kendall(std::span<const double> a, std::span<const double> b) {
  double difference = 0;  // concordant - discordant
  double untied_a = 0;
  double untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int x = (a[i] > a[j]) - (a[i] < a[j]);
      const int y = (b[i] > b[j]) - (b[i] < b[j]);
      difference += x * y;
      untied_a += x * x;
      untied_b += y * y;
    }
  }
  return untied_a > 0 && untied_b > 0 ? difference / std::sqrt(untied_a * untied_b) : NAN;
}

double mean_relative_error(std::span<const double> predicted, std::span<const double> actual) {
  double sum = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    sum += std::abs(predicted[i] - actual[i]) / actual[i];
  }
  return actual.empty() ? 0 : sum / static_cast<double>(actual.size());
}

}  // namespace doppler::cli
