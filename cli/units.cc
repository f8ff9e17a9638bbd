#include "cli/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace doppler::cli {
namespace {

constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P", "E"};

std::string formatted(const char* format, double value) {
  std::array<char, 400> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

std::string with_prefix(double value, const std::string& unit) {
  std::size_t k = 0;
  while (value >= 1000 && k + 1 < kPrefixes.size()) {
    value /= 1000;
    ++k;
  }
  const std::string number = k == 0 ? formatted("%.6g", value) : formatted("%.2f", value);
  return number + " " + kPrefixes[k] + unit;
}

}  // namespace

Unit time_unit(double largest, bool raw) {
  if (raw) {
    const double exponent =
        std::isfinite(largest) && largest >= 1e5 ? 5 * std::floor(std::log10(largest) / 5) : 0;
    if (exponent == 0) return {1, "raw"};
    return {std::pow(10, exponent), "x 1e" + formatted("%.0f", exponent)};
  }
  if (!std::isfinite(largest) || largest >= 1 || largest <= 0) return {1, "s"};
  if (largest >= 1e-3) return {1e-3, "ms"};
  return {1e-6, "µs"};
}

std::string in_unit(double seconds, const Unit& unit) {
  if (!std::isfinite(seconds)) return "out of memory";
  return formatted("%.3f", seconds / unit.scale);
}

std::string with_unit(double seconds, const Unit& unit) {
  const std::string number = in_unit(seconds, unit);
  return std::isfinite(seconds) ? number + " " + unit.name : number;
}

std::string seconds_text(double seconds) { return with_unit(seconds, time_unit(seconds, false)); }

std::string bytes_text(double bytes, bool raw) {
  return raw ? formatted("%.6g", bytes) : with_prefix(bytes, "B");
}

std::string flops_text(double flops, bool raw) {
  return raw ? formatted("%.6g", flops) : with_prefix(flops, "FLOP");
}

std::string fixed(double value, int decimals) {
  return formatted(("%." + std::to_string(decimals) + "f").c_str(), value);
}

}  // namespace doppler::cli
