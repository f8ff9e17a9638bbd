// What every refusal of a file must look like.
#pragma once

#include <functional>
#include <string>

#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler::testing {

// The message of the ParseError that `action` throws: one short line that begins with "source:".
inline std::string refusal(const std::string& source, const std::function<void()>& action) {
  try {
    action();
  } catch (const ParseError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with(source + ":"));
    CHECK(message.size() < source.size() + 400);
    return message.substr(source.size() + 1);
  }
  FAIL_CHECK("no ParseError");
  return "";
}

}  // namespace doppler::testing
