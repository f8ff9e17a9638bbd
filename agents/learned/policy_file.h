// Files of what an agent has learnt: named arrays of float32 and what else the agent wants to keep,
// in one JSON document with a checksum.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

struct PolicyArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major; finite
  friend bool operator==(const PolicyArray&, const PolicyArray&) = default;
};

struct PolicyFile {
  std::string kind;                                 // whose it is: "doppler(preset=paper)"
  std::vector<PolicyArray> arrays;                  // distinct names
  nlohmann::json extra = nlohmann::json::object();  // of the agent; numbers finite

  // The array of that name and shape. Throws ParseError that says what is there instead; `source`
  // stands for the file.
  [[nodiscard]] const PolicyArray& array(std::string_view name,
                                         const std::vector<std::int64_t>& shape,
                                         const std::string& source) const;
  friend bool operator==(const PolicyFile&, const PolicyFile&) = default;
};

// Equal for equal files:
//   {"format": "doppler-policy", "version": 1, "kind": ..., "written_by": "0.1.0",
//    "checksum": 16 hexadecimal digits over kind, arrays and extra,
//    "arrays": [{"name": ..., "shape": [...], "float32": base64 of little-endian bytes}, ...],
//    "extra": {...}}
// Throws InvalidError for arrays that break the rules above.
std::string write_policy(const PolicyFile& policy);

// Throws ParseError with the reason: no policy file, another version, another kind than `kind`,
// fields that are not known, values that do not fill their shape or are not finite, a checksum that
// is not the content's. `source` stands for the file in messages.
PolicyFile parse_policy(std::string_view content, std::string_view kind, const std::string& source);

}  // namespace doppler
