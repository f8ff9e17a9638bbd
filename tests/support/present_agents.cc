#include "tests/support/present_agents.h"

#include "tests/support/catch.h"

namespace doppler::testing {

std::vector<AgentEntry> present_agents() {
  std::vector<AgentEntry> present;
  for (const auto& [name, entry] : agents()) {
    const std::string missing = entry.missing ? entry.missing() : std::string();
    if (missing.empty()) {
      present.push_back(entry);
    } else {
      WARN("skipped for agent " << name << ": " << missing);
    }
  }
  return present;
}

}  // namespace doppler::testing
