#include "tests/support/reference.h"

#include <filesystem>

#include "tests/support/catch.h"

namespace doppler::testing {

std::optional<std::string> reference_file(const std::string& file) {
  const auto path = std::filesystem::path(DOPPLER_SOURCE_FOLDER) / "../shared/reference" / file;
  if (std::filesystem::exists(path)) return path.string();
  WARN("skipped: " << path.string() << " is absent");
  return std::nullopt;
}

}  // namespace doppler::testing
