// A fixed 64-bit hash of values: equal on every machine and in every version.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace doppler {

// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection that mixes all bits.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Collects values in order; digest() depends on all of them and on their order.
class Hasher {
 public:
  Hasher& add(std::uint64_t x) {
    state_ = mix64(state_ + 0x9e3779b97f4a7c15ULL + x);
    return *this;
  }
  // -0.0 counts as 0.0, so that equal values hash equally.
  Hasher& add(double x) { return add(std::bit_cast<std::uint64_t>(x == 0 ? 0.0 : x)); }
  Hasher& add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    return *this;
  }
  [[nodiscard]] std::uint64_t digest() const { return mix64(state_); }

 private:
  std::uint64_t state_ = 0;
};

// A digest as files show it: 16 lower-case hexadecimal digits.
std::string hash_text(std::uint64_t digest);
// What hash_text() wrote; nothing for other text.
std::optional<std::uint64_t> parse_hash(std::string_view text);

}  // namespace doppler
