#include "cli/statistics.h"

#include <cmath>
#include <numeric>

namespace doppler::cli {
namespace {

constexpr double kTiny = 1e-300;
constexpr int kMostTerms = 10000;

// The continued fraction of the incomplete beta function, by the method of Lentz; Abramowitz and
// Stegun, Handbook of Mathematical Functions, 26.5.8.
double beta_fraction(double a, double b, double x) {
  const auto away_from_zero = [](double y) { return std::abs(y) < kTiny ? kTiny : y; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return result;
}

// The regularised incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double student_t_quantile(double probability, double degrees) {
  // P(T > t) = I_{v / (v + t^2)}(v / 2, 1 / 2) / 2, found by halving.
  const double tail = 2 * (1 - probability);
  const auto above = [&](double t) {
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) > tail;
  };
  double low = 0;
  double high = 1;
  while (above(high) && high < 1e150) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-13 * high; ++step) {
    const double middle = (low + high) / 2;
    (above(middle) ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::optional<double> half_interval_95(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = mean(values);
  if (!std::isfinite(centre)) return std::nullopt;
  double squares = 0;
  for (double value : values) squares += (value - centre) * (value - centre);
  const auto n = static_cast<double>(values.size());
  return student_t_quantile(0.975, n - 1) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
}

}  // namespace doppler::cli
