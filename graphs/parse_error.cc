#include "graphs/parse_error.h"

#include <algorithm>
#include <cstdint>

#include "graphs/error.h"

namespace doppler {

std::string quoted(std::string_view token, std::size_t max_bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const bool is_cut = token.size() > max_bytes;
  std::string_view shown = token.substr(0, max_bytes);
  // A cut inside a character is moved before it.
  while (is_cut && !shown.empty() &&
         (static_cast<unsigned char>(token[shown.size()]) & 0xC0U) == 0x80U) {
    shown.remove_suffix(1);
  }
  const bool is_utf8 = find_bad_utf8(shown) == std::string_view::npos;
  std::string text = "'";
  for (char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_utf8)) {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 0xFU];
    } else {
      text += c;
    }
  }
  text += is_cut ? "...'" : "'";
  return text;
}

void throw_parse_error(std::string_view content, const std::string& source, std::size_t offset,
                       const std::string& message) {
  const std::string_view before = content.substr(0, std::min(offset, content.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t column = before.size() - line_start + 1;
  std::string one_line = message;
  for (char& c : one_line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  throw ParseError(source + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " +
                   one_line);
}

std::size_t find_bad_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) -> std::uint32_t {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::uint32_t lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return i;
    }
    const std::uint32_t second = byte(i + 1);
    const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    const bool is_surrogate = lead == 0xED && second >= 0xA0;
    const bool is_too_large = lead == 0xF4 && second >= 0x90;
    if (is_overlong || is_surrogate || is_too_large) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::size_t byte_order_mark(std::string_view content) {
  return content.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

}  // namespace doppler
