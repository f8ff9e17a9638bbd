// The reference folder beside the project (published graphs, golden makespans), if it is there.
#pragma once

#include <optional>
#include <string>

namespace doppler::testing {

// The path of `../shared/reference/<file>`; empty, with a Catch2 warning that says what is skipped,
// where it is absent.
std::optional<std::string> reference_file(const std::string& file);

}  // namespace doppler::testing
