// What searches by evolution share: normal steps, and which assignments were measured before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <unordered_set>
#include <vector>

#include "agents/draws.h"
#include "graphs/hash.h"
#include "graphs/ids.h"

namespace doppler {

// Standard normal, by Box and Muller from two draws.
inline double normal(Draws& draws) {
  const double radius = std::sqrt(-2 * std::log(1 - draws.uniform()));
  return radius * std::cos(2 * std::numbers::pi * draws.uniform());
}

// The assignments that were measured, by 64 bits each: two that are taken for one cost a child and
// nothing else. Once it holds kMaxRemembered it learns no more.
class Measured {
 public:
  static constexpr std::size_t kMaxRemembered = 2'000'000;

  [[nodiscard]] bool contains(std::span<const DeviceId> assignment) const {
    return hashes_.contains(hash_of(assignment));
  }
  // Whether the assignment is new; remembers it.
  bool add(std::span<const DeviceId> assignment) {
    const std::uint64_t hash = hash_of(assignment);
    if (hashes_.size() >= kMaxRemembered) return !hashes_.contains(hash);
    return hashes_.insert(hash).second;
  }

  // All that it knows, ascending; and back.
  [[nodiscard]] std::vector<std::uint64_t> hashes() const {
    std::vector<std::uint64_t> sorted(hashes_.begin(), hashes_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  void set_hashes(std::span<const std::uint64_t> hashes) {
    hashes_ = {hashes.begin(), hashes.end()};
  }

 private:
  static std::uint64_t hash_of(std::span<const DeviceId> assignment) {
    std::uint64_t hash = 0;
    for (DeviceId device : assignment) {
      hash = mix64(hash + static_cast<std::uint64_t>(device.value) + 1);
    }
    return hash;
  }

  std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace doppler
