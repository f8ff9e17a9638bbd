// What every reader of text shares: places in a text, and messages that stay one short line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace doppler {

// A token of a user's text for a message: in single quotes, unprintable bytes as \xNN, cut after
// `max_bytes`.
std::string quoted(std::string_view token, std::size_t max_bytes = 40);

// Throws ParseError "source:line:column: message". The place is that of byte `offset` of `content`;
// lines and columns (in bytes) count from 1. O(offset).
[[noreturn]] void throw_parse_error(std::string_view content, const std::string& source,
                                    std::size_t offset, const std::string& message);

// The offset of the first byte that is not part of well-formed UTF-8 (RFC 3629), npos if none.
std::size_t find_bad_utf8(std::string_view text);

// The length of the byte order mark that some editors put before UTF-8: 3 or 0.
std::size_t byte_order_mark(std::string_view content);

}  // namespace doppler
