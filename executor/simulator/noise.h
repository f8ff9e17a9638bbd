// Luck: a counter-based generator, so that a draw depends on its key alone and never on the order
// of draws. The same seed gives the same luck to every assignment.
#pragma once

#include <cmath>
#include <cstdint>

#include "graphs/hash.h"

namespace doppler {

// What a draw is for; streams never share keys.
enum class LuckStream : std::uint64_t { node = 1, transfer = 2, input = 3, choice = 4 };

// 64 uniform bits for a key.
[[nodiscard]] inline std::uint64_t luck_bits(std::uint64_t seed, LuckStream stream, std::uint64_t a,
                                             std::uint64_t b = 0) {
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t x = mix64(seed + kStep * static_cast<std::uint64_t>(stream));
  x = mix64(x + kStep * (a + 1));
  return mix64(x + kStep * (b + 1));
}

// A standard normal draw for a key (Box and Muller, 1958).
[[nodiscard]] inline double luck_normal(std::uint64_t seed, LuckStream stream, std::uint64_t a,
                                        std::uint64_t b = 0) {
  const std::uint64_t bits = luck_bits(seed, stream, a, b);
  const double u = (static_cast<double>(bits >> 11) + 1) * 0x1p-53;   // in (0, 1]
  const double v = static_cast<double>(mix64(bits) >> 11) * 0x1p-53;  // in [0, 1)
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

// exp(s z - s^2 / 2): the factor on a duration, of mean 1; 1 if s is 0.
[[nodiscard]] inline double noise_factor(double noise, std::uint64_t seed, LuckStream stream,
                                         std::uint64_t a, std::uint64_t b = 0) {
  if (noise == 0) return 1;
  return std::exp(noise * luck_normal(seed, stream, a, b) - noise * noise / 2);
}

}  // namespace doppler
