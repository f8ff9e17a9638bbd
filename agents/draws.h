// An agent's luck: a stream of random numbers that is the same on every machine.
#pragma once

#include <cstdint>
#include <limits>

#include "graphs/hash.h"

namespace doppler {

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014). A regular value of 8 bytes.
class Draws {
 public:
  explicit Draws(std::uint64_t seed = 0) : state_(mix64(seed)) {}

  // What a stream needs to continue where it was.
  [[nodiscard]] std::uint64_t state() const { return state_; }
  static Draws from_state(std::uint64_t state) {
    Draws draws;
    draws.state_ = state;
    return draws;
  }

  // 64 uniform bits.
  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  // Uniform in [0, n); requires n > 0.
  std::uint64_t below(std::uint64_t n) {
    // Draws beyond the last whole multiple of n would favour small numbers.
    const std::uint64_t beyond = std::numeric_limits<std::uint64_t>::max() / n * n;
    std::uint64_t draw = next();
    while (draw >= beyond) draw = next();
    return draw % n;
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  friend bool operator==(const Draws&, const Draws&) = default;

 private:
  std::uint64_t state_;
};

}  // namespace doppler
