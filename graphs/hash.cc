#include "graphs/hash.h"

namespace doppler {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr int kBitsPerDigit = 4;

}  // namespace

std::string hash_text(std::uint64_t digest) {
  std::string text;
  for (int shift = 64 - kBitsPerDigit; shift >= 0; shift -= kBitsPerDigit) {
    text += kDigits[(digest >> shift) & 0xFU];
  }
  return text;
}

std::optional<std::uint64_t> parse_hash(std::string_view text) {
  if (text.size() != 64 / kBitsPerDigit) return std::nullopt;
  std::uint64_t digest = 0;
  for (char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    digest = digest << kBitsPerDigit | digit;
  }
  return digest;
}

}  // namespace doppler
