// The machine that something was measured on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "graphs/strict_json.h"

namespace doppler {

struct Hardware {
  std::string processor = {};    // "AMD EPYC 7763"; empty: unknown
  std::int64_t cores = 0;        // that this process may use; 0: unknown
  double memory = 0;             // bytes; 0: unknown
  std::string accelerator = {};  // "NVIDIA H200"; empty: none, or unknown
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// This machine. Accelerators are not looked for.
Hardware this_hardware();

nlohmann::ordered_json hardware_json(const Hardware& hardware);
Hardware hardware_of(const JsonElement& element);

}  // namespace doppler
