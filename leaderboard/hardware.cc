#include "leaderboard/hardware.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <limits>

namespace doppler {
namespace {

constexpr std::int64_t kMostCores = 1'000'000;

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

}  // namespace

Hardware this_hardware() {
  Hardware hardware{.processor = processor_name()};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    hardware.cores = CPU_COUNT(&allowed);
  } else {
    hardware.cores = sysconf(_SC_NPROCESSORS_ONLN);
  }
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  hardware.memory = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return hardware;
}

nlohmann::ordered_json hardware_json(const Hardware& hardware) {
  return {{"processor", hardware.processor},
          {"cores", hardware.cores},
          {"memory", hardware.memory},
          {"accelerator", hardware.accelerator}};
}

Hardware hardware_of(const JsonElement& element) {
  element.allow_fields({"processor", "cores", "memory", "accelerator"});
  return {.processor = element.field("processor").text(),
          .cores = element.field("cores").integer(0, kMostCores),
          .memory = element.field("memory").quantity(),
          .accelerator = element.field("accelerator").text()};
}

}  // namespace doppler
