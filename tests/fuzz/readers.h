// Everything that reads text from outside, under one signature: for libFuzzer (harness.cc) and for
// the bounded replay in the ordinary tests (replay.cc).
#pragma once

#include <span>
#include <string_view>

namespace doppler::testing {

struct Reader {
  std::string_view name;  // also its folder below tests/fuzz/corpus
  // Reads the text. What is refused must be a doppler::Error, which is caught here; what is
  // accepted must read back equal after it was written. Throws std::logic_error where either does
  // not hold.
  // Returns whether the text was accepted.
  bool (*read)(std::string_view text);
};

// All readers, by name.
std::span<const Reader> readers();
// Throws std::logic_error for a name that no reader has.
const Reader& reader(std::string_view name);

}  // namespace doppler::testing
