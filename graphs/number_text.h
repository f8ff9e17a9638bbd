// Numbers and strings as files hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace doppler {

// The shortest text that reads back as the same double, bit for bit; whole numbers below 2^53
// without exponent. Requires a finite number.
std::string number_text(double number);

// The double or integer that all of `text` spells in decimal; nothing for anything else: blanks,
// "nan", "inf", hexadecimal, "+1", or a magnitude that the type cannot hold.
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int64(std::string_view text);

// A JSON string with its quotes. Throws InvalidError for text that is not UTF-8; `what` names it.
std::string json_string(std::string_view text, std::string_view what);

}  // namespace doppler
