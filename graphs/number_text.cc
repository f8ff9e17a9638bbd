#include "graphs/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "graphs/error.h"
#include "graphs/parse_error.h"

namespace doppler {

std::string number_text(double number) {
  constexpr double kWhole = 9007199254740992;  // 2^53
  if (number == 0) return std::signbit(number) ? "-0.0" : "0";
  std::array<char, 64> buffer;
  const bool is_whole = std::trunc(number) == number && std::abs(number) < kWhole;
  const auto end = is_whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                            static_cast<std::int64_t>(number))
                            : std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), end.ptr};
}

std::optional<double> parse_double(std::string_view text) {
  // from_chars also takes the words for infinity and NaN.
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_int64(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::string json_string(std::string_view text, std::string_view what) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
  });
  if (is_plain) return '"' + std::string(text) + '"';
  if (find_bad_utf8(text) != std::string_view::npos) {
    throw InvalidError(std::string(what) + " " + quoted(text) +
                       " is not UTF-8, which JSON needs; rename it");
  }
  return nlohmann::json(text).dump();
}

}  // namespace doppler
