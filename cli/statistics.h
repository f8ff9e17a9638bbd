// Means and their uncertainty.
#pragma once

#include <optional>
#include <span>

namespace doppler::cli {

// The arithmetic mean; 0 of nothing.
double mean(std::span<const double> values);

// Half the width of the 95 % confidence interval of the mean: t(0.975, n - 1) s / sqrt(n), with the
// sample standard deviation s and Student's t (Student, Biometrika 6(1), 1908). Empty below two
// values, or if one is not finite.
std::optional<double> half_interval_95(std::span<const double> values);

// The quantile at `probability` (0.5 to 1, exclusive of 1) of Student's t with `degrees` >= 1 of
// freedom; accurate to 1e-9 relative.
double student_t_quantile(double probability, double degrees);

}  // namespace doppler::cli
